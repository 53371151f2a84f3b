use cudock_base::{ErrorKind, Report};
use cudock_compat::GatherError;
use cudock_fatbin::SlimError;
use cudock_image::write::WriteError;

/// Why an image was not slimmed.
#[derive(Debug, thiserror::Error)]
pub enum SlimImageError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error(transparent)]
    Slim(#[from] SlimError),
    /// The slimmed image would not do what the image does.
    #[error("the slimmed image for {platform} would have another verdict for {target}: {reason}")]
    VerdictChanged { platform: String, target: String, reason: String },
}

impl Report for SlimImageError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Write(error) => error.kind(),
            Self::Gather(error) => error.kind(),
            Self::Slim(_) | Self::VerdictChanged { .. } => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Write(error) => error.hints(),
            Self::Gather(error) => error.hints(),
            Self::Slim(_) => vec!["`cudock check IMAGE --gpu GPU` says what the image runs on".to_owned()],
            Self::VerdictChanged { .. } => {
                vec!["nothing was written; please report this with the name of the image".to_owned()]
            }
        }
    }
}
