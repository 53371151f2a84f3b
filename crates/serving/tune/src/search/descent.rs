//! The search for the fastest combination: coordinate descent over the axes, then a final between the best.
//!
//! A start of a server may take seconds, and a measurement has noise of a few percent. So combinations are compared with
//! single short measurements, each at the load that suits it. The highest of many of these is too high, so only the final
//! decides: the best are measured again, in as many rounds as it takes or there is time for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{Pause, Record, Replay, Trial};
use super::ladder::Ladder;
use super::measurement::{Measurement, Score};
use super::race::{Finalist, MIN_ROUNDS, Race};
use super::space::{Config, Space};

/// The share by which a combination or load must be better: less is noise.
const GAIN: f64 = 0.01;
/// A combination below this share of the best at the same load is not tried at others.
const HOPELESS: f64 = 0.8;
/// The same if it differs only in settings that do not change how many clients it needs.
const HOPELESS_ALIKE: f64 = 0.97;
/// A change that was worse than this share is not tried with other settings.
const WORTHWHILE: f64 = 0.9;
/// Finalists for which time is reserved, and the share of all time that is at least and at most.
const RESERVED_FINALISTS: u32 = 4;
const RESERVED: (u32, u32) = (3, 2);
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
    /// Time of a measurement in addition to its duration.
    pub overhead: Duration,
    /// Whether every combination is measured at every load.
    pub is_exhaustive: bool,
}

/// A search that proposes trials ([`Self::next_trial`]) and records their outcomes
/// ([`Self::record`]); it does no I/O.
pub struct Search {
    pub(super) space: Space,
    pub(super) settings: SearchSettings,
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

impl Best {
    fn of(finalist: &Finalist) -> Option<Self> {
        let Finalist { config, clients, runs, .. } = finalist.clone();
        Some(Self { config, clients, measured: Measurement::typical(&runs)? })
    }
}

/// The leader of the final compared with the current settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival {
    pub best: Best,
    /// The ratio of the throughputs, measured in the same rounds.
    pub gain: f64,
    /// The half width of its confidence interval; unknown after one round.
    pub error: Option<f64>,
    /// Whether it is ahead by too little to replace them.
    pub is_tie: bool,
}

/// A combination while its best load is searched.
struct Climb<'c> {
    best: Standing,
    /// Loads that were measured.
    tried: Vec<usize>,
    /// The best combination so far.
    leader: Option<&'c Standing>,
}

/// The state of a search in progress.
struct Progress {
    best: Standing,
    /// The last effect of each change of one setting: the axis, the value before and after, and the
    /// ratio of the scores.
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
        config.differences(best).map(|axis| effect(axis).copied().unwrap_or(WORTHWHILE)).product()
    }

    /// Whether a combination is new and its change was not clearly bad before, with other settings.
    fn is_worthwhile(&self, replay: &Replay<'_>, config: &Config) -> bool {
        self.expected_share(config) > WORTHWHILE - GAIN && replay.is_new(config)
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

    /// The next trial to measure; `None` at the end of the search.
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

    /// The best combination so far: the leader of the final if there was one. Nothing less than a real gain replaces the
    /// current settings.
    pub fn best(&self) -> Option<Best> {
        if let Some(rival) = self.rival() {
            return if rival.is_tie { self.current() } else { Some(rival.best) };
        }
        let race = self.race();
        if let Some(leader) = race.ranked().first() {
            return Best::of(leader);
        }
        let best = self.best_of(|_| true)?;
        let score = |best: &Best| best.measured.score(self.settings.target_p99);
        let current = self.current().filter(|current| !score(&best).beats(score(current), GAIN));
        Some(current.unwrap_or(best))
    }

    /// The combination that the search started from, at its best load.
    pub fn current(&self) -> Option<Best> {
        let current = &self.space.current;
        let in_final = self.race().finalist(current).and_then(Best::of);
        in_final.or_else(|| self.best_of(|config| config == current))
    }

    /// The leader of the final, if it is ahead of the current settings.
    pub fn rival(&self) -> Option<Rival> {
        let race = self.race();
        let ranked = race.ranked();
        let leader = ranked.first().filter(|leader| leader.config != self.space.current)?;
        let lead = race.lead(leader, race.finalist(&self.space.current)?);
        let is_tie = !lead.is_above(GAIN);
        let error = Some(lead.error).filter(|error| error.is_finite());
        Some(Rival { best: Best::of(leader)?, gain: lead.gain, error, is_tie })
    }

    fn race(&self) -> Race {
        Race::of(&self.records, self.settings.target_p99)
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
        if !is_first && !self.affords(replay, &trial) {
            return Err(Pause::OutOfTime);
        }
        let record = replay.ask(trial)?;
        let rows_per_second = record.outcome.as_ref().map_or(0.0, |measured| measured.rows_per_second);
        let score = record.score(self.settings.target_p99);
        Ok(Standing { config: config.clone(), rung, score, rows_per_second })
    }

    /// A slow model is measured for longer.
    #[allow(clippy::cast_precision_loss, reason = "a few rows")]
    pub(super) fn duration_at(&self, rows_per_second: Option<f64>) -> Duration {
        let usual = self.settings.duration.as_secs_f64();
        let rows = self.settings.rows.max(1) as f64;
        let needed = rows_per_second.map_or(usual, |rate| RESPONSES * rows / rate.max(1e-3));
        Duration::from_secs_f64(needed.clamp(usual, usual * LONGEST))
    }

    /// Whether there is time for a measurement before the final.
    fn affords(&self, replay: &Replay<'_>, trial: &Trial) -> bool {
        let Some(budget) = self.settings.budget else { return true };
        let is_up = replay.seen().last().is_some_and(|record| record.trial.config == trial.config);
        let start = if is_up { Duration::ZERO } else { replay.start_time() };
        let (least, most) = RESERVED;
        let rounds = u32::try_from(MIN_ROUNDS * self.loads_in_final()).unwrap_or(1);
        let one = self.settings.duration + self.settings.overhead;
        let reserved = (replay.start_time() + one * rounds) * RESERVED_FINALISTS;
        let reserved = reserved.clamp(budget / least, budget / most);
        replay.elapsed() + start + trial.duration + self.settings.overhead + reserved <= budget
    }
}
