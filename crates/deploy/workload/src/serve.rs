//! A service: its requests over the day, and the capacity of one replica.

use cudock_base::{Rate, UsageError};
use cudock_plan::{DayLoad, Work};
use cudock_project::{DayRate, RequestRate};

use crate::assumptions::{Daytime, assumptions};
use crate::builder::{WorkloadBuilder, flag_or_key};
use crate::origin::Origin;

/// The highest valid rate, a billion requests per second: more is a typo.
const MAX_RATE: Rate = Rate::from_nanos_per_day(86_400 * 1_000_000_000 * 1_000_000_000);

impl WorkloadBuilder<'_> {
    pub(crate) fn serve(&mut self, of_file: bool) -> Result<Work, UsageError> {
        let load = self.load(of_file)?;
        let hours = load.hours.map(|RequestRate(rate)| rate);
        let peak = hours.into_iter().max().unwrap_or_default();
        let fill = self.file().workload.fill.filter(|_| of_file);
        let target_percent = fill.unwrap_or_else(|| self.default(&assumptions().fill));
        let replica_rate = if let Some(rate) = self.replica_rate(of_file)? {
            rate
        } else {
            // One replica is the most common case, and easy to notice in a plan if it is wrong.
            let rate = peak.share(100, u128::from(target_percent));
            let source = "assumed: one instance is enough; measure it with `cudock bench`, or give \
                              `replica_rate` or --replica-rate";
            self.assume("workload.replica_rate", rate.to_string(), source);
            rate
        };
        Ok(Work::Serve { load: DayLoad { hours }, replica_rate, target_percent })
    }

    fn load(&mut self, of_file: bool) -> Result<DayRate, UsageError> {
        let parsed = |flag: &'static str, text: &Option<String>| {
            let rate = text.as_deref().map(str::parse::<DayRate>).transpose();
            rate.map_err(|error| UsageError::new(format!("{flag}: {error}")))
        };
        let rate = parsed("--rate", &self.flags.rate)?;
        let night = parsed("--rate-night", &self.flags.rate_night)?;
        let file = self.file().workload.rate.filter(|_| of_file);
        let (load, given) = match (rate, night) {
            (Some(rate), Some(night)) => (self.day_and_night(&rate, &night)?, Origin::Flag("--rate")),
            (Some(rate), None) => (rate, Origin::Flag("--rate")),
            (None, Some(_)) => {
                return Err(UsageError::new("--rate-night also needs the rate by day").hint("add --rate"));
            }
            (None, None) => {
                if let Some(rate) = file {
                    (rate, Origin::Key("workload.rate"))
                } else {
                    let rate = self.default(&assumptions().rate);
                    (DayRate::level(rate), Origin::Key("workload.rate"))
                }
            }
        };
        if load.hours.iter().all(|rate| rate.0.is_zero()) {
            return Err(self.invalid(given, "no hour has any requests", None));
        }
        if load.hours.iter().any(|rate| rate.0 > MAX_RATE) {
            return Err(self.invalid(given, "exceeds the highest rate, a billion requests per second", None));
        }
        Ok(load)
    }

    fn day_and_night(&mut self, day: &DayRate, night: &DayRate) -> Result<DayRate, UsageError> {
        let Daytime { from, to } = assumptions().daytime.value;
        let [day_rate, ..] = day.hours;
        let [night_rate, ..] = night.hours;
        let level = *day == DayRate::level(day_rate) && *night == DayRate::level(night_rate);
        let shaped = DayRate::shaped(day_rate, night_rate, from, to).filter(|_| level).ok_or_else(|| {
            UsageError::new("--rate-night: --rate and --rate-night take one rate each")
                .hint("use --rate 5,0@08:00-20:00 for other shapes")
        })?;
        self.default(&assumptions().daytime);
        Ok(shaped)
    }

    /// The capacity of one replica, if that is given or was measured.
    fn replica_rate(&mut self, of_file: bool) -> Result<Option<Rate>, UsageError> {
        let file = &self.file().workload;
        let flag = self.flags.replica_rate.as_deref().map(str::parse::<RequestRate>).transpose();
        let flag = flag.map_err(|error| UsageError::new(format!("--replica-rate: {error}")))?;
        if flag.is_none() && self.flags.bench.is_some() {
            return self.measured_rate();
        }
        let of_file_rate = file.replica_rate.filter(|_| of_file);
        let rate = flag_or_key(flag, "--replica-rate", of_file_rate, "workload.replica_rate");
        match rate {
            Some((RequestRate(rate), given)) if rate.is_zero() => {
                Err(self.invalid(given, "must be larger than zero", None))
            }
            Some((RequestRate(rate), _)) => Ok(Some(rate)),
            None if of_file => self.measured_rate(),
            None => Ok(None),
        }
    }
}
