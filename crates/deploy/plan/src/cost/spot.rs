//! The expected cost of Spot evictions.
//!
//! Evictions are a Poisson process with rate `l`. Work of length `s` that starts over after each eviction takes
//! `(e^(ls) - 1) / l` on average and is evicted `e^(ls) - 1` times, each followed by a start of length `R`. Checkpoints
//! divide the work into segments that start over separately.

use std::time::Duration;

use cudock_base::mul_div_ceil;

use crate::ratio::{float, round_up};
use crate::workload::Spot;

/// The largest factor by which evictions may lengthen the work.
const MAX_FACTOR: u128 = 10;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The mean time of work on machines that are evicted, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Time from the beginning of the work to its end.
    pub(crate) wall: u128,
    /// The part of it that is billed.
    pub(crate) billed: u128,
}

/// The mean time of `work` on `together` instances that all have to run; none if that is more than ten times the work.
pub(crate) fn expected(
    work: u128,
    spot: &Spot,
    together: u32,
    restart: u128,
    restart_billed: u128,
) -> Option<Expected> {
    let rate = spot.evictions.times_in(MILLISECOND) * f64::from(together);
    let every = spot.checkpoint_every.map(|time| time.as_millis()).filter(|every| *every > 0).unwrap_or(work);
    // The last segment ends with the work, not with a checkpoint.
    let before = if work == 0 { 0 } else { work.div_ceil(every.max(1)) - 1 };
    let last = work.saturating_sub(before.saturating_mul(every));
    let segment = every.saturating_add(spot.checkpoint_takes.as_millis());
    let mean = |restart: u128| {
        let (long, short) = (of_segment(segment, rate, restart), of_segment(last, rate, restart));
        // Only what evictions add, so that a rate of zero adds exactly nothing.
        float(before) * (long - float(every)) + (short - float(last))
    };
    let (extra, extra_billed) = (mean(restart), mean(restart_billed));
    if !(extra.is_finite() && extra_billed.is_finite()) {
        return None;
    }
    let wall = work.saturating_add(millis(extra));
    let billed = work.saturating_add(millis(extra_billed)).min(wall);
    (wall <= work.saturating_mul(MAX_FACTOR)).then_some(Expected { wall, billed })
}

/// Time that evictions of serving instances cost: a start each.
pub(crate) fn restarts(up: u128, spot: &Spot, start: u128) -> u128 {
    const NANOS_OF_A_DAY: u128 = 86_400_000 * 1_000_000_000;
    let evictions = up.saturating_mul(spot.evictions.nanos_per_day());
    mul_div_ceil(evictions, start, NANOS_OF_A_DAY)
}

/// The mean time of a segment, with the starts after its evictions.
fn of_segment(length: u128, rate: f64, restart: u128) -> f64 {
    let length = float(length);
    if rate <= 0.0 {
        return length;
    }
    let evictions = (rate * length).exp_m1();
    evictions / rate + evictions * float(restart)
}

/// Rounds up to a whole millisecond, without turning rounding errors of floats into a millisecond.
fn millis(time: f64) -> u128 {
    round_up(time - 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::per_second;

    const HOUR: u128 = 3_600_000;
    const MINUTE: u128 = 60_000;

    fn spot(evictions_per_hour: u64, every: Option<u128>, takes: u128) -> Spot {
        let time = |millis: u128| Duration::from_millis(u64::try_from(millis).unwrap());
        let evictions = per_second(evictions_per_hour).share(1, 3600);
        Spot { evictions, checkpoint_every: every.map(time), checkpoint_takes: time(takes) }
    }

    #[test]
    fn without_evictions_only_checkpoints_are_added() {
        let none = expected(10 * HOUR, &spot(0, None, 0), 1, MINUTE, MINUTE).unwrap();
        assert_eq!(none, Expected { wall: 10 * HOUR, billed: 10 * HOUR });
        // Ten hours in half hours: nineteen checkpoints of a minute, the end of the work is none.
        let some = expected(10 * HOUR, &spot(0, Some(HOUR / 2), MINUTE), 1, 0, 0).unwrap();
        assert_eq!(some.wall, 10 * HOUR + 19 * MINUTE);
    }

    #[test]
    fn an_hour_evicted_once_an_hour_takes_e_minus_one_hours_and_as_many_starts() {
        // (e - 1) x 60 min = 103.0969 min, and (e - 1) = 1.71828 starts of 10 min, of which 4 min are paid for.
        let mean = expected(HOUR, &spot(1000, None, 0), 1, 10 * MINUTE, 4 * MINUTE).unwrap();
        let e = std::f64::consts::E - 1.0;
        let near = |value: u128, minutes: f64| (float(value) / 60_000.0 - minutes).abs() < 0.001;
        assert!(near(mean.wall, e * 70.0), "{mean:?}");
        assert!(near(mean.billed, e * 64.0), "{mean:?}");
    }

    #[test]
    fn checkpoints_bring_the_loss_down() {
        let rare = expected(10 * HOUR, &spot(50, None, 0), 1, 10 * MINUTE, 10 * MINUTE).unwrap();
        let often =
            expected(10 * HOUR, &spot(50, Some(HOUR / 2), MINUTE), 1, 10 * MINUTE, 10 * MINUTE).unwrap();
        assert!(often.wall < rare.wall, "{often:?} {rare:?}");
    }

    #[test]
    fn instances_that_work_together_are_evicted_together() {
        let alone = expected(HOUR, &spot(100, None, 0), 4, 0, 0);
        assert_eq!(alone, expected(HOUR, &spot(400, None, 0), 1, 0, 0));
    }

    #[test]
    fn work_that_hardly_ever_ends_is_rejected() {
        assert_eq!(expected(100 * HOUR, &spot(1000, None, 0), 1, 0, 0), None);
        assert_eq!(expected(u128::MAX, &spot(u64::MAX, None, 0), u32::MAX, u128::MAX, u128::MAX), None);
    }

    #[test]
    fn each_eviction_of_a_serving_instance_costs_a_start() {
        // 730 h at 0.1 evictions an hour are 73, each a start of 100 s.
        assert_eq!(restarts(730 * HOUR, &spot(100, None, 0), 100_000), 73 * 100_000);
    }
}
