//! Trials, their outcomes, and the replay of a search over them.

use cudock_base::bug::Parts;
use std::time::Duration;

use super::measurement::{Measurement, Score};
use super::space::Config;

/// A measurement to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub config: Config,
    /// Clients of the closed loop.
    pub clients: usize,
    pub duration: Duration,
    /// Whether it is measured again together with the other finalists, whose servers stay up meanwhile.
    pub is_final: bool,
}

/// A trial that was carried out.
#[derive(Clone, Debug)]
pub struct Record {
    pub trial: Trial,
    /// The measurement, or why there is none.
    pub outcome: Result<Measurement, String>,
    /// How long the server took to start, if it was started for this trial.
    pub start: Option<Duration>,
    /// Time since the search began, at the end of the trial.
    pub elapsed: Duration,
}

impl Record {
    pub(crate) fn score(&self, target_p99: Option<Duration>) -> Score {
        self.outcome.as_ref().map_or(Score::Failed, |measured| measured.score(target_p99))
    }
}

/// Why a search does not go on by itself.
#[derive(Debug)]
pub(crate) enum Pause {
    /// It needs this measurement first.
    Needs(Trial),
    OutOfTime,
}

/// The records of a search while it is repeated from its beginning.
///
/// A search is written as plain code that requests one measurement after the other. To find out
/// what it needs next, it runs again over everything recorded so far: earlier requests return their
/// records, in the same order, and the first request without a record is the next trial. It decides
/// by nothing but the records it has seen, so each repetition takes the same path.
#[derive(Debug)]
pub(crate) struct Replay<'r> {
    records: &'r [Record],
    seen: usize,
}

impl<'r> Replay<'r> {
    pub(crate) fn new(records: &'r [Record]) -> Self {
        Self { records, seen: 0 }
    }

    /// The records up to here.
    pub(crate) fn seen(&self) -> &'r [Record] {
        self.records.part(..self.seen)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.seen().last().map_or(Duration::ZERO, |record| record.elapsed)
    }

    /// The longest start so far. The first one, which may read everything from disk, counts only if it is the only one.
    pub(crate) fn start_time(&self) -> Duration {
        let mut starts = self.seen().iter().filter_map(|record| record.start);
        let first = starts.next().unwrap_or_default();
        starts.max().unwrap_or(first)
    }

    /// The average time of a measurement in addition to its duration and the start of its server.
    pub(crate) fn overhead(&self) -> Option<Duration> {
        let trials = u32::try_from(self.seen).ok().filter(|trials| *trials > 0)?;
        let starts: Duration = self.seen().iter().filter_map(|record| record.start).sum();
        let durations: Duration = self.seen().iter().map(|record| record.trial.duration).sum();
        Some(self.elapsed().saturating_sub(starts + durations) / trials)
    }

    /// The record of a trial, if it was carried out.
    pub(crate) fn ask(&mut self, trial: Trial) -> Result<&'r Record, Pause> {
        let record = self.records.get(self.seen).ok_or(Pause::Needs(trial))?;
        self.seen += 1;
        Ok(record)
    }

    /// Whether a combination was not tried, and nothing suggests that it fails.
    pub(crate) fn is_new(&self, config: &Config) -> bool {
        !self.seen().iter().any(|record| record.trial.config == *config) && !self.is_avoided(config)
    }

    /// Whether a combination shares a value that failed: one that made the only difference to a combination that works.
    fn is_avoided(&self, config: &Config) -> bool {
        let (works, failed): (Vec<_>, Vec<_>) = self.seen().iter().partition(|record| record.outcome.is_ok());
        failed.iter().any(|failed| {
            let failed = &failed.trial.config;
            works.iter().any(|works| {
                let mut differences = failed.differences(&works.trial.config);
                match (differences.next(), differences.next()) {
                    (Some(axis), None) => config.value(axis) == failed.value(axis),
                    _ => false,
                }
            })
        })
    }
}
