use std::io;
use std::path::{Path, PathBuf};

use cudock_base::{ErrorKind, Report, did_you_mean};

use crate::request::Capability;

/// Why the GPU cannot be injected into a container.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    #[error("no NVIDIA driver found below {}: libcuda.so and libnvidia-ml.so not found", root.display())]
    NoDriver { root: PathBuf },
    /// The driver is installed without its CUDA library, and compute was requested.
    #[error("driver {version} has no libcuda.so.{version}, which compute needs")]
    NoLibcuda { version: String },
    #[error("{path} is missing{because}")]
    NoNode {
        path: String,
        /// The known cause: empty, or beginning with a comma.
        because: String,
        fix: &'static str,
    },
    #[error("no GPU: the driver's module holds none")]
    NoGpu,
    #[error("{asked} GPUs requested, {there} available")]
    TooFew { asked: u32, there: usize },
    #[error("no GPU `{name}` here")]
    UnknownGpu { name: String, known: Vec<String> },
    #[error("{wherein}: no driver capability `{name}`")]
    UnknownCapability { wherein: String, name: String, near: Vec<&'static str> },
    #[error("{wherein}: {why} in `{text}`")]
    BadRequest { wherein: String, text: String, why: &'static str, hint: &'static str },
    #[error("{message} ({why})")]
    Refused {
        /// The line NVIDIA's tools would print.
        message: String,
        /// The requirement that comes nearest to being satisfied.
        why: String,
    },
    #[error("cannot {action} {} in {}", path.display(), root.display())]
    Root { action: &'static str, path: PathBuf, root: PathBuf, source: io::Error },
    #[error("cannot {action} {}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{0}")]
    Hook(String),
    #[error("{what}: {why}")]
    Specification { what: String, why: String },
}

impl InjectError {
    /// The error for a failed operation on a file, named by a verb.
    pub(crate) fn file<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source: source.into() }
    }

    /// `wherein` is the option or variable.
    pub(crate) fn bad_request(wherein: &str, text: &str, why: &'static str, hint: &'static str) -> Self {
        Self::BadRequest { wherein: wherein.to_owned(), text: text.to_owned(), why, hint }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoDriver { .. } => Some(
                "install the driver, or name its root (a driver container's is often /run/nvidia/driver)".to_owned(),
            ),
            Self::NoLibcuda { version } => Some(format!(
                "install the driver's CUDA package (libcuda1, nvidia-driver-cuda) of version {version}, or ask for \
                 utility only"
            )),
            Self::NoNode { fix, .. } => Some((*fix).to_owned()),
            Self::NoGpu => Some("`cudock doctor` says why the driver sees no GPU".to_owned()),
            Self::TooFew { there, .. } => Some(format!("ask for at most {there}, or for `all`")),
            Self::UnknownGpu { known, .. } if known.is_empty() => {
                Some("`cudock doctor` says why the driver sees no GPU".to_owned())
            }
            Self::UnknownGpu { known, .. } => Some(format!("there are: {}", known.join(", "))),
            Self::UnknownCapability { near, .. } if near.is_empty() => {
                let names: Vec<&str> = Capability::ALL.iter().map(|capability| capability.name()).collect();
                Some(format!("there are: {}, and `all`", names.join(", ")))
            }
            Self::UnknownCapability { near, .. } => did_you_mean(near),
            Self::BadRequest { hint, .. } => Some((*hint).to_owned()),
            Self::Refused { .. } => Some(
                "update the driver, take an image of an older CUDA, or set NVIDIA_DISABLE_REQUIRE=1 where the program \
                 itself fits (`cudock check` tells)"
                    .to_owned(),
            ),
            Self::Root { .. } | Self::File { .. } | Self::Hook(_) | Self::Specification { .. } => None,
        }
    }
}

impl Report for InjectError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownGpu { .. }
            | Self::TooFew { .. }
            | Self::UnknownCapability { .. }
            | Self::BadRequest { .. }
            | Self::Hook(_)
            | Self::Specification { .. } => ErrorKind::Input,
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.hint().into_iter().collect()
    }
}
