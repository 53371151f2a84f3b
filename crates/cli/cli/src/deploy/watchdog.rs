//! The hidden `watchdog`.

use std::path::PathBuf;

use clap::Args;
use cudock_base::{Timestamp, Usd};
use cudock_project::TimeSpan;
use cudock_watchdog::WatchdogOptions;

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
    pub fn options(&self) -> WatchdogOptions {
        let args = self.clone();
        WatchdogOptions {
            subscription: args.subscription,
            run: args.run,
            vm: args.vm,
            idle: args.idle,
            warm_up: args.warm_up,
            threshold: args.threshold,
            budget: args.budget,
            price: args.price,
            billed_since: args.billed_since,
            port: args.port,
            output: args.output,
            interval: args.interval,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn parse(flags: &[&str]) -> Result<WatchdogArgs, clap::Error> {
        let command = WatchdogArgs::augment_args(Command::new("watchdog").no_binary_name(true));
        WatchdogArgs::from_arg_matches(&command.try_get_matches_from(flags)?)
    }

    #[test]
    fn flags_set_the_limits() {
        let args = parse(&["--subscription", "s", "--run", "r", "--idle", "15m"]).unwrap();
        assert_eq!(args.idle.unwrap().0.as_secs(), 900);
        assert_eq!((args.threshold, args.interval.0.as_secs(), args.warm_up.0.as_secs()), (5, 10, 600));
        for wrong in [
            &["--subscription", "s", "--run", "r"][..],
            &["--subscription", "s", "--run", "r", "--budget", "5"],
            &["--subscription", "s", "--run", "r", "--idle", "15"],
            &["--subscription", "s", "--run", "r", "--idle", "1m", "--billed-since", "yesterday"],
            &["--run", "r", "--idle", "1m"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
