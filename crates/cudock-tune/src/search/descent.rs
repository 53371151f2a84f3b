//! The search for the fastest combination: coordinate descent over the axes, then a final between the best.
//!
//! A start of a server may take seconds, and a measurement has noise of a few percent. So combinations are compared with
//! short measurements, each at the load that suits it, and only the best are measured for longer, one after the other in
//! several rounds.

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{Pause, Record, Replay, Trial};
use super::ladder::Ladder;
use super::measurement::{Measurement, Score};
use super::space::{Config, Space};

/// The share by which a combination or load must be better: less is noise.
const GAIN: f64 = 0.01;
/// A combination below this share of the best at the same load is not tried at others.
const HOPELESS: f64 = 0.8;
/// The same if it differs only in settings that do not change how many clients it needs.
const HOPELESS_ALIKE: f64 = 0.97;
/// Finalists beside the current settings, the share of the best they must have, and how often each is measured.
const FINALISTS: usize = 3;
const FINALIST_SHARE: f64 = 0.9;
const FINAL_ROUNDS: u32 = 2;
/// Responses that a measurement should have, and the most time it may take for them, as a multiple of the usual.
const RESPONSES: f64 = 150.0;
const LONGEST: f64 = 3.0;

#[derive(Clone, Debug)]
pub struct SearchSettings {
    /// All time, with the starts of servers. `None` for no limit.
    pub budget: Option<Duration>,
    pub target_p99: Option<Duration>,
    pub ladder: Ladder,
    /// Clients of the first measurement.
    pub first_clients: usize,
    /// Rows of a request.
    pub rows: usize,
    pub duration: Duration,
    /// What a measurement takes in addition to its duration.
    pub overhead: Duration,
    /// Whether every combination is measured at every load.
    pub is_exhaustive: bool,
}

/// A search that asks for trials ([`Self::next_trial`]) and is told their outcomes ([`Self::record`]); it does no I/O.
pub struct Search {
    space: Space,
    settings: SearchSettings,
    records: Vec<Record>,
}

/// A combination at its best load so far.
#[derive(Clone, Debug, PartialEq)]
struct Standing {
    config: Config,
    rung: usize,
    score: Score,
    rows_per_second: f64,
}

impl Standing {
    fn beats(&self, other: &Self) -> bool {
        self.score.beats(other.score, GAIN)
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    pub config: Config,
    pub clients: usize,
    pub measured: Measurement,
}

/// A combination while its best load is searched.
struct Climb<'c> {
    best: Standing,
    /// Loads that were measured.
    tried: Vec<usize>,
    /// The best combination so far.
    leader: Option<&'c Standing>,
}

/// What a search knows while it goes on.
struct Progress {
    best: Standing,
    /// For each change of one setting its last effect: the axis, the value before and after, and the ratio of the scores.
    effects: BTreeMap<(usize, usize, usize), f64>,
}

impl Progress {
    /// Remembers the effect of a single change.
    fn learn(&mut self, tried: &Standing) {
        let mut differences = tried.config.differences(&self.best.config);
        if let (Some(axis), None) = (differences.next(), differences.next()) {
            let (before, after) = (self.best.config.value(axis), tried.config.value(axis));
            let ratio = tried.score.ratio(self.best.score);
            self.effects.insert((axis, before, after), ratio);
            self.effects.insert((axis, after, before), 1.0 / ratio.max(f64::MIN_POSITIVE));
        }
    }

    /// The share of the best score that a combination would have if its changes acted independently.
    fn expected_share(&self, config: &Config) -> f64 {
        let best = &self.best.config;
        let effect = |axis| self.effects.get(&(axis, best.value(axis), config.value(axis)));
        config.differences(best).map(|axis| effect(axis).copied().unwrap_or(FINALIST_SHARE)).product()
    }

    /// Whether a combination is new and its change was not clearly bad before, beside other settings.
    fn is_worthwhile(&self, replay: &Replay<'_>, config: &Config) -> bool {
        self.expected_share(config) > FINALIST_SHARE - GAIN && replay.is_new(config)
    }
}

impl Search {
    pub fn new(space: Space, settings: SearchSettings) -> Self {
        Self { space, settings, records: Vec::new() }
    }

