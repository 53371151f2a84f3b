//! The settings of a watchdog.

use std::path::PathBuf;
use std::time::Duration;

use cudock_base::{Timestamp, Usd};
use cudock_project::TimeSpan;

use crate::activity::{Budget, WatchLimits};
use crate::deletion::DeletionCalls;

/// The deployment that a watchdog observes, and its limits.
#[derive(Clone, Debug)]
pub struct WatchdogOptions {
    /// The subscription of the deployment.
    pub subscription: String,
    /// The id of the deployment.
    pub run: String,
    /// The virtual machine that is deallocated if nothing may be deleted.
    pub vm: Option<String>,
    /// Delete it after everything was quiet for this long.
    pub idle: Option<TimeSpan>,
    /// Nothing counts as idle for this long after the start.
    pub warm_up: TimeSpan,
    /// A GPU is idle below this utilization in percent.
    pub threshold: u32,
    pub budget: Option<Usd>,
    /// Price per hour.
    pub price: Option<Usd>,
    /// When billing began; by default, now.
    pub billed_since: Option<Timestamp>,
    /// Port of a server whose requests count as activity.
    pub port: Option<u16>,
    /// A file or directory that is watched for output.
    pub output: Option<PathBuf>,
    /// Time between samples.
    pub interval: TimeSpan,
}

impl WatchdogOptions {
    pub fn limits(&self, now: Timestamp) -> WatchLimits {
        let began = self.billed_since.unwrap_or(now);
        let before = now.millis().unwrap_or(0).saturating_sub(began.millis().unwrap_or(0));
        WatchLimits {
            idle: self.idle.map(|time| time.0),
            warm_up: self.warm_up.0,
            interval: self.interval.0,
            threshold_percent: self.threshold,
            budget: self.budget.zip(self.price).map(|(limit, per_hour)| Budget {
                limit,
                per_hour,
                billed_before: Duration::from_millis(before),
            }),
        }
    }

    pub fn calls(&self) -> DeletionCalls {
        DeletionCalls::of_run(&self.subscription, &self.run, self.vm.as_deref())
    }
}
