//! The outputs of tasks, and their storage beyond the nodes.

use cudock_base::{Environment, Secret, UsageError};

use super::checkpoints::BlobContainer;

/// The blob container of outputs, with its signature.
const STORAGE: &str = "CUDOCK_OUTPUTS";

/// The logs of tasks, and files that match a pattern, in blob storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    pub storage: BlobContainer,
    /// Pattern of the files in the working directory of a task.
    pub pattern: Option<String>,
}

impl Outputs {
    /// The blob container that the environment names. Its signature is a secret.
    pub fn storage(environment: &Environment) -> Result<Option<BlobContainer>, UsageError> {
        environment.get(STORAGE).map(|url| BlobContainer::parse(STORAGE, &url.to_string_lossy())).transpose()
    }

    /// The name of a file of a task, below which run it belongs to.
    pub(crate) fn blob(run_id: &str, task: &str, file: &str) -> String {
        format!("{run_id}/{task}/{file}")
    }

    /// The location of a run's files, without the signature.
    pub fn place(storage: &BlobContainer, run_id: &str) -> String {
        format!("{}/{run_id}/", storage.url())
    }

    /// The URL of the blob container. It grants access by itself.
    pub(crate) fn container(&self) -> Secret {
        Secret::new(format!("{}{}", self.storage.url(), self.storage.signature().expose()))
    }
}
