//! Errors of locking and of fetching what is locked.

use std::path::PathBuf;

use cudock_base::{ErrorKind, FileError, Report, UsageError};
use cudock_http::{CertificateError, HttpError, HttpErrorKind};
use cudock_project::ProjectError;
use cudock_pypi::PypiError;
use thiserror::Error;

/// A project that cannot be locked, or a locked file that cannot be fetched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LockError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Pypi(#[from] PypiError),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    #[error("{}: {reason}", path.display())]
    Parse { path: PathBuf, reason: String },
    #[error("cannot write the lock file: {reason}")]
    Write { reason: String },
    #[error("{} has no [image] section", path.display())]
    NoImage { path: PathBuf },
    #[error("[image] names nothing to put into an image")]
    Empty,
    #[error("no {} in {}", crate::LOCK_NAME, directory.display())]
    Missing { directory: PathBuf },
    #[error("{} is out of date: {}", crate::LOCK_NAME, reasons.join("; "))]
    Stale { reasons: Vec<String> },
    #[error("{reason}")]
    Release { reason: String },
    #[error("{} depends on {relation}, which is not in {suite}", by)]
    NoDeb { relation: String, by: String, suite: &'static str, suggestion: Option<String> },
    #[error("no keyring {}", path.display())]
    NoKeyring { path: PathBuf },
    #[error("no gpgv in PATH to verify the signature of Debian's archive")]
    NoGpgv,
    #[error("{source_name}: invalid signature: {reason}")]
    Signature { source_name: String, reason: String },
    #[error("{source_name}: the release file has expired: it was valid until {until}")]
    Expired { source_name: String, until: String },
    #[error("{source_name}: {reason}")]
    Archive { source_name: String, reason: String },
    /// A file of an archive cannot be fetched.
    #[error("cannot get {url}: {error}")]
    Http { url: String, error: HttpError },
    #[error("{url}: {reason}")]
    WrongBytes { url: String, reason: String },
    #[error("uv {action}: {reason}")]
    Uv { action: &'static str, reason: String },
    /// uv found no versions that fit.
    #[error("uv cannot resolve the requirements: {reason}")]
    Unresolved { reason: String },
    #[error("{name} {version} has no wheel for {platform}; there are: {}", existing.join(", "))]
    NoWheel { name: String, version: String, platform: String, existing: Vec<String> },
    #[error("no index lists {name} {version} with the hash that uv found")]
    NotListed { name: String, version: String },
    #[error("{library}, which {program} is linked against, is in no known package")]
    NoLibrary { library: String, program: String },
    #[error("{}: {reason}", path.display())]
    Program { path: PathBuf, reason: String },
}

impl Report for LockError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Project(error) => error.kind(),
            Self::Pypi(error) => error.kind(),
            Self::Http { .. }
            | Self::Signature { .. }
            | Self::Expired { .. }
            | Self::Archive { .. }
            | Self::WrongBytes { .. }
            | Self::NotListed { .. }
            | Self::NoGpgv
            | Self::NoKeyring { .. }
            | Self::Uv { .. } => ErrorKind::Outside,
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Project(error) => return error.hints(),
            Self::Pypi(error) => return error.hints(),
            Self::Usage(error) => return error.hints(),
            Self::NoImage { .. } => "add an [image] section, or run `cudock init`",
            Self::Empty => "set `requirements`, `pyproject`, `model`, `program` or `packages` in [image]",
            Self::Missing { .. } | Self::Stale { .. } => "run `cudock lock`",
            Self::NoDeb { suggestion: Some(near), .. } => return vec![format!("did you mean `{near}`?")],
            Self::NoKeyring { .. } => {
                "install debian-archive-keyring or ubuntu-keyring, or set CUDOCK_KEYRING to a keyring"
            }
            Self::NoGpgv => "install gpgv",
            Self::Signature { .. } => {
                "a proxy may alter the content, or the keyring is too old: update debian-archive-keyring"
            }
            Self::Expired { .. } => {
                "check the clock of this machine, or use another mirror: this one is not updated"
            }
            Self::Http { error, .. } => match error.kind {
                HttpErrorKind::Status(404) => {
                    "the archive no longer has this version: run `cudock lock --upgrade`"
                }
                _ => "check the network, the proxy and the mirror in /etc/apt, and try again",
            },
            Self::WrongBytes { .. } => "a mirror or proxy may alter the content; try another mirror",
            Self::NoWheel { .. } => {
                "choose a version with a wheel for the platform, or another `python` in [image]"
            }
            Self::NotListed { .. } => {
                "name the index in PIP_INDEX_URL or UV_INDEX, so that uv and cudock use the same"
            }
            Self::NoLibrary { .. } => "add the Debian package that has it to `packages` in [image]",
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
