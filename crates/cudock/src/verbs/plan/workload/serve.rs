//! A service: its requests over the day, and what one instance answers.

use cudock_plan::{DayLoad, PerSecond, Work};
use cudock_project::{DayRate, RequestRate};

use super::asking::{Asking, Given, either};
use crate::failure::Failure;

/// A service of which nothing else is known.
const RATE: RequestRate = RequestRate(1.0);
/// How full instances are kept.
const FILL: u8 = 70;
/// The hours of a day that has a night beside it.
const DAY: (u8, u8) = (8, 20);
/// More requests a second than the world sends.
const MOST_RATE: f64 = 1e9;

impl Asking<'_> {
    pub(super) fn serve(&mut self, of_file: bool) -> Result<Work, Failure> {
        let load = self.load(of_file)?;
        let peak = load.hours.iter().map(|rate| rate.0).fold(0.0, f64::max);
        let fill = self.file().workload.fill.filter(|_| of_file);
        let target_percent = fill.unwrap_or(FILL);
        if fill.is_none() {
            self.assume(
                "workload.fill",
                format!("{FILL} %"),
                "assumed, so that answers stay quick at the peak",
            );
        }
        let replica_rate = if let Some(rate) = self.replica_rate(of_file)? {
            rate
        } else {
            // One instance is enough for all of it: what is most often so, and seen at once if it is not.
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
    fn load(&mut self, of_file: bool) -> Result<DayRate, Failure> {
        let parsed = |flag: &'static str, text: &Option<String>| {
            let rate = text.as_deref().map(str::parse::<DayRate>).transpose();
            rate.map_err(|error| Failure::input(format!("{flag}: {error}")))
        };
        let rate = parsed("--rate", &self.flags.rate)?;
        let night = parsed("--rate-night", &self.flags.rate_night)?;
        let file = self.file().workload.rate.filter(|_| of_file);
        let (load, given) = match (rate, night) {
            (Some(rate), Some(night)) => (self.day_and_night(&rate, &night)?, Given::Flag("--rate")),
            (Some(rate), None) => (rate, Given::Flag("--rate")),
            (None, Some(_)) => {
                return Err(Failure::input("--rate-night needs the rate by day").hint("give it with --rate"));
            }
            (None, None) => {
                if let Some(rate) = file {
                    (rate, Given::Key("workload.rate"))
                } else {
                    let source = "assumed; give it with `rate` or --rate";
                    self.assume("workload.rate", format!("{}/s all day", RATE.0), source);
                    (DayRate::level(RATE), Given::Key("workload.rate"))
                }
            }
        };
        if load.hours.iter().all(|rate| rate.0 == 0.0) {
            return Err(self.wrong(
                given,
                "no requests come at any hour, so there is nothing to serve",
                None,
            ));
        }
        if load.hours.iter().any(|rate| rate.0 > MOST_RATE) {
            return Err(self.wrong(given, "these are more requests than the world sends", None));
        }
        Ok(load)
    }

    fn day_and_night(&mut self, day: &DayRate, night: &DayRate) -> Result<DayRate, Failure> {
        let (from, to) = DAY;
        let [day_rate, ..] = day.hours;
        let [night_rate, ..] = night.hours;
        let level = *day == DayRate::level(day_rate) && *night == DayRate::level(night_rate);
        let shaped = DayRate::shaped(day_rate, night_rate, from, to).filter(|_| level).ok_or_else(|| {
            Failure::input("--rate-night: day and night take one rate each")
                .hint("or give all by --rate, as 5,0@08:00-20:00")
        })?;
        let source = "assumed; other hours are written as --rate 5,0@06:00-22:00";
        self.assume("workload.rate", format!("the day lasts from {from:02}:00 to {to:02}:00 UTC"), source);
        Ok(shaped)
    }

    /// What one instance answers, where that is given or was measured.
    fn replica_rate(&mut self, of_file: bool) -> Result<Option<RequestRate>, Failure> {
        let file = &self.file().workload;
        let flag = self.flags.replica_rate.as_deref().map(str::parse::<RequestRate>).transpose();
        let flag = flag.map_err(|error| Failure::input(format!("--replica-rate: {error}")))?;
        if flag.is_none()
            && let Some(path) = &self.flags.bench
        {
            return self.measured_rate(path, Given::Flag("--bench")).map(Some);
        }
        let of_file_rate = file.replica_rate.filter(|_| of_file);
        let rate = either(flag, "--replica-rate", of_file_rate, "workload.replica_rate");
        match rate {
            Some((RequestRate(rate), given)) if rate <= 0.0 => {
                Err(self.wrong(given, "an instance that answers nothing is of no use", None))
            }
            Some((rate, _)) => Ok(Some(rate)),
            None => match file.bench.as_ref().filter(|_| of_file) {
                Some(path) => {
                    let path = self.beside(path);
                    self.measured_rate(&path, Given::Key("workload.bench")).map(Some)
                }
                None => Ok(None),
            },
        }
    }
}

/// In thousandths; what is more than nothing stays more than nothing.
fn per_second(RequestRate(rate): RequestRate) -> PerSecond {
    let millis = super::wishes::thousandths(rate);
    PerSecond { millis }
}
