//! Errors of package indexes and the cache.

use std::fmt;
use std::path::PathBuf;

use cudock_base::{DigestError, ErrorKind, FileError, Report};
use cudock_http::{CertificateError, HttpError, HttpErrorKind};
use thiserror::Error;

/// An error in finding or installing a library. No variant contains a password or a URL that may have one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PypiError {
    /// A configuration file is invalid.
    #[error("{}: {reason}", file.display())]
    Config {
        file: PathBuf,
        /// The reason, without the file's content.
        reason: String,
    },
    /// A setting has an invalid value.
    #[error("{name}: {reason}")]
    Setting {
        /// The variable, or the file and the key.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A variable names a library that does not exist.
    #[error("{variable} is {}, {reason}", path.display())]
    Named {
        variable: &'static str,
        /// What it names.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The tables have no wheel for this processor.
    #[error("no known wheel of {package} for {cpu}")]
    NoWheel {
        package: String,
        /// The processor.
        cpu: String,
    },
    /// It is not in the cache and the network may not be used.
    #[error("{file} is not in the cache, and --offline is set")]
    Offline {
        /// The wheel.
        file: String,
        /// `onnxruntime==1.31.1`
        requirement: String,
    },
    /// No source is configured.
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
        tried: Vec<FailedSource>,
    },
    /// The wheel has the right hash, but cannot be unpacked.
    #[error("{file}: {reason}")]
    Archive {
        /// The wheel.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk is full.
    #[error("not enough space in {}: {free} bytes free, {needed} needed", path.display())]
    Space {
        /// The directory.
        path: PathBuf,
        /// Free bytes.
        free: u64,
        /// The size of the wheel and its libraries.
        needed: u64,
    },
    /// The cache cannot be read or written.
    #[error(transparent)]
    Store(#[from] FileError),
    /// There is no cache directory.
    #[error("no cache directory: neither CUDOCK_CACHE nor HOME is set")]
    NoCache,
    /// A certificate bundle is invalid.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The tables have a wheel with an invalid hash.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

/// A source that did not provide the wheel.
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
    /// Its certificate is not trusted.
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
        let (kind, reason) = match error.kind {
            HttpErrorKind::Status(401) if signed_in => {
                (SourceErrorKind::SignIn, "does not accept the credentials".to_owned())
            }
            HttpErrorKind::Status(401) => (SourceErrorKind::SignIn, "requires credentials".to_owned()),
            HttpErrorKind::Status(403) => (SourceErrorKind::SignIn, "access denied (403)".to_owned()),
            HttpErrorKind::Status(status @ (404 | 410)) => {
                (SourceErrorKind::NotListed, format!("not found ({status})"))
            }
            HttpErrorKind::Status(_) | HttpErrorKind::Transient | HttpErrorKind::Permanent => {
                (SourceErrorKind::Unreachable, error.reason.clone())
            }
            HttpErrorKind::Certificate => (SourceErrorKind::Certificate, error.reason.clone()),
            HttpErrorKind::PlainHttp => (SourceErrorKind::Insecure, error.reason.clone()),
            HttpErrorKind::Refused | HttpErrorKind::TooLarge | HttpErrorKind::Malformed => {
                (SourceErrorKind::Protocol, error.reason.clone())
            }
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
