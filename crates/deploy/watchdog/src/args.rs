//! The flags of `cudock watchdog`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cudock_base::{Timestamp, Usd};
use cudock_project::TimeSpan;

use crate::activity::{Budget, WatchLimits};
use crate::deletion::DeletionCalls;

/// Delete the deployment that this runs in when it is idle or its budget is used up
#[derive(Clone, Debug, Args)]
pub struct WatchdogArgs {
    /// Subscription of the deployment
    #[arg(long, value_name = "ID")]
    pub subscription: String,

    /// Run id of the deployment
    #[arg(long, value_name = "ID")]
    pub run: String,

    /// Name of the virtual machine, which is deallocated if nothing may be deleted
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// Delete it after everything was quiet for this long
    #[arg(long, value_name = "TIME", required_unless_present = "budget")]
    pub idle: Option<TimeSpan>,

    /// Count nothing as idle for this long after the start
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub warm_up: TimeSpan,

    /// Call a GPU idle below this utilization in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    pub threshold: u32,

    /// Delete it before it costs more than this many dollars
    #[arg(long, value_name = "USD", requires = "price")]
    pub budget: Option<Usd>,

    /// What the deployment costs per hour
    #[arg(long, value_name = "USD")]
    pub price: Option<Usd>,

    /// When billing began, in RFC 3339; by default, now
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub billed_since: Option<Timestamp>,

    /// Count the requests of a `cudock serve` or `cudock gateway` on this port
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// Watch this file or directory for output
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// Take a sample this often
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub interval: TimeSpan,
}

fn timestamp(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "expected a time such as 2026-11-16T20:00:00Z".to_owned())
}

impl WatchdogArgs {
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
