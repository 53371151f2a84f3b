//! A service: its requests over the day, and what one replica answers.

use cudock_base::UsageError;
use cudock_plan::{DayLoad, PerSecond, Work};
use cudock_project::{DayRate, RequestRate};

use crate::assumptions::{Daytime, assumptions};
use crate::builder::{Builder, Origin, flag_or_key};
use crate::wishes::thousandths;

/// The highest rate that is accepted, in requests per second: more is a typing error.
const MAX_RATE: f64 = 1e9;

impl Builder<'_> {
    pub(crate) fn serve(&mut self, of_file: bool) -> Result<Work, UsageError> {
        let load = self.load(of_file)?;
        let peak = load.hours.iter().map(|rate| rate.0).fold(0.0, f64::max);
        let fill = self.file().workload.fill.filter(|_| of_file);
        let target_percent = fill.unwrap_or_else(|| self.default(&assumptions().fill));
        let replica_rate = if let Some(rate) = self.replica_rate(of_file)? {
            rate
        } else {
            // One replica is enough for everything: the most common case, and easy to see in a plan if it is not.
            let rate = peak / f64::from(target_percent) * 100.0;
            let source = "assumed: one instance answers all requests; measure it with `cudock bench`, or give \
                              `replica_rate` or --replica-rate";
            self.assume("workload.replica_rate", format!("{rate:.1}/s"), source);
            RequestRate(rate)
        };
        let load = DayLoad { hours: load.hours.map(per_second) };
        let replica_rate = PerSecond { millis: per_second(replica_rate).millis.max(1) };
        Ok(Work::Serve { load, replica_rate, target_percent })
    }

    /// Requests over the day.
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
                return Err(UsageError::new("--rate-night needs the rate by day").hint("give it with --rate"));
            }
            (None, None) => {
                if let Some(rate) = file {
                    (rate, Origin::Key("workload.rate"))
                } else {
                    let rate = RequestRate(self.default(&assumptions().rate));
                    (DayRate::level(rate), Origin::Key("workload.rate"))
                }
            }
        };
        if load.hours.iter().all(|rate| rate.0 == 0.0) {
            return Err(self.invalid(
                given,
                "no requests come at any hour, so there is nothing to serve",
                None,
            ));
        }
        if load.hours.iter().any(|rate| rate.0 > MAX_RATE) {
            return Err(self.invalid(given, "these are more requests than the world sends", None));
        }
        Ok(load)
    }

    fn day_and_night(&mut self, day: &DayRate, night: &DayRate) -> Result<DayRate, UsageError> {
        let Daytime { from, to } = assumptions().daytime.value;
        let [day_rate, ..] = day.hours;
        let [night_rate, ..] = night.hours;
        let level = *day == DayRate::level(day_rate) && *night == DayRate::level(night_rate);
        let shaped = DayRate::shaped(day_rate, night_rate, from, to).filter(|_| level).ok_or_else(|| {
            UsageError::new("--rate-night: day and night take one rate each")
                .hint("or give all by --rate, as 5,0@08:00-20:00")
        })?;
        self.default(&assumptions().daytime);
        Ok(shaped)
    }

    /// What one replica answers, if that is given or was measured.
    fn replica_rate(&mut self, of_file: bool) -> Result<Option<RequestRate>, UsageError> {
        let file = &self.file().workload;
        let flag = self.flags.replica_rate.as_deref().map(str::parse::<RequestRate>).transpose();
        let flag = flag.map_err(|error| UsageError::new(format!("--replica-rate: {error}")))?;
        if flag.is_none() && self.flags.bench.is_some() {
            return self.measured_rate();
        }
        let of_file_rate = file.replica_rate.filter(|_| of_file);
        let rate = flag_or_key(flag, "--replica-rate", of_file_rate, "workload.replica_rate");
        match rate {
            Some((RequestRate(rate), given)) if rate <= 0.0 => {
                Err(self.invalid(given, "an instance that answers nothing is of no use", None))
            }
            Some((rate, _)) => Ok(Some(rate)),
            None if of_file => self.measured_rate(),
            None => Ok(None),
        }
    }
}

/// In thousandths; a rate above zero stays above zero.
fn per_second(RequestRate(rate): RequestRate) -> PerSecond {
    PerSecond { millis: thousandths(rate) }
}
