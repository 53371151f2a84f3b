//! Errors of package indexes and the cache.

use std::fmt;
use std::path::PathBuf;

use cudock_base::{DigestError, ErrorKind, FileError, NamedArch, Report};
use cudock_http::{CertificateError, HttpError, HttpErrorKind};
use thiserror::Error;

/// An error in finding or installing a library. No variant contains a password or a URL that may have one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PypiError {
    #[error("{}: {reason}", file.display())]
    Config {
        file: PathBuf,
        /// The reason, without the file's content.
        reason: String,
    },
    #[error("{name}: {reason}")]
    Setting {
        /// The variable, or the file and the key.
        name: String,
        reason: String,
    },
    /// A variable names a library that does not exist.
    #[error("{variable} is {}, {reason}", path.display())]
    Named { variable: &'static str, path: PathBuf, reason: &'static str },
    #[error("no known wheel of {package} for {cpu}")]
    NoWheel { package: String, cpu: NamedArch },
    /// It is not in the cache and the network may not be used.
    #[error("{file} is not in the cache, and --offline is set")]
    Offline {
        file: String,
        /// `onnxruntime==1.31.1`
        requirement: String,
    },
    #[error("no source for {file}: pip is configured to use no index")]
    NoSource { file: String },
    #[error("cannot get {file}: {}", listed(.tried))]
    Unavailable { file: String, tried: Vec<FailedSource> },
    /// The wheel has the right hash, but cannot be unpacked.
    #[error("{file}: {reason}")]
    Archive { file: String, reason: String },
    #[error("not enough space in {}: {free} bytes free, {needed} needed", path.display())]
    Space {
        path: PathBuf,
        free: u64,
        /// The size of the wheel and its libraries.
        needed: u64,
    },
    /// The cache cannot be read or written.
    #[error(transparent)]
    Store(#[from] FileError),
    #[error("no cache directory: neither CUDOCK_CACHE nor HOME is set")]
    NoCache,
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The tables have a wheel with an invalid hash.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedSource {
    /// A URL without credentials and query, or a directory.
    pub source: String,
    pub kind: SourceErrorKind,
    pub reason: String,
}

/// Kinds of errors, the most informative last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceErrorKind {
    /// It does not have the file.
    NotListed,
    /// It cannot be reached, or the connection breaks.
    Unreachable,
    /// Its response is not that of an index.
    Protocol,
    /// It uses plain http and is not trusted.
    Insecure,
    Certificate,
    /// It requires credentials, or rejects them.
    SignIn,
    /// It has a file of that name with another hash.
    WrongBytes,
}

impl fmt::Display for FailedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.reason)
    }
}

fn listed(tried: &[FailedSource]) -> String {
    tried.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl FailedSource {
    pub(crate) fn new(source: impl Into<String>, kind: SourceErrorKind, reason: impl Into<String>) -> Self {
        Self { source: source.into(), kind, reason: reason.into() }
    }

    /// Classifies a failed request. `signed_in` is whether credentials were sent.
    pub(crate) fn from_http(source: &str, error: &HttpError, signed_in: bool) -> Self {
        use HttpErrorKind as Http;
        let kind = match error.kind {
            Http::Status(401 | 403) => SourceErrorKind::SignIn,
            Http::Status(404 | 410) => SourceErrorKind::NotListed,
            Http::Status(_) | Http::Transient | Http::Permanent => SourceErrorKind::Unreachable,
            Http::Certificate => SourceErrorKind::Certificate,
            Http::PlainHttp => SourceErrorKind::Insecure,
            Http::Refused | Http::TooLarge | Http::Malformed => SourceErrorKind::Protocol,
        };
        let reason = match error.kind {
            Http::Status(401) if signed_in => "does not accept the credentials",
            Http::Status(401) => "requires credentials",
            Http::Status(403) => "access denied (403)",
            Http::Status(404) => "not found (404)",
            Http::Status(410) => "not found (410)",
            _ => error.reason.as_str(),
        };
        Self::new(source, kind, reason)
    }
}

impl PypiError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Named { variable, .. } => {
                return Some(format!("set {variable} to the path of libonnxruntime.so, or unset it"));
            }
            Self::Offline { file, requirement, .. } => {
                let platform = platform_tag(file);
                return Some(format!(
                    "with network access, run `pip install {requirement}`; or download the wheel with \
                     `pip download --no-deps --only-binary=:all: --python-version 3.12 --platform {platform} \
                     {requirement} -d DIR` and set PIP_FIND_LINKS to DIR; or set CUDOCK_ONNXRUNTIME to the library",
                ));
            }
            Self::NoWheel { .. } => {
                "build ONNX Runtime for this machine, and set CUDOCK_ONNXRUNTIME to its library"
            }
            Self::NoSource { .. } => "set PIP_FIND_LINKS to a directory of wheels, or unset PIP_NO_INDEX",
            Self::Unavailable { tried, .. } => tried.iter().map(|failed| failed.kind).max()?.hint(),
            Self::Space { .. } => STORAGE_FULL,
            Self::Store(error) if error.is_storage_full() => STORAGE_FULL,
            Self::NoCache => "set CUDOCK_CACHE to a directory",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl SourceErrorKind {
    const fn hint(self) -> &'static str {
        match self {
            Self::NotListed => {
                "set PIP_INDEX_URL to an index that has it, or PIP_FIND_LINKS to a directory with the wheel"
            }
            Self::Unreachable => {
                "check PIP_INDEX_URL, pip.conf and HTTPS_PROXY, and try again; the downloaded part is kept"
            }
            Self::Protocol => "check that PIP_INDEX_URL is an index: its pages are at URL/onnxruntime/",
            Self::Insecure => {
                "use https, or add the host to PIP_TRUSTED_HOST: the wheel is verified by its hash"
            }
            Self::Certificate => {
                "if its certificate is from your own authority, set PIP_CERT to the authority's file"
            }
            Self::SignIn => "add user and password to the index's URL, or to ~/.netrc",
            Self::WrongBytes => {
                "a mirror or proxy may alter the content, or have its own build; set PIP_INDEX_URL to another index"
            }
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

const STORAGE_FULL: &str = "free some space, or set CUDOCK_CACHE to a directory on a larger disk";

/// The platform tag in a wheel's name, as pip expects it.
fn platform_tag(file: &str) -> &str {
    let tag = file.strip_suffix(".whl").and_then(|stem| stem.rsplit('-').next()).unwrap_or_default();
    tag.split('.').next().unwrap_or_default()
}
