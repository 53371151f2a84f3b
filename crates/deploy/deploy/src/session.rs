//! A command that works on deployments: sign-in, journal, clock and Ctrl-C.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudock_azure::{
    AzureClient, AzureError, BlobContainer, Call, ClientSettings, Outputs, Plane, SignInOptions,
};
use cudock_base::{Environment, UsageError};
use cudock_http::Method;
use cudock_sweep_run::watch_interrupts;

use crate::clock::SystemClock;
use crate::create::phase::{PhaseLimits, PhaseProgress};
use crate::create::requester::{Owner, Requester};
use crate::create::run::Deployer;
use crate::error::DeployError;
use crate::journal::{Journal, journal_directory};

/// An authenticated client and the deployment journal.
pub struct Session {
    /// Not canceled by Ctrl-C.
    pub client: AzureClient,
    /// Ends its requests when the command is interrupted.
    pub interruptible: AzureClient,
    pub journal: Journal,
    pub clock: SystemClock,
    pub interrupted: Arc<AtomicBool>,
    /// Storage of logs that outlive the deployment.
    pub outputs: Option<BlobContainer>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens the journal and prepares the client; nothing is sent yet. `prompt` shows what a device code needs.
    pub fn open(
        environment: &Environment,
        prompt: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, DeployError> {
        let journal = Journal::open(&journal_directory(environment)?)?;
        Self::with_journal(environment, journal, prompt)
    }

    /// Opens a session with a journal that is already open.
    pub fn with_journal(
        environment: &Environment,
        journal: Journal,
        prompt: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, DeployError> {
        let options = SignInOptions { prompt: Some(Arc::new(prompt)), ..SignInOptions::default() };
        let client = AzureClient::from_environment(environment, &options, ClientSettings::default())
            .map_err(cannot_use)?;
        let interrupted = watch_interrupts().map_err(|error| {
            DeployError::Usage(UsageError::new(format!("cannot handle signals: {error}")))
        })?;
        Ok(Self {
            interruptible: client.cancelable_by(Arc::clone(&interrupted)),
            client,
            journal,
            clock: SystemClock::start(),
            interrupted,
            outputs: Outputs::storage(environment)?,
        })
    }

    pub fn deployer<'a>(&'a self, on_progress: &'a dyn Fn(&PhaseProgress<'_>)) -> Deployer<'a> {
        Deployer {
            cloud: &self.interruptible,
            deleter: &self.client,
            journal: &self.journal,
            clock: &self.clock,
            interrupted: &self.interrupted,
            on_progress,
            outputs: self.outputs.as_ref(),
            limits: PhaseLimits::default(),
        }
    }

    /// The requester of new deployments, with the time by the services' clock.
    pub fn requester(&self, environment: &Environment) -> Result<Requester, DeployError> {
        let subscription = self.subscription()?;
        let owner = Owner::new(environment, Some(self.journal.state_id().to_owned()));
        Ok(Requester { subscription, owner, now: self.client.now() })
    }

    /// The subscription, after a request that proves that it can be used and returns the time by
    /// the services' clock.
    fn subscription(&self) -> Result<String, DeployError> {
        let subscription = self.interruptible.subscription().map_err(cannot_use)?;
        let path = format!("/subscriptions/{subscription}?api-version=2022-12-01");
        let call = Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None };
        self.interruptible.send(&call).map_err(cannot_use)?;
        Ok(subscription)
    }
}

fn cannot_use(error: AzureError) -> DeployError {
    DeployError::cloud("cannot use Azure", error.into())
}

/// The journal of the user, if there is one.
pub fn existing_journal(environment: &Environment) -> Result<Option<Journal>, DeployError> {
    match environment.state_directory() {
        Some(directory) => Ok(Journal::open_existing(Path::new(&directory))?),
        None => Ok(None),
    }
}
