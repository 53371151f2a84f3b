//! The final: the best combinations are measured in turn, and after each round those that cannot win drop out.
//!
//! All finalists of a round see the same machine, so only differences within rounds count. A single measurement may be off
//! by more than what is to be found, so its noise is estimated from how differently finalists change between rounds.

use std::time::Duration;

use super::history::{Record, Trial};
use super::measurement::{Measurement, middle_mean};
use super::space::Config;

/// Rounds before a finalist may drop out: with fewer, one slow moment could decide.
pub(crate) const MIN_ROUNDS: usize = 3;
/// A difference below this share does not matter if it is within the noise.
const TIE: f64 = 0.02;
/// The half width of a confidence interval of 95 %, in standard errors.
const CONFIDENCE: f64 = 2.0;
/// The standard error of a mean of the middle half, in those of a mean.
const MIDDLE_ERROR: f64 = 1.1;
/// The standard deviation of normal values, over the mean of the middle half of the absolute values of differences of four.
const DEVIATION: f64 = 0.721;

/// A combination at a load, with its measurement of each round.
#[derive(Clone, Debug)]
pub(crate) struct Finalist {
    pub(crate) config: Config,
    pub(crate) clients: usize,
    pub(crate) runs: Vec<Measurement>,
    /// The logarithms of their scores.
    scores: Vec<f64>,
}

/// How far one finalist is ahead of another, over the rounds of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lead {
    /// The difference of the logarithms of their scores.
    difference: f64,
    /// The half width of its confidence interval; infinite after one round.
    pub(crate) error: f64,
    /// The ratio of their throughputs.
    pub(crate) gain: f64,
}

impl Lead {
    pub(crate) fn is_above(&self, share: f64) -> bool {
        self.difference > share.ln_1p()
    }

