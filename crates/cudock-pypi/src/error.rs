//! What can go wrong between us, a package index and the disk.

use std::fmt;
use std::path::PathBuf;

use cudock_base::{DigestError, ErrorKind, FileError, Report};
use cudock_http::{CertificateError, HttpError, HttpErrorKind};
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
    /// The settings leave no source.
    #[error("no source for {file}: pip is configured to use no index")]
    NoSource {
        /// The wheel.
        file: String,
    },
    /// No source provided the wheel.
    #[error("cannot get {file}: {}", listed(.tried))]
    Unavailable {
        /// The wheel.
        file: String,
        /// The sources, and why each failed.
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
        /// The directory.
        path: PathBuf,
        /// What is free.
        free: u64,
        /// What the wheel and its libraries take.
        needed: u64,
    },
    /// The cache cannot be read or written.
    #[error(transparent)]
    Store(#[from] FileError),
    /// There is no directory for a cache.
    #[error("no cache directory: neither CUDOCK_CACHE nor HOME is set")]
    NoCache,
    /// A bundle of certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The tables have a wheel with a hash that is not one.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

/// A source that did not provide the wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// A URL without credentials and query, or a directory.
    pub source: String,
    /// What kind of failure it was.
    pub kind: TriedKind,
    /// What happened.
    pub reason: String,
}

/// Kinds of failure, the most informative last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriedKind {
    /// It does not have the file.
    NotListed,
    /// It cannot be reached, or the connection breaks.
    Unreachable,
    /// Its response is not that of an index.
    Protocol,
    /// It speaks plain http and is not trusted.
    Insecure,
    /// Its certificate is not trusted.
    Certificate,
    /// It wants credentials, or others.
    SignIn,
    /// It has a file of that name with other bytes.
    WrongBytes,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.reason)
    }
}

fn listed(tried: &[Tried]) -> String {
    tried.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Tried {
    pub(crate) fn new(source: impl Into<String>, kind: TriedKind, reason: impl Into<String>) -> Self {
        Self { source: source.into(), kind, reason: reason.into() }
    }

    /// What a failed request tells about a source. `signed_in` says whether credentials were sent.
    pub(crate) fn from_http(source: &str, error: &HttpError, signed_in: bool) -> Self {
        let (kind, reason) = match error.kind {
            HttpErrorKind::Status(401) if signed_in => {
                (TriedKind::SignIn, "does not accept the credentials".to_owned())
            }
            HttpErrorKind::Status(401) => (TriedKind::SignIn, "wants a sign-in".to_owned()),
            HttpErrorKind::Status(403) => (TriedKind::SignIn, "access denied (403)".to_owned()),
            HttpErrorKind::Status(status @ (404 | 410)) => {
                (TriedKind::NotListed, format!("not found ({status})"))
            }
            HttpErrorKind::Status(_) | HttpErrorKind::Transient | HttpErrorKind::Permanent => {
                (TriedKind::Unreachable, error.reason.clone())
            }
            HttpErrorKind::Certificate => (TriedKind::Certificate, error.reason.clone()),
            HttpErrorKind::PlainHttp => (TriedKind::Insecure, error.reason.clone()),
            HttpErrorKind::Refused | HttpErrorKind::TooLarge | HttpErrorKind::Malformed => {
                (TriedKind::Protocol, error.reason.clone())
            }
        };
        Self::new(source, kind, reason)
    }
}

impl PypiError {
    fn hint(&self) -> Option<String> {
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
            Self::NoSource { .. } => {
                Some("name a directory of wheels in PIP_FIND_LINKS, or leave PIP_NO_INDEX out".to_owned())
            }
            Self::Unavailable { tried, .. } => match tried.iter().map(|tried| tried.kind).max()? {
                TriedKind::NotListed => Some(
                    "name an index that has it in PIP_INDEX_URL, or a directory with the wheel in PIP_FIND_LINKS"
                        .to_owned(),
                ),
                TriedKind::Unreachable => Some(
                    "check PIP_INDEX_URL, pip.conf and HTTPS_PROXY, and try again; the downloaded part is kept"
                        .to_owned(),
                ),
                TriedKind::Protocol => {
                    Some("check that PIP_INDEX_URL names an index: its pages are at URL/onnxruntime/".to_owned())
                }
                TriedKind::Insecure => Some(
                    "use https, or name the host in PIP_TRUSTED_HOST: the wheel is verified by its hash"
                        .to_owned(),
                ),
                TriedKind::Certificate => Some(
                    "if its certificate is from your own authority, name the authority's file in PIP_CERT"
                        .to_owned(),
                ),
                TriedKind::SignIn => Some(
                    "put user and password into the index's URL, or into ~/.netrc".to_owned(),
                ),
                TriedKind::WrongBytes => Some(
                    "a mirror or proxy on the way may alter the content, or have a build of its own; name \
                     another index in PIP_INDEX_URL"
                        .to_owned(),
                ),
            },
            Self::Space { .. } => Some(FULL.to_owned()),
            Self::Store(error) if error.is_storage_full() => Some(FULL.to_owned()),
            Self::NoCache => Some("set CUDOCK_CACHE to a directory".to_owned()),
            _ => None,
        }
    }
}

impl Report for PypiError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Config { .. }
            | Self::Setting { .. }
            | Self::Named { .. }
            | Self::NoWheel { .. }
            | Self::NoCache
            | Self::Certificates(_)
            | Self::Digest(_) => ErrorKind::Input,
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.hint().into_iter().collect()
    }
}

const FULL: &str = "free some space, or set CUDOCK_CACHE to a directory on a larger disk";

/// The platform tag in a wheel's name, which is what pip wants to hear.
fn platform_of(error: &PypiError, cpu: &str) -> String {
    let PypiError::Offline { file, .. } = error else { return format!("manylinux_2_28_{cpu}") };
    let tag = file.strip_suffix(".whl").and_then(|stem| stem.rsplit('-').next()).unwrap_or_default();
    tag.split('.').next().unwrap_or_default().to_owned()
}
