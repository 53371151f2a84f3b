//! Errors of registries and of the cache.

use std::fmt;
use std::path::PathBuf;

use cudock_base::{Digest, ErrorKind, FileError, Report};
use cudock_http::{CertificateError, HttpError, HttpErrorKind, Retry, Retryable};

use crate::reference::ReferenceError;

/// The resource that was requested from a registry; part of every error about a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The registry, as the image's name or a registries.conf names it.
    pub registry: String,
    pub repository: String,
    /// `manifest 12.4` or `blob sha256:…`.
    pub item: String,
}

impl Resource {
    pub(crate) fn new(registry: &str, repository: &str, item: &str) -> Self {
        Self { registry: registry.to_owned(), repository: repository.to_owned(), item: item.to_owned() }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} on {}", self.item, self.repository, self.registry)
    }
}

/// Why an image, or a part of it, is not available. No variant holds a password, a token or a URL that might carry
/// one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// 401: the registry wants credentials, or does not accept ours.
    #[error("{resource}: {}", if *.signed_in { "the registry does not accept the credentials" } else { "the registry requires authentication" })]
    Unauthorized {
        resource: Box<Resource>,
        /// Whether credentials were found and sent.
        signed_in: bool,
        /// Why configured credentials could not be used.
        problem: Option<String>,
    },
    /// 403: this user, or every user, is denied access.
    #[error("{resource}: access denied{}", suffix(.message.as_deref()))]
    Forbidden { resource: Box<Resource>, message: Option<String> },
    /// 404, and the registry has no such repository.
    #[error("{resource}: repository not found")]
    NameUnknown { resource: Box<Resource> },
    /// 404, and the repository has no such tag, manifest or blob.
    #[error("{resource}: not found{}", suffix(.message.as_deref()))]
    NotFound { resource: Box<Resource>, message: Option<String> },
    /// Any other failure of a request, after all attempts.
    #[error("{resource}: {error}")]
    Http { resource: Box<Resource>, error: Box<HttpError> },
    /// The bytes are not those that were requested.
    #[error("{resource}: digest mismatch: expected {expected}, got {actual}")]
    WrongDigest { resource: Box<Resource>, expected: Box<Digest>, actual: Box<Digest> },
    /// There are more or fewer bytes than the manifest says.
    #[error("{resource}: {reason}")]
    WrongSize { resource: Box<Resource>, reason: String },
    /// It is not in the cache and the network may not be used.
    #[error("{resource}: not in the cache (--offline)")]
    Offline { resource: Box<Resource> },
    /// Plain http to another machine.
    #[error(
        "registry {registry} is marked insecure in {file}, and images are not fetched over connections that anybody can alter"
    )]
    Insecure { registry: String, file: PathBuf },
    #[error("{name} is blocked by {file}")]
    Blocked {
        /// Registry and repository.
        name: String,
        file: PathBuf,
    },
    /// A file of registries or credentials cannot be used.
    #[error("{}: {reason}", file.display())]
    Config {
        file: PathBuf,
        /// The problem, without the file's content.
        reason: String,
    },
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The cache cannot be read or written.
    #[error(transparent)]
    Store(#[from] FileError),
    #[error("no cache directory: neither CUDOCK_CACHE nor HOME is set")]
    NoCache,
    #[error("image {name}: no docker or podman daemon listens on {}", listed(.sockets))]
    NoDaemon { name: String, sockets: Vec<PathBuf> },
    #[error("image {name}: not found on the daemon at {}", socket.display())]
    NotInDaemon { name: String, socket: PathBuf },
    #[error("image {name}: the daemon at {}: {reason}", socket.display())]
    Daemon { name: String, socket: PathBuf, reason: String },
}

fn suffix(message: Option<&str>) -> String {
    message.map(|message| format!(": {message}")).unwrap_or_default()
}

fn listed(sockets: &[PathBuf]) -> String {
    if sockets.is_empty() {
        return "any known socket".to_owned();
    }
    sockets.iter().map(|socket| socket.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl Error {
    pub(crate) fn http(resource: &Resource, error: HttpError) -> Self {
        Self::Http { resource: Box::new(resource.clone()), error: Box::new(error) }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unauthorized { resource, signed_in, problem } => {
                let hint = if *signed_in {
                    format!("sign in again with `docker login {}`, and check the name", resource.registry)
                } else {
                    format!("check the name, or sign in with `docker login {}`", resource.registry)
                };
                Some(problem.as_ref().map_or(hint.clone(), |problem| format!("{hint}; {problem}")))
            }
            Self::Forbidden { resource, .. } => Some(format!(
                "ask for permission to pull {}, or sign in as a user who has it",
                resource.repository
            )),
            Self::NameUnknown { resource } => Some(format!(
                "check the name {}; private repositories may need a sign-in",
                resource.repository
            )),
            Self::NotFound { .. } => Some("check the tag or digest; tags are moved and removed".to_owned()),
            Self::Http { resource, error } => http_hint(resource, error),
            Self::WrongDigest { .. } | Self::WrongSize { .. } => Some(ALTERED.to_owned()),
            Self::Offline { .. } => Some("download it first while online: `cudock pull IMAGE`".to_owned()),
            Self::Insecure { registry, .. } => {
                Some(format!("give {registry} a certificate, or reach it through a tunnel on localhost"))
            }
            Self::NoCache => Some("set CUDOCK_CACHE to a directory".to_owned()),
            Self::NoDaemon { .. } => Some("start the daemon, or set DOCKER_HOST=unix://…".to_owned()),
            Self::NotInDaemon { name, .. } => Some(format!("pull it first: `docker pull {name}`")),
            Self::Store(error) if error.is_storage_full() => {
                Some("free some space, or set CUDOCK_CACHE to a directory on a larger disk".to_owned())
            }
            _ => None,
        }
    }
}

const ALTERED: &str = "a mirror or proxy on the way may alter the content";

fn http_hint(resource: &Resource, error: &HttpError) -> Option<String> {
    match error.kind {
        HttpErrorKind::Status(429) => {
            let wait =
                error.retry_after.map_or("later".to_owned(), |wait| format!("in {} s", wait.as_secs()));
            Some(format!(
                "try again {wait}, sign in with `docker login {}`, or name a mirror in registries.conf",
                resource.registry
            ))
        }
        HttpErrorKind::Status(_) => Some("try again later, or name a mirror in registries.conf".to_owned()),
        HttpErrorKind::Certificate => Some(
            "if its certificate is from your own authority, name the authority's file in SSL_CERT_FILE"
                .to_owned(),
        ),
        HttpErrorKind::Transient | HttpErrorKind::Permanent => Some(format!(
            "check that {} can be reached from here, or name a mirror in registries.conf{}",
            resource.registry,
            if resource.item.starts_with("blob") { "; the downloaded part is kept" } else { "" }
        )),
        HttpErrorKind::TooLarge => Some(ALTERED.to_owned()),
        HttpErrorKind::PlainHttp | HttpErrorKind::Refused | HttpErrorKind::Malformed => None,
    }
}

impl Report for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Reference(_)
            | Self::NameUnknown { .. }
            | Self::NotFound { .. }
            | Self::NotInDaemon { .. }
            | Self::Insecure { .. }
            | Self::Blocked { .. }
            | Self::Config { .. }
            | Self::Certificates(_)
            | Self::NoCache => ErrorKind::Input,
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.hint().into_iter().collect()
    }
}

impl Retryable for Error {
    fn retry(&self) -> Retry {
        match self {
            Self::Http { error, .. } => error.retry(),
            _ => Retry::Never,
        }
    }
}