    /// Whether the other may still be better by more than a tie.
    fn is_open(&self) -> bool {
        self.error - self.difference > TIE
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Race {
    target_p99: Option<Duration>,
    finalists: Vec<Finalist>,
}

impl Race {
    pub(crate) fn new(target_p99: Option<Duration>) -> Self {
        Self { target_p99, finalists: Vec::new() }
    }

    /// The final in the records of a search.
    pub(crate) fn of(records: &[Record], target_p99: Option<Duration>) -> Self {
        let mut race = Self::new(target_p99);
        for record in records.iter().filter(|record| record.trial.is_final) {
            race.add(record);
        }
        race
    }

    /// Adds the next measurement of a finalist. One that fails is not in later rounds.
    pub(crate) fn add(&mut self, record: &Record) {
        let Some(run) = record.outcome.as_ref().ok().copied().filter(|run| run.rows_per_second > 0.0) else {
            return;
        };
        let score = run.score(self.target_p99).log();
        let trial = &record.trial;
        let is_meant =
            |finalist: &&mut Finalist| finalist.clients == trial.clients && finalist.config == trial.config;
        if let Some(finalist) = self.finalists.iter_mut().find(is_meant) {
            finalist.runs.push(run);
            finalist.scores.push(score);
        } else {
            let Trial { config, clients, .. } = trial.clone();
            self.finalists.push(Finalist { config, clients, runs: vec![run], scores: vec![score] });
        }
    }

    /// Finalists that are still in the race, the best first.
    pub(crate) fn ranked(&self) -> Vec<&Finalist> {
        let rounds = self.finalists.iter().map(|finalist| finalist.runs.len()).max().unwrap_or_default();
        let mut ranked: Vec<(f64, &Finalist)> = self
            .finalists
            .iter()
            .filter(|finalist| finalist.runs.len() == rounds)
            .map(|finalist| (middle_mean(&finalist.scores), finalist))
            .collect();
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        ranked.into_iter().map(|(_, finalist)| finalist).collect()
    }

    /// A combination at the load at which it came furthest.
    pub(crate) fn finalist(&self, config: &Config) -> Option<&Finalist> {
        let meant = self.finalists.iter().filter(|finalist| finalist.config == *config);
        meant.max_by(|one, other| {
            let key = |finalist: &Finalist| (finalist.runs.len(), middle_mean(&finalist.scores));
            key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal)
        })
    }

    /// Finalists that may be the best, the best first: `most` of them, and the current settings in
    /// any case unless they are clearly behind.
    pub(crate) fn contenders(&self, most: usize, current: &Config) -> Vec<&Finalist> {
        let ranked = self.ranked();
        let noise = self.noise();
        let mut contenders: Vec<&Finalist> = Vec::new();
        for finalist in ranked {
            let may_win = contenders.first().is_none_or(|leader| {
                leader.runs.len() < MIN_ROUNDS || lead(leader, finalist, noise).is_open()
            });
            let is_current = finalist.config == *current
                && !contenders.iter().any(|contender| contender.config == *current);
            if may_win && (contenders.len() < most || is_current) {
                contenders.push(finalist);
            }
        }
        contenders
    }

    pub(crate) fn lead(&self, one: &Finalist, other: &Finalist) -> Lead {
        lead(one, other, self.noise())
    }

    /// The standard deviation of the logarithm of one score, from how differently two finalists change between two rounds.
    fn noise(&self) -> f64 {
        let mut differences = Vec::new();
        for round in 1.. {
            let change =
                |finalist: &Finalist| Some(finalist.scores.get(round)? - finalist.scores.get(round - 1)?);
            let changes: Vec<f64> = self.finalists.iter().filter_map(change).collect();
            if changes.is_empty() {
                break;
            }
            for (index, one) in changes.iter().enumerate() {
                differences.extend(changes.iter().skip(index + 1).map(|other| (one - other).abs()));
            }
        }
        if differences.is_empty() { f64::INFINITY } else { middle_mean(&differences) * DEVIATION }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a few rounds")]
fn lead(one: &Finalist, other: &Finalist, noise: f64) -> Lead {
    let pairs = one.scores.iter().zip(&other.scores);
    let differences: Vec<f64> = pairs.map(|(one, other)| one - other).collect();
    let rates = one.runs.iter().zip(&other.runs);
    let ratios: Vec<f64> =
        rates.map(|(one, other)| (one.rows_per_second / other.rows_per_second).ln()).collect();
    let rounds = (differences.len() as f64).max(1.0);
    Lead {
        difference: middle_mean(&differences),
        error: CONFIDENCE * MIDDLE_ERROR * noise * (2.0 / rounds).sqrt(),
        gain: middle_mean(&ratios).exp(),
    }
}

#[cfg(test)]
mod tests {
    use cudock_base::Rng;

    use super::*;

    /// A final in which each combination has these rates, one for each round. The combination is its index.
    fn race(rates: &[&[f64]]) -> Race {
        let mut race = Race::new(None);
        for (index, rates) in rates.iter().enumerate() {
            for rate in *rates {
                let run = Measurement { rows_per_second: *rate, p50_ms: 1.0, p99_ms: 1.0, errors: 0.0 };
                race.add(&Record {
                    trial: Trial {
                        config: Config(vec![index]),
                        clients: 1,
                        duration: Duration::ZERO,
                        is_final: true,
                    },
                    outcome: Ok(run),
                    start: None,
                    elapsed: Duration::ZERO,
                });
            }
        }
        race
    }

    fn indices(finalists: &[&Finalist]) -> Vec<usize> {
        finalists.iter().map(|finalist| finalist.config.value(0)).collect()
    }

    #[test]
    fn a_slow_moment_of_one_finalist_does_not_decide() {
        let race =
            race(&[&[100.0, 50.0, 101.0, 100.0], &[95.0, 96.0, 95.0, 95.0], &[90.0, 91.0, 90.0, 91.0]]);
        assert_eq!(indices(&race.ranked()), [0, 1, 2]);
    }

    #[test]
    fn noise_is_that_of_one_measurement_on_a_machine_that_changes_its_speed() {
        let mut rng = Rng::new(1);
        for (finalists, rounds) in [(2, 200), (3, 200), (6, 100)] {
            let speeds: Vec<f64> = (0..rounds).map(|_| 1000.0 * (rng.normal() * 0.3).exp()).collect();
            let rates: Vec<Vec<f64>> = (0..finalists)
                .map(|_| speeds.iter().map(|speed| speed * (rng.normal() * 0.05).exp()).collect())
                .collect();
            let rates: Vec<&[f64]> = rates.iter().map(Vec::as_slice).collect();
            let noise = race(&rates).noise();
            assert!((0.04..0.06).contains(&noise), "{finalists} finalists: {noise}");
        }
        assert!(race(&[&[1.0], &[2.0]]).noise().is_infinite());
    }

    #[test]
    fn those_that_cannot_win_drop_out_after_three_rounds() {
        let current = Config(vec![3]);
        let noisy: [&[f64]; 4] =
            [&[100.0, 110.0, 102.0], &[97.0, 108.0, 95.0], &[50.0, 52.0, 49.0], &[95.0, 96.0, 106.0]];
        assert_eq!(indices(&race(&noisy).contenders(4, &current)), [0, 1, 3]);
        assert_eq!(indices(&race(&noisy).contenders(1, &current)), [0, 3], "the current settings stay");
        let two_rounds = noisy.map(|rates| &rates[..2]);
        assert_eq!(race(&two_rounds).contenders(4, &current).len(), 4);
        let failed_in_the_last = [noisy[0], &noisy[1][..2], noisy[2], noisy[3]];
        assert_eq!(indices(&race(&failed_in_the_last).contenders(4, &current)), [0, 3]);
    }

    #[test]
    fn the_error_of_a_gain_is_that_of_the_noise() {
        let race = race(&[&[105.0, 106.0, 105.0], &[100.0, 101.0, 100.0], &[99.0, 101.0, 101.0]]);
        let finalists = race.ranked();
        let lead = race.lead(finalists[0], finalists[1]);
        assert!(lead.is_above(0.04) && !lead.is_above(0.06), "{lead:?}");
        assert!((1.049..1.051).contains(&lead.gain) && lead.error < 0.02, "{lead:?}");
    }
}
