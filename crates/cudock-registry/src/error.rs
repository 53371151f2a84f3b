//! What can go wrong between us, a registry and the cache.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::digest::{Digest, DigestError};
use crate::reference::ReferenceError;

/// What a registry was asked for; every error about a registry says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The registry, as the image's name or a registries.conf names it.
    pub registry: String,
    /// The repository in it.
    pub repository: String,
    /// `manifest 12.4`, `blob sha256:…`, `token`.
    pub what: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} on {}", self.what, self.repository, self.registry)
    }
}

/// Why an image, or a part of it, could not be had. No variant holds a password, a token or a URL that might carry
/// one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The image's name is not one.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A digest is not one.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// 401: the registry wants a sign-in, or does not take the one we have.
    #[error("{asked}: the registry wants a sign-in{}", if *.signed_in { " other than the one found" } else { "" })]
    Unauthorized {
        /// What was asked.
        asked: Box<Asked>,
        /// Whether a sign-in was found and sent.
        signed_in: bool,
        /// Why a sign-in could not be had, where one was configured.
        trouble: Option<String>,
    },
    /// 403: the sign-in, or nobody, may have this.
    #[error("{asked}: the registry denies access{}", told(.said.as_deref()))]
    Forbidden {
        /// What was asked.
        asked: Box<Asked>,
        /// The registry's words.
        said: Option<String>,
    },
    /// 404, and the registry knows no such repository.
    #[error("{asked}: the registry knows no such repository")]
    NameUnknown {
        /// What was asked.
        asked: Box<Asked>,
    },
    /// 404, and the repository has no such tag, manifest or blob.
    #[error("{asked}: not found{}", told(.said.as_deref()))]
    NotFound {
        /// What was asked.
        asked: Box<Asked>,
        /// The registry's words.
        said: Option<String>,
    },
    /// 429, and waiting did not help.
    #[error("{asked}: the registry says that it was asked too often")]
    TooManyRequests {
        /// What was asked.
        asked: Box<Asked>,
        /// How long the registry wants us to wait.
        retry_after: Option<Duration>,
    },
    /// Another status that is no success, after all attempts.
    #[error("{asked}: the registry answered {status}{}", told(.said.as_deref()))]
    Status {
        /// What was asked.
        asked: Box<Asked>,
        /// The HTTP status.
        status: u16,
        /// The registry's words.
        said: Option<String>,
    },
    /// No connection, or it broke, after all attempts.
    #[error("{asked}: {reason}")]
    Unreachable {
        /// What was asked.
        asked: Box<Asked>,
        /// What happened.
        reason: String,
    },
    /// The registry does not speak as it should.
    #[error("{asked}: {reason}")]
    Protocol {
        /// What was asked.
        asked: Box<Asked>,
        /// What it did.
        reason: String,
    },
    /// The bytes are not those that were asked for.
    #[error("{asked}: the bytes have digest {got}, not {wanted}")]
    WrongDigest {
        /// What was asked.
        asked: Box<Asked>,
        /// The digest asked for.
        wanted: Box<Digest>,
        /// The digest of what came.
        got: Box<Digest>,
    },
    /// The bytes are more or fewer than the manifest says, or than is sane.
    #[error("{asked}: {reason}")]
    WrongSize {
        /// What was asked.
        asked: Box<Asked>,
        /// Which size, against which.
        reason: String,
    },
    /// It is not in the cache and the network may not be used.
    #[error("{asked}: not in the cache, and offline")]
    Offline {
        /// What was asked.
        asked: Box<Asked>,
    },
    /// Plain HTTP to another machine.
    #[error(
        "registry {registry} is marked insecure in {file}, and images are not fetched over connections that anybody can alter"
    )]
    Insecure {
        /// The registry.
        registry: String,
        /// The file that marks it.
        file: PathBuf,
    },
    /// registries.conf forbids this image.
    #[error("{name} is blocked by {file}")]
    Blocked {
        /// Registry and repository.
        name: String,
        /// The file that blocks it.
        file: PathBuf,
    },
    /// A file of registries or sign-ins cannot be read.
    #[error("{}: {reason}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// What is wrong, without the file's content.
        reason: String,
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
    /// There is no place for a cache.
    #[error("no place for the cache: neither CUDOCK_CACHE nor HOME is set")]
    NoCache,
    /// No daemon's socket is there.
    #[error("image {name}: no docker or podman daemon listens on {}", listed(.sockets))]
    NoDaemon {
        /// The image.
        name: String,
        /// Where one was looked for.
        sockets: Vec<PathBuf>,
    },
    /// A daemon is there and has no such image.
    #[error("image {name}: the daemon at {} does not have it", socket.display())]
    NotInDaemon {
        /// The image.
        name: String,
        /// The socket asked.
        socket: PathBuf,
    },
    /// A daemon failed.
    #[error("image {name}: the daemon at {}: {reason}", socket.display())]
    Daemon {
        /// The image.
        name: String,
        /// The socket asked.
        socket: PathBuf,
        /// What happened.
        reason: String,
    },
}

