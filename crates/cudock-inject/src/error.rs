use std::io;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report, did_you_mean};

use crate::request::Capability;

/// Why the GPU cannot be put into a container.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// There is no driver where it was looked for.
    #[error("no NVIDIA driver found below {}: libcuda.so and libnvidia-ml.so not found", root.display())]
    NoDriver {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// The driver is there without its CUDA library, and compute was asked for.
    #[error("driver {version} has no libcuda.so.{version}, which compute needs")]
    NoLibcuda {
        /// The driver's version.
        version: String,
    },
    /// A device node without which the container is useless.
    #[error("{path} is missing{because}")]
    NoNode {
        /// The node.
        path: String,
        /// What is known about why: empty, or beginning with a comma.
        because: String,
        fix: &'static str,
    },
    /// GPUs were asked for, and the driver has none.
    #[error("no GPU: the driver's module holds none")]
    NoGpu,
    /// More GPUs than there are.
    #[error("{asked} GPUs requested, {there} available")]
    TooFew {
        /// How many were asked for.
        asked: u32,
        there: usize,
    },
    /// A GPU or MIG device that is not there.
    #[error("no GPU `{name}` here")]
    UnknownGpu {
        /// What was asked for.
        name: String,
        known: Vec<String>,
    },
    /// A driver capability that does not exist.
    #[error("{wherein}: no driver capability `{name}`")]
    UnknownCapability {
        /// The option or variable it stands in.
        wherein: String,
        /// What was written.
        name: String,
        /// Names that are near.
        near: Vec<&'static str>,
    },
    /// A request that cannot be read.
    #[error("{wherein}: {why} in `{text}`")]
    BadRequest {
        /// The option or variable.
        wherein: String,
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// The image's requirements do not hold.
    #[error("{message} ({why})")]
    Refused {
        /// The line NVIDIA's tools would print.
        message: String,
        /// What would have come nearest.
        why: String,
    },
    /// A path of a root that cannot be made or written.
    #[error("cannot {action} {} in {}", path.display(), root.display())]
    Root {
        /// What was tried.
        action: &'static str,
        /// The path inside the root.
        path: PathBuf,
        root: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file or directory that cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A hook was called with something that is not a container's state.
    #[error("{0}")]
    Hook(String),
    /// A CDI specification that cannot be read or written.
    #[error("{what}: {why}")]
    Specification {
        /// The file, or what was to be written.
        what: String,
        /// Why not.
        why: String,
    },
}

impl InjectError {
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
