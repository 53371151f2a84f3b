//! Keeping to a latency target.

use crate::number::{real, span};

/// The share of requests that may be late: half of the one in a hundred that the target allows.
const LATE: f64 = 0.005;
/// Answers and batches after which the plan is looked at again.
const ANSWERS: usize = 400;
const BATCHES: usize = 32;
/// How far the plan is moved at once, down and up. A device that hiccups once in a while makes many late at a stroke,
/// and no plan could have helped; so it costs no more than a plan that is a little too bold.
const DOWN: f64 = 0.045;
const UP: f64 = 0.015;
/// The least share that is planned for: what takes twice as long as it should cannot be planned for at all.
const LEAST: f64 = 0.6;

/// A latency target, and the share of it that is planned for. Batches do not take just the time they are expected to
/// take, so the plan leaves room: as much as it takes for answers to be late as rarely as they may.
#[derive(Debug)]
pub(super) struct Target {
    nanos: u64,
    share: f64,
    /// Rows of a batch of which two in a row fit into the plan, as far as speed is known.
    pub(super) usual_rows: usize,
    answers: usize,
    late: usize,
    batches: usize,
}

impl Target {
    pub(super) fn new(nanos: u64) -> Self {
        Self { nanos, share: 0.9, usual_rows: usize::MAX, answers: 0, late: 0, batches: 0 }
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Time from admission to answer that is planned for, in nanoseconds.
    pub(super) fn planned(&self) -> f64 {
        span(self.nanos) * self.share
    }

    /// The same, seen when a batch is about to start: half of what could go wrong is past by then.
    pub(super) fn planned_at_start(&self) -> f64 {
        span(self.nanos).midpoint(self.planned())
    }

    /// Requests admitted at these times were answered now. Those from before `planned_since` were let in without a plan.
    pub(super) fn answered(&mut self, now: u64, arrivals: &[u64], planned_since: u64) {
        for &arrived in arrivals.iter().filter(|&&arrived| arrived >= planned_since) {
            self.answers += 1;
            self.late += usize::from(now.saturating_sub(arrived) > self.nanos);
        }
        self.batches += 1;
        if self.answers < ANSWERS || self.batches < BATCHES {
            return;
        }
        let late = real(self.late) / real(self.answers);
        self.share += (UP * (1.0 - late / LATE)).max(-DOWN);
        self.share = self.share.clamp(LEAST, 1.0);
        (self.answers, self.late, self.batches) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    fn after(rounds: usize, late_of_a_thousand: usize) -> f64 {
        let mut target = Target::new(1_000);
        for request in 0..rounds * 1000 {
            let arrived = if request % 1000 < late_of_a_thousand { 8_999 } else { 9_500 };
            target.answered(10_000, &[arrived], 0);
        }
        target.share()
    }

    #[test]
    fn the_whole_target_is_used_while_all_answers_are_in_time() {
        assert!(after(20, 0) > 0.999);
    }

    #[test]
    fn more_room_is_left_when_more_than_one_in_a_hundred_is_late() {
        assert!(after(20, 20) < 0.85);
    }

    #[test]
    fn a_stroke_of_bad_luck_costs_one_step() {
        let mut target = Target::new(1_000);
        target.answered(100_000, &[0; 1_000], 0);
        for _ in 0..31 {
            target.answered(100_000, &[99_900], 0);
        }
        assert!(target.share() > 0.854);
    }

    #[test]
    fn requests_let_in_before_anything_was_known_do_not_count() {
        let mut target = Target::new(1_000);
        for _ in 0..1_000 {
            target.answered(100_000, &[0], 1);
        }
        assert!((target.share() - 0.9).abs() < 1e-9);
    }
}