fn told(said: Option<&str>) -> String {
    said.map(|said| format!(": {said}")).unwrap_or_default()
}

fn listed(sockets: &[PathBuf]) -> String {
    if sockets.is_empty() {
        return "any known socket".to_owned();
    }
    sockets.iter().map(|socket| socket.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl RegistryError {
    /// What to do next, where that can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unauthorized { asked, signed_in, trouble } => {
                let mut hint = if *signed_in {
                    format!("sign in anew with `docker login {}`, and check the name", asked.registry)
                } else {
                    format!("check the name, or sign in with `docker login {}`", asked.registry)
                };
                if let Some(trouble) = trouble {
                    hint = format!("{hint}; {trouble}");
                }
                Some(hint)
            }
            Self::Forbidden { asked, .. } => Some(format!(
                "ask for the right to pull {}, or sign in as somebody who has it",
                asked.repository
            )),
            Self::NameUnknown { asked } => {
                Some(format!("check the name {}; private repositories may need a sign-in", asked.repository))
            }
            Self::NotFound { .. } => Some("check the tag or digest; tags are moved and removed".to_owned()),
            Self::TooManyRequests { asked, retry_after } => {
                let wait =
                    retry_after.map_or_else(|| "later".to_owned(), |wait| format!("in {} s", wait.as_secs()));
                Some(format!(
                    "try again {wait}, sign in with `docker login {}`, or name a mirror in registries.conf",
                    asked.registry
                ))
            }
            Self::Status { .. } => Some("try again later, or name a mirror in registries.conf".to_owned()),
            Self::Unreachable { reason, .. } if reason.contains("certificate") => Some(
                "if its certificate is of an authority of your own, name that one's file in SSL_CERT_FILE"
                    .to_owned(),
            ),
            Self::Unreachable { asked, .. } => Some(format!(
                "check that {} can be reached from here, or name a mirror in registries.conf{}",
                asked.registry,
                if asked.what.starts_with("blob") { "; what has come is kept" } else { "" }
            )),
            Self::WrongDigest { .. } | Self::WrongSize { .. } => {
                Some("a mirror or proxy on the way may alter what it passes on".to_owned())
            }
            Self::Offline { .. } => Some("fetch it once with the network: `cudock pull IMAGE`".to_owned()),
            Self::Insecure { registry, .. } => {
                Some(format!("give {registry} a certificate, or reach it through a tunnel on localhost"))
            }
            Self::NoCache => Some("set CUDOCK_CACHE to a folder".to_owned()),
            Self::NoDaemon { .. } => Some("start the daemon, or set DOCKER_HOST=unix://…".to_owned()),
            Self::NotInDaemon { name, .. } => Some(format!("pull it first: `docker pull {name}`")),
            Self::Store { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space, or set CUDOCK_CACHE to a folder on a larger disk".to_owned())
            }
            Self::Reference(_)
            | Self::Digest(_)
            | Self::Protocol { .. }
            | Self::Blocked { .. }
            | Self::Config { .. }
            | Self::Store { .. }
            | Self::Daemon { .. } => None,
        }
    }

    /// Whether the outside failed (true), or what we were given is wrong: a name nobody has, a bad file (false).
    pub fn is_outside(&self) -> bool {
        !matches!(
            self,
            Self::Reference(_)
                | Self::Digest(_)
                | Self::NameUnknown { .. }
                | Self::NotFound { .. }
                | Self::NotInDaemon { .. }
                | Self::Insecure { .. }
                | Self::Blocked { .. }
                | Self::Config { .. }
                | Self::NoCache
        )
    }
}
