//! How destinations are reached, and what was written to them.

use std::path::PathBuf;
use std::sync::Arc;

use cudock_base::Environment;
use cudock_http::Progress;
use cudock_registry::{Client, Options, Reference, daemon};

use super::error::WriteError;
use crate::manifest::Platform;

/// How destinations are reached.
pub struct WriteOptions {
    /// The platform for destinations that hold only one; this machine's without it.
    pub platform: Option<Platform>,
    /// The registry client; none to forbid registry access.
    pub client: Option<Arc<Client>>,
    /// The sockets of container daemons.
    pub sockets: Vec<PathBuf>,
    /// A directory for temporary files.
    pub scratch: PathBuf,
    pub progress: Arc<dyn Progress>,
}

impl WriteOptions {
    /// Options as the user and the system have configured them.
    pub fn from_environment(progress: Arc<dyn Progress>) -> Result<Self, WriteError> {
        Self::in_environment(&Environment::of_process(), progress)
    }

    /// Options as this environment configures them.
    pub fn in_environment(
        environment: &Environment,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, WriteError> {
        let mut options = Options::from_environment(environment)?;
        options.progress = Some(Arc::clone(&progress));
        let scratch = options.store.directory().join("scratch");
        let client = Some(Arc::new(Client::new(options)?));
        Ok(Self { platform: None, client, sockets: daemon::sockets(environment), scratch, progress })
    }

    pub(super) fn client(&self, destination: &Reference) -> Result<&Client, WriteError> {
        self.client.as_deref().ok_or_else(|| WriteError::Unsupported {
            destination: destination.to_string(),
            reason: "registry access is disabled".to_owned(),
        })
    }
}

/// The result of writing an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The digest of the image.
    pub digest: String,
    pub bytes_sent: u64,
    /// Bytes that the registry took from another repository.
    pub bytes_mounted: u64,
    /// Bytes that were already there.
    pub bytes_present: u64,
}