    pub fn settings(&self) -> &SearchSettings {
        &self.settings
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What to measure next; `None` at the end of the search.
    pub fn next_trial(&self) -> Option<Trial> {
        let mut replay = Replay::new(&self.records);
        let explored = if self.settings.is_exhaustive {
            self.measure_all(&mut replay)
        } else {
            self.explore(&mut replay)
        };
        let ended = match explored {
            Ok(()) | Err(Pause::OutOfTime) => self.finals(&mut replay),
            needs => needs,
        };
        match ended {
            Err(Pause::Needs(trial)) => Some(trial),
            Ok(()) | Err(Pause::OutOfTime) => None,
        }
    }

    /// Records the outcome of the trial that [`Self::next_trial`] returned.
    pub fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    /// The best combination so far: of the finalists if there was a final. Nothing less than a real gain replaces the
    /// current settings.
    pub fn best(&self) -> Option<Best> {
        let score = |best: &Best| best.measured.score(self.settings.target_p99);
        let mut best: Option<Best> = None;
        for finalist in self.records.iter().filter_map(|record| self.final_of(&record.trial.config)) {
            if best.as_ref().is_none_or(|best| score(&finalist) > score(best)) {
                best = Some(finalist);
            }
        }
        let best = best.or_else(|| self.best_of(|_| true))?;
        let current = self.current().filter(|current| !score(&best).beats(score(current), GAIN));
        Some(current.unwrap_or(best))
    }

    /// The combination that the search started from, at its best load.
    pub fn current(&self) -> Option<Best> {
        let current = &self.space.current;
        self.final_of(current).or_else(|| self.best_of(|config| config == current))
    }

    /// The mean of what a combination reached in the final, at its last load there.
    fn final_of(&self, config: &Config) -> Option<Best> {
        let is_meant = |record: &&Record| record.trial.is_final && record.trial.config == *config;
        let clients = self.records.iter().rfind(is_meant)?.trial.clients;
        let finals = self.records.iter().filter(is_meant).filter(|record| record.trial.clients == clients);
        let runs: Vec<Measurement> = finals.filter_map(|record| record.outcome.clone().ok()).collect();
        Some(Best { config: config.clone(), clients, measured: Measurement::mean(&runs)? })
    }

    fn best_of(&self, is_meant: impl Fn(&Config) -> bool) -> Option<Best> {
        let meant =
            self.records.iter().filter(|record| !record.trial.is_final && is_meant(&record.trial.config));
        let mut best: Option<(Score, Best)> = None;
        for record in meant {
            let Ok(measured) = record.outcome else { continue };
            let score = record.score(self.settings.target_p99);
            if best.as_ref().is_none_or(|(highest, _)| score > *highest) {
                let Trial { config, clients, .. } = record.trial.clone();
                best = Some((score, Best { config, clients, measured }));
            }
        }
        best.map(|(_, best)| best)
    }

    /// Changes one setting at a time while that helps, then two at a time.
    fn explore(&self, replay: &mut Replay<'_>) -> Result<(), Pause> {
        let best = self.climb(replay, &self.space.current, None)?;
        let mut progress = Progress { best, effects: BTreeMap::new() };
        for guess in &self.space.guesses {
            if (self.space.is_valid)(guess) && replay.is_new(guess) {
                self.attempt(replay, &mut progress, guess)?;
            }
        }
        loop {
            let before = progress.best.config.clone();
            for (axis, shape) in self.space.axes.iter().enumerate() {
                if shape.is_ordered {
                    self.walk_axis(replay, &mut progress, axis)?;
                } else {
                    self.scan_axis(replay, &mut progress, axis, shape.values)?;
                }
            }
            if progress.best.config != before {
                continue;
            }
            let Some(pair) = self.most_promising(replay, &progress) else { return Ok(()) };
            self.attempt(replay, &mut progress, &pair)?;
        }
    }

    fn measure_all(&self, replay: &mut Replay<'_>) -> Result<(), Pause> {
        for config in self.space.all() {
            for rung in self.settings.ladder.grid() {
                self.measure(replay, &config, rung, None)?;
            }
        }
        Ok(())
    }

    /// Tries a combination; returns whether it is the best now.
    fn attempt(
        &self,
        replay: &mut Replay<'_>,
        progress: &mut Progress,
        config: &Config,
    ) -> Result<bool, Pause> {
        let tried = self.climb(replay, config, Some(&progress.best))?;
        progress.learn(&tried);
        let is_better = tried.beats(&progress.best);
        if is_better {
            progress.best = tried;
        }
        Ok(is_better)
    }

    /// Tries every value of an axis.
    fn scan_axis(
        &self,
        replay: &mut Replay<'_>,
        progress: &mut Progress,
        axis: usize,
        values: usize,
    ) -> Result<(), Pause> {
        for value in 0..values {
            let config = progress.best.config.with(axis, value);
            if (self.space.is_valid)(&config) && progress.is_worthwhile(replay, &config) {
                self.attempt(replay, progress, &config)?;
            }
        }
        Ok(())
    }

    /// Goes along an axis while that helps, in the direction in which it does.
    fn walk_axis(&self, replay: &mut Replay<'_>, progress: &mut Progress, axis: usize) -> Result<(), Pause> {
        for step in [1, -1] {
            let mut has_moved = false;
            while let Some(config) = self.space.moved(&progress.best.config, axis, step) {
                if !progress.is_worthwhile(replay, &config) || !self.attempt(replay, progress, &config)? {
                    break;
                }
                has_moved = true;
            }
            if has_moved {
                break;
            }
        }
        Ok(())
    }

    /// The untried combination of two changes, or of one that is further away, that is expected to come nearest to the best.
    fn most_promising(&self, replay: &Replay<'_>, progress: &Progress) -> Option<Config> {
        let best = &progress.best.config;
        let mut single: Vec<(usize, usize, f64)> = Vec::new();
        for (axis, shape) in self.space.axes.iter().enumerate() {
            for value in (0..shape.values).filter(|value| *value != best.value(axis)) {
                single.push((axis, value, progress.expected_share(&best.with(axis, value))));
            }
        }
        let mut candidates: Vec<(f64, [(usize, usize); 2])> = Vec::new();
        for (index, &(axis, value, share)) in single.iter().enumerate() {
            candidates.push((share, [(axis, value); 2]));
            for &(other, other_value, other_share) in single.iter().skip(index + 1) {
                if other != axis {
                    candidates.push((share * other_share, [(axis, value), (other, other_value)]));
                }
            }
        }
        candidates.retain(|(share, _)| *share > HOPELESS);
        // The sort is stable: of several equal ones, the first has the axes that matter more.
        candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
        let changed = |[(axis, value), (other, other_value)]: [(usize, usize); 2]| {
            best.with(axis, value).with(other, other_value)
        };
        candidates
            .into_iter()
            .map(|(_, changes)| changed(changes))
            .find(|config| (self.space.is_valid)(config) && replay.is_new(config))
    }

    /// Finds the load at which a combination is best, beginning at that of the best so far.
    fn climb(
        &self,
        replay: &mut Replay<'_>,
        config: &Config,
        leader: Option<&Standing>,
    ) -> Result<Standing, Pause> {
        let ladder = &self.settings.ladder;
        let first = leader.map_or_else(|| ladder.nearest(self.settings.first_clients), |leader| leader.rung);
        let best = self.measure(replay, config, first, leader)?;
        if best.score == Score::Failed || self.is_hopeless(&best, leader) {
            return Ok(best);
        }
        let mut climb = Climb { best, tried: vec![first], leader };
        for (round, &stride) in ladder.strides().iter().enumerate() {
            let is_close =
                leader.is_none_or(|leader| !leader.score.beats(climb.best.score, 1.0 - HOPELESS_ALIKE));
            if round > 0 && !is_close {
                break;
            }
            let (before, stride) = (climb.best.rung, stride.cast_signed());
            if matches!(climb.best.score, Score::Within(_)) {
                self.walk_loads(replay, &mut climb, stride)?;
            }
            let is_leading = leader.is_none_or(|leader| climb.best.beats(leader));
            let is_too_much = matches!(climb.best.score, Score::Beyond(_));
            if climb.best.rung == before && (is_leading || is_too_much) {
                self.walk_loads(replay, &mut climb, -stride)?;
            }
        }
        Ok(climb.best)
    }

    /// Changes the load while that helps.
    fn walk_loads(&self, replay: &mut Replay<'_>, climb: &mut Climb<'_>, stride: isize) -> Result<(), Pause> {
        while let Some(rung) = self.settings.ladder.moved(climb.best.rung, stride)
            && !climb.tried.contains(&rung)
        {
            let next = self.measure(replay, &climb.best.config, rung, climb.leader)?;
            climb.tried.push(rung);
            if !next.beats(&climb.best) {
                break;
            }
            climb.best = next;
        }
        Ok(())
    }

    /// Whether a combination is so far behind at the load of the leader that no other load would help.
    fn is_hopeless(&self, standing: &Standing, leader: Option<&Standing>) -> bool {
        leader.is_some_and(|leader| {
            let is_ordered = |axis: usize| self.space.axes.get(axis).is_some_and(|shape| shape.is_ordered);
            let needs_other_load = standing.config.differences(&leader.config).any(is_ordered);
            let share = if needs_other_load { HOPELESS } else { HOPELESS_ALIKE };
            standing.rows_per_second < leader.rows_per_second * share
        })
    }

    fn measure(
        &self,
        replay: &mut Replay<'_>,
        config: &Config,
        rung: usize,
        like: Option<&Standing>,
    ) -> Result<Standing, Pause> {
        let known = replay.seen().iter().rev().find(|record| record.trial.config == *config);
        let known = known.and_then(|record| record.outcome.as_ref().ok()).map(|run| run.rows_per_second);
        let duration = self.duration_at(known.or(like.map(|like| like.rows_per_second)));
        let clients = self.settings.ladder.clients(rung);
        let trial = Trial { config: config.clone(), clients, duration, is_final: false };
        let is_first = replay.seen().is_empty();
        if !is_first && !self.affords(replay, &trial, self.final_time(replay)) {
            return Err(Pause::OutOfTime);
        }
        let record = replay.ask(trial)?;
        let rows_per_second = record.outcome.as_ref().map_or(0.0, |measured| measured.rows_per_second);
        let score = record.score(self.settings.target_p99);
        Ok(Standing { config: config.clone(), rung, score, rows_per_second })
    }

    /// A slow model is measured for longer.
    #[allow(clippy::cast_precision_loss, reason = "a few rows")]
    fn duration_at(&self, rows_per_second: Option<f64>) -> Duration {
        let usual = self.settings.duration.as_secs_f64();
        let rows = self.settings.rows.max(1) as f64;
        let needed = rows_per_second.map_or(usual, |rate| RESPONSES * rows / rate.max(1e-3));
        Duration::from_secs_f64(needed.clamp(usual, usual * LONGEST))
    }

    fn affords(&self, replay: &Replay<'_>, trial: &Trial, reserved: Duration) -> bool {
        let Some(budget) = self.settings.budget else { return true };
        let is_up = |record: &Record| record.trial.config == trial.config;
        let is_up = if trial.is_final {
            replay.seen().iter().any(|record| record.trial.is_final && is_up(record))
        } else {
            replay.seen().last().is_some_and(is_up)
        };
        let start = if is_up { Duration::ZERO } else { replay.start_time() };
        replay.elapsed() + start + trial.duration + self.settings.overhead + reserved <= budget
    }

    /// Time that the final takes.
    fn final_time(&self, replay: &Replay<'_>) -> Duration {
        let finalists = u32::try_from(FINALISTS + 1).unwrap_or(1);
        let one = self.final_duration() + self.settings.overhead;
        (replay.start_time() + one * FINAL_ROUNDS) * finalists
    }

    /// Twice the usual, but a final must not take most of a short budget.
    fn final_duration(&self) -> Duration {
        let longest = self.settings.budget.map_or(Duration::MAX, |budget| budget / 40);
        (self.settings.duration * 2).min(longest).max(self.settings.duration / 2)
    }

    /// Measures the best combinations again, in turn, so that a slow moment of the machine does not decide.
    fn finals(&self, replay: &mut Replay<'_>) -> Result<(), Pause> {
        let mut finalists = self.finalists(replay.seen());
        for _ in 0..FINAL_ROUNDS {
            for (config, clients) in &mut finalists {
                let duration = self.final_duration();
                let trial = Trial { config: config.clone(), clients: *clients, duration, is_final: true };
                if !self.affords(replay, &trial, Duration::ZERO) {
                    return Err(Pause::OutOfTime);
                }
                let record = replay.ask(trial)?;
                // A load at the limit of the target may miss it the next time.
                if matches!(record.score(self.settings.target_p99), Score::Beyond(_)) {
                    let ladder = &self.settings.ladder;
                    let fewer = ladder.moved(ladder.nearest(*clients), -1);
                    *clients = fewer.map_or(*clients, |rung| ladder.clients(rung));
                }
            }
        }
        Ok(())
    }

    /// The best combinations and the current one, with their best load.
    fn finalists(&self, seen: &[Record]) -> Vec<(Config, usize)> {
        let mut standings: Vec<(Score, &Trial)> =
            seen.iter().map(|record| (record.score(self.settings.target_p99), &record.trial)).collect();
        standings.sort_by(|one, other| other.0.partial_cmp(&one.0).unwrap_or(std::cmp::Ordering::Equal));
        let Some((highest, _)) = standings.first().copied() else { return Vec::new() };
        let mut finalists: Vec<(Config, usize)> = Vec::new();
        for (score, trial) in standings {
            let is_in = score != Score::Failed && score.ratio(highest) >= FINALIST_SHARE;
            if is_in
                && finalists.len() < FINALISTS
                && !finalists.iter().any(|(config, _)| *config == trial.config)
            {
                finalists.push((trial.config.clone(), trial.clients));
            }
        }
        if let Some(Best { config, clients, .. }) = self.best_of(|config| *config == self.space.current)
            && !finalists.iter().any(|(finalist, _)| *finalist == config)
        {
            finalists.push((config, clients));
        }
        finalists
    }
}
