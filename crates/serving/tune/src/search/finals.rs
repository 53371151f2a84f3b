//! The final of a search: who takes part, and how the time is divided.

use std::time::Duration;

use super::descent::Search;
use super::history::{Pause, Record, Replay, Trial};
use super::measurement::Score;
use super::race::{MIN_ROUNDS, Race};
use super::space::Config;

/// Combinations in the final, with the current one, and the share of the best they must have: the highest of many short
/// measurements may be twice what it should be.
pub(crate) const FINALISTS: usize = 6;
const FINALIST_SHARE: f64 = 0.4;
/// Rounds until the finalists are halved, without a time limit.
const HALVING_ROUNDS: f64 = 4.0;

/// A combination and a number of clients in the final.
type Entry = (Config, usize);

impl Search {
    /// Whether there is time for a round of the final, and for one measurement that takes twice as long as expected.
    fn affords_round(&self, replay: &Replay<'_>, field: &[Entry], duration: Duration) -> bool {
        let Some(budget) = self.settings.budget else { return true };
        let finals = replay.seen().iter().filter(|record| record.trial.is_final);
        let mut up: Vec<&Config> = finals.map(|record| &record.trial.config).collect();
        let one = self.final_time(replay, duration);
        let mut end = replay.elapsed() + one;
        for (config, _) in field {
            end += one;
            if !up.contains(&config) {
                end += replay.start_time();
                up.push(config);
            }
        }
        end <= budget
    }

    /// Time of a measurement in the final.
    fn final_time(&self, replay: &Replay<'_>, duration: Duration) -> Duration {
        duration + replay.overhead().unwrap_or_default().max(self.settings.overhead)
    }

    /// The usual duration, but a final must not take most of a short budget.
    fn final_duration(&self, replay: &Replay<'_>) -> Duration {
        let rates = replay.seen().iter().filter_map(|record| record.outcome.as_ref().ok());
        let highest = rates.map(|run| run.rows_per_second).reduce(f64::max);
        let longest = self.settings.budget.map_or(Duration::MAX, |budget| budget / 40);
        self.duration_at(highest).min(longest).max(self.settings.duration / 2)
    }

    /// Loads at which a finalist is measured in every round: one at the limit of a latency target may miss it the next time.
    pub(super) fn loads_in_final(&self) -> usize {
        if self.settings.target_p99.is_some() { 2 } else { 1 }
    }

    /// Measures the best combinations again, in turn. The first round has each of them at several
    /// loads, of which the best remain. While the time passes, the worse half drops out again and
    /// again, so that most of it goes to those that are hard to distinguish.
    pub(super) fn finals(&self, replay: &mut Replay<'_>) -> Result<(), Pause> {
        let duration = self.final_duration(replay);
        let mut field = self.finalists(replay, duration);
        let mut race = Race::new(self.settings.target_p99);
        let (mut begin, mut size) = (Duration::ZERO, 0);
        for round in 0.. {
            if field.len() < 2 || !self.affords_round(replay, &field, duration) {
                break;
            }
            for (config, clients) in &field {
                let trial = Trial { config: config.clone(), clients: *clients, duration, is_final: true };
                race.add(replay.ask(trial)?);
            }
            if round == 0 {
                field = self.best_loads(replay.seen(), &field);
                (begin, size) = (replay.elapsed(), field.len());
                continue;
            }
            let halvings = size.next_power_of_two().ilog2().max(1);
            let used = match self.settings.budget {
                Some(budget) => {
                    replay.elapsed().saturating_sub(begin).div_duration_f64(budget.saturating_sub(begin))
                }
                None => f64::from(round) / (HALVING_ROUNDS * f64::from(halvings)),
            };
            if used >= 1.0 {
                break;
            }
            let halved = (1..halvings).filter(|part| used * f64::from(halvings) >= f64::from(*part)).count();
            for most in (1..=size.div_ceil(1 << halved).max(2)).rev() {
                let contenders = race.contenders(most, &self.space.current);
                field =
                    contenders.iter().map(|finalist| (finalist.config.clone(), finalist.clients)).collect();
                if self.affords_round(replay, &field, duration) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The loads of each combination that were best in all measurements so far.
    fn best_loads(&self, seen: &[Record], field: &[Entry]) -> Vec<Entry> {
        let mean = |config: &Config, clients: usize| {
            let is_meant = |trial: &Trial| trial.config == *config && trial.clients == clients;
            let meant = seen.iter().filter(|record| is_meant(&record.trial));
            let scores = meant.map(|record| record.score(self.settings.target_p99).log());
            let (sum, count) = scores.fold((0.0, 0.0), |(sum, count), score| (sum + score, count + 1.0));
            sum / f64::max(count, 1.0)
        };
        let mut ranked: Vec<(f64, &Entry)> =
            field.iter().map(|entry| (mean(&entry.0, entry.1), entry)).collect();
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut best: Vec<Entry> = Vec::new();
        for (_, (config, clients)) in ranked {
            if best.iter().filter(|(other, _)| other == config).count() < self.loads_in_final() {
                best.push((config.clone(), *clients));
            }
        }
        best
    }

    /// The best combinations and the current one, each at its best load and those next to it, as
    /// far as time allows.
    fn finalists(&self, replay: &Replay<'_>, duration: Duration) -> Vec<Entry> {
        let seen = replay.seen();
        let mut standings: Vec<(Score, &Trial)> =
            seen.iter().map(|record| (record.score(self.settings.target_p99), &record.trial)).collect();
        standings.sort_by(|one, other| other.0.partial_cmp(&one.0).unwrap_or(std::cmp::Ordering::Equal));
        let Some((highest, _)) = standings.first().copied() else { return Vec::new() };
        let current = standings.iter().position(|(_, trial)| trial.config == self.space.current);
        // The best and the current one are in any final.
        let places = [0].into_iter().chain(current).chain(0..standings.len());
        let mut finalists: Vec<&Trial> = Vec::new();
        for (score, trial) in places.filter_map(|place| standings.get(place)) {
            let is_in = *score != Score::Failed
                && (score.ratio(highest) >= FINALIST_SHARE || trial.config == self.space.current);
            if is_in && !finalists.iter().any(|finalist| finalist.config == trial.config) {
                finalists.push(trial);
            }
        }
        let ladder = &self.settings.ladder;
        let stride = ladder.strides().last().map_or(1, |stride| stride.cast_signed());
        let strides = [0, -stride, stride];
        let (one, start) = (self.final_time(replay, duration), replay.start_time());
        let fits = |count: usize, loads: usize| {
            let measured = count * (loads + (MIN_ROUNDS - 1) * self.loads_in_final());
            let times = |count: usize| u32::try_from(count).unwrap_or(1);
            let end = replay.elapsed() + start * times(count) + one * times(measured);
            self.settings.budget.is_none_or(|budget| end <= budget)
        };
        let few = self.loads_in_final();
        finalists.truncate((3..=FINALISTS).rev().find(|count| fits(*count, few)).unwrap_or(2));
        let loads = if fits(finalists.len(), strides.len()) { strides.len() } else { few };
        let mut field = Vec::new();
        for trial in finalists {
            let rung = ladder.nearest(trial.clients);
            let rungs = strides.iter().take(loads).filter_map(|stride| ladder.moved(rung, *stride));
            field.extend(rungs.map(|rung| (trial.config.clone(), ladder.clients(rung))));
        }
        field
    }
}
