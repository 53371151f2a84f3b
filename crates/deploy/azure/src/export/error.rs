//! Why a deployment cannot be exported.

use cudock_base::{ErrorKind, Report};
use cudock_facts::services::AzureService;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("cannot export {service:?} as Machine Learning files")]
    NotMachineLearning { service: AzureService },
    #[error("cannot export secrets that are a part of the machine's start script")]
    SecretsInData,
    /// A part of a request for which the format has no words.
    #[error("cannot export step `{step}`: {reason}")]
    Unsupported { step: String, reason: String },
}

impl ExportError {
    pub(super) fn unsupported(step: &str, reason: impl Into<String>) -> Self {
        Self::Unsupported { step: step.to_owned(), reason: reason.into() }
    }
}

impl Report for ExportError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NotMachineLearning { .. } => vec!["use `--on ml`, or another format".to_owned()],
            Self::SecretsInData => {
                vec![
                    "leave secret variables out, and pull the image with an identity (`--pull-identity`)"
                        .to_owned(),
                ]
            }
            Self::Unsupported { .. } => vec!["`cudock export az` can express every request".to_owned()],
        }
    }
}
