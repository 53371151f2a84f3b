//! A watch of the machine that it runs on.

use std::thread;
use std::time::{Duration, Instant};

use cudock_azure::{AzureClient, AzureError, Call, ClientSettings, SignInMethod, SignInOptions};
use cudock_base::{Environment, ErrorKind, Report, Timestamp};

use crate::activity::{ActivitySample, EndReason};
use crate::deletion::DeletionEnd;
use crate::options::WatchdogOptions;
use crate::sensors::Sensors;
use crate::watch::{WatchIo, watch};

/// How long the client retries a request. The deletion has retries of its own.
const PATIENCE: Duration = Duration::from_secs(20);

struct LiveIo<L> {
    started: Instant,
    sensors: Sensors,
    client: AzureClient,
    log: L,
}

impl<L: FnMut(&str)> WatchIo for LiveIo<L> {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep_until(&mut self, time: Duration) {
        thread::sleep(time.saturating_sub(self.now()));
    }

    fn sample(&mut self) -> ActivitySample {
        self.sensors.sample()
    }

    fn send(&mut self, call: &Call) -> Option<u16> {
        match self.client.send(call) {
            Ok(answer) => Some(answer.status),
            Err(error) => {
                (self.log)(&error.to_string());
                error.status()
            }
        }
    }

    fn log(&mut self, line: &str) {
        (self.log)(line);
    }
}

/// Why a deployment was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Azure(#[from] AzureError),
    #[error("cannot delete the deployment ({reason}): Azure refused every request")]
    NotDeleted { reason: EndReason },
}

impl Report for WatchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Azure(error) => error.kind(),
            Self::NotDeleted { .. } => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Azure(error) => error.hints(),
            Self::NotDeleted { .. } => {
                vec![
                    "give the identity of the deployment the role Contributor on its resource group"
                        .to_owned(),
                ]
            }
        }
    }
}

/// Watches this machine, and deletes its deployment by its managed identity.
pub fn run(
    options: &WatchdogOptions,
    environment: &Environment,
    log: impl FnMut(&str),
) -> Result<(), WatchError> {
    let sign_in = SignInOptions { method: Some(SignInMethod::ManagedIdentity), ..SignInOptions::default() };
    let settings = ClientSettings { patience: PATIENCE, ..ClientSettings::default() };
    let client = AzureClient::from_environment(environment, &sign_in, settings)?;
    let sensors = Sensors::start(options.interval.0, options.port, options.output.clone());
    let limits = options.limits(Timestamp::now());
    let mut io = LiveIo { started: Instant::now(), sensors, client, log };
    let (reason, end) = watch(&limits, &options.calls(), &mut io);
    match end {
        DeletionEnd::Deleted => Ok(()),
        DeletionEnd::Deallocated => {
            io.log("deallocated the machine; its disk and address still cost");
            Ok(())
        }
        DeletionEnd::Failed => Err(WatchError::NotDeleted { reason }),
    }
}
