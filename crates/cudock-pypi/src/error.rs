//! What can go wrong between us, a package index and the disk.

use std::fmt;
use std::io;
use std::path::PathBuf;

use cudock_registry::RegistryError;
use thiserror::Error;

/// Why a library could not be found or installed. No variant holds a password or an address that might carry one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PypiError {
    /// A file of settings or sign-ins cannot be used.
    #[error("{}: {reason}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// What is wrong, without the file's content.
        reason: String,
    },
    /// A setting has a value that cannot be one.
    #[error("{name}: {reason}")]
    Setting {
        /// The variable, or the file and the key.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A variable names a library that is not there.
    #[error("{variable} names {}, {reason}", path.display())]
    Named {
        /// The variable.
        variable: &'static str,
        /// What it names.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The tables have no wheel for this processor.
    #[error("no wheel of {package} is known for {cpu}")]
    NoWheel {
        /// The package.
        package: String,
        /// The processor.
        cpu: String,
    },
    /// It is not here and the network may not be used.
    #[error("{file} is not in the cache, and offline")]
    Offline {
        /// The wheel.
        file: String,
        /// `onnxruntime==1.31.1`
        requirement: String,
        /// The processor it is for.
        cpu: String,
    },
    /// Settings leave no place to ask.
    #[error("no place to get {file} from: pip is set to use no index")]
    NoPlace {
        /// The wheel.
        file: String,
    },
    /// Every place was asked, and none gave the wheel.
    #[error("cannot get {file}: {}", listed(.tried))]
    Unavailable {
        /// The wheel.
        file: String,
        /// Who was asked, and what each said.
        tried: Vec<Tried>,
    },
    /// The wheel is the right one by its hash, and cannot be unpacked.
    #[error("{file}: {reason}")]
    Archive {
        /// The wheel.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk is too small.
    #[error("{} has {free} bytes free, and {needed} are needed", path.display())]
    Space {
        /// The folder.
        path: PathBuf,
        /// What is free.
        free: u64,
        /// What the wheel and its libraries take.
        needed: u64,
    },
    /// The cache cannot be read or written.
    #[error("cannot {doing} {}", path.display())]
    Store {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no place for a cache, or it cannot be opened.
    #[error(transparent)]
    Cache(RegistryError),
}

/// A place that did not give the wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// An address without sign-in and query, or a folder.
    pub place: String,
    /// What kind of failure it was.
    pub why: Why,
    /// What happened.
    pub reason: String,
}

/// Kinds of failure, the most telling last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It does not have the file.
    NotListed,
    /// It cannot be reached, or breaks off.
    Unreachable,
    /// It answers with something else than an index should.
    Protocol,
    /// It speaks plain http and is not trusted.
    Insecure,
    /// Its certificate is not trusted.
    Certificate,
    /// It wants a sign-in, or another one.
    SignIn,
    /// It has a file of that name with other bytes.
    WrongBytes,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

fn listed(tried: &[Tried]) -> String {
    tried.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Tried {
    pub(crate) fn new(place: impl Into<String>, why: Why, reason: impl Into<String>) -> Self {
        Self { place: place.into(), why, reason: reason.into() }
    }

    /// What a failed request says of the place that was asked, in the words of package indexes.
    pub(crate) fn from_request(place: &str, error: &RegistryError) -> Self {
        use RegistryError as E;
        let (why, reason) = match error {
            E::Unauthorized { signed_in: true, .. } => {
                (Why::SignIn, "it does not take the sign-in that was found".to_owned())
            }
            E::Unauthorized { .. } => (Why::SignIn, "it wants a sign-in".to_owned()),
            E::Forbidden { .. } => (Why::SignIn, "it denies access (403)".to_owned()),
            E::NotFound { .. } | E::NameUnknown { .. } => {
                (Why::NotListed, "it does not have it (404)".to_owned())
            }
            E::TooManyRequests { .. } => {
                (Why::Unreachable, "it says that it was asked too often (429)".to_owned())
            }
            E::Status { status, .. } => (Why::Unreachable, format!("it answered {status}")),
            E::Unreachable { reason, .. } if reason.contains("certificate") => {
                (Why::Certificate, reason.clone())
            }
            E::Unreachable { reason, .. } => (Why::Unreachable, reason.clone()),
            E::Protocol { reason, .. } if reason.contains("plain http") => (Why::Insecure, reason.clone()),
            E::Protocol { reason, .. } => (Why::Protocol, reason.clone()),
            E::WrongDigest { wanted, got, .. } => {
                (Why::WrongBytes, format!("the bytes have {got}, not {wanted}"))
            }
            E::WrongSize { reason, .. } => (Why::WrongBytes, reason.clone()),
            other => (Why::Protocol, other.to_string()),
        };
        Self::new(place, why, reason)
    }
}

impl PypiError {
    /// What to do next, where that can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Named { variable, .. } => {
                Some(format!("set {variable} to the path of libonnxruntime.so, or leave it out"))
            }
            Self::NoWheel { .. } => Some(
                "build ONNX Runtime for this machine, and name its library in CUDOCK_ONNXRUNTIME".to_owned(),
            ),
            Self::Offline { requirement, cpu, .. } => Some(format!(
                "in an environment that may use the network: `pip install {requirement}`; or fetch the wheel with \
                 `pip download --no-deps --only-binary=:all: --python-version 3.12 --platform {} {requirement} -d DIR` \
                 and name DIR in PIP_FIND_LINKS; or name the library in CUDOCK_ONNXRUNTIME",
                platform_of(self, cpu),
            )),
            Self::NoPlace { .. } => {
                Some("name a folder of wheels in PIP_FIND_LINKS, or leave PIP_NO_INDEX out".to_owned())
            }
            Self::Unavailable { tried, .. } => match tried.iter().map(|tried| tried.why).max()? {
                Why::NotListed => Some(
                    "name an index that has it in PIP_INDEX_URL, or a folder with the wheel in PIP_FIND_LINKS"
                        .to_owned(),
                ),
                Why::Unreachable => Some(
                    "check PIP_INDEX_URL, pip.conf and HTTPS_PROXY, and try again; what has come is kept"
                        .to_owned(),
                ),
                Why::Protocol => {
                    Some("check that PIP_INDEX_URL names an index: its pages are at URL/onnxruntime/".to_owned())
                }
                Why::Insecure => Some(
                    "use https, or name the host in PIP_TRUSTED_HOST: the wheel is verified by its hash"
                        .to_owned(),
                ),
                Why::Certificate => Some(
                    "if its certificate is of an authority of your own, name that one's file in PIP_CERT"
                        .to_owned(),
                ),
                Why::SignIn => Some(
                    "put user and password into the index's address, or into ~/.netrc".to_owned(),
                ),
                Why::WrongBytes => Some(
                    "a mirror or proxy on the way may alter what it passes on, or have a build of its own; name \
                     another index in PIP_INDEX_URL"
                        .to_owned(),
                ),
            },
            Self::Space { .. } => Some(FULL.to_owned()),
            Self::Store { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(FULL.to_owned()),
            Self::Cache(error) => error.hint(),
            Self::Config { .. } | Self::Setting { .. } | Self::Archive { .. } | Self::Store { .. } => None,
        }
    }

    /// Whether the outside failed (true), or what we were given is wrong: a bad setting, a processor nobody builds for.
    pub fn is_outside(&self) -> bool {
        match self {
            Self::Config { .. } | Self::Setting { .. } | Self::Named { .. } | Self::NoWheel { .. } => false,
            Self::Cache(error) => error.is_outside(),
            _ => true,
        }
    }
}

const FULL: &str = "free some space, or set CUDOCK_CACHE to a folder on a larger disk";

/// The platform tag in a wheel's name, which is what pip wants to hear.
fn platform_of(error: &PypiError, cpu: &str) -> String {
    let PypiError::Offline { file, .. } = error else { return format!("manylinux_2_28_{cpu}") };
    let tag = file.strip_suffix(".whl").and_then(|stem| stem.rsplit('-').next()).unwrap_or_default();
    tag.split('.').next().unwrap_or_default().to_owned()
}

impl From<RegistryError> for PypiError {
    /// Errors of the cache and of configuration files; those of requests go through [`Tried`].
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Config { file, reason } => Self::Config { file, reason },
            RegistryError::Store { doing, path, source } => Self::Store { doing, path, source },
            other => Self::Cache(other),
        }
    }
}
