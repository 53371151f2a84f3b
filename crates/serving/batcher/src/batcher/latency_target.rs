//! Keeps requests within a latency target.

use crate::convert::{ns_to_f64, to_f64};

/// The planned share of late requests: half of the 1 % that the target allows.
const LATE_SHARE: f64 = 0.005;
/// Responses and batches after which the plan is adjusted.
const RESPONSES: usize = 400;
const BATCHES: usize = 32;
/// Largest adjustment of the plan, down and up. A device that stalls once in a while makes many requests late at once,
/// which no plan could have prevented; so a stall costs no more than a plan that is slightly too optimistic.
const MAX_STEP_DOWN: f64 = 0.045;
const MAX_STEP_UP: f64 = 0.015;
/// The smallest share of the target to plan for: a device whose batches take almost twice the estimate cannot be
/// planned for.
const MIN_SHARE: f64 = 0.6;

/// A latency target, and the share of it that is planned for. Batch times differ from their estimates, so the plan
/// leaves a margin, just large enough to keep the share of late responses below its limit.
#[derive(Debug)]
pub(super) struct LatencyTarget {
    nanos: u64,
    share: f64,
    /// Rows of a batch of which two in a row fit into the plan, as far as batch times are known.
    pub(super) usual_rows: usize,
    responses: usize,
    late: usize,
    batches: usize,
}

impl LatencyTarget {
    pub(super) fn new(nanos: u64) -> Self {
        Self { nanos, share: 0.9, usual_rows: usize::MAX, responses: 0, late: 0, batches: 0 }
    }

    /// Planned time from admission to response, in nanoseconds.
    pub(super) fn planned(&self) -> f64 {
        ns_to_f64(self.nanos) * self.share
    }

    /// The planned time as seen when a batch is about to start: half of the uncertainty is over by then.
    pub(super) fn planned_at_start(&self) -> f64 {
        ns_to_f64(self.nanos).midpoint(self.planned())
    }

    /// Records that requests admitted at these times finished now. Requests from before `planned_since` were admitted
    /// without a plan and do not count.
    pub(super) fn record_responses(&mut self, now: u64, admitted_at: &[u64], planned_since: u64) {
        for &arrived in admitted_at.iter().filter(|&&arrived| arrived >= planned_since) {
            self.responses += 1;
            self.late += usize::from(now.saturating_sub(arrived) > self.nanos);
        }
        self.batches += 1;
        if self.responses < RESPONSES || self.batches < BATCHES {
            return;
        }
        let late = to_f64(self.late) / to_f64(self.responses);
        self.share += (MAX_STEP_UP * (1.0 - late / LATE_SHARE)).max(-MAX_STEP_DOWN);
        self.share = self.share.clamp(MIN_SHARE, 1.0);
        (self.responses, self.late, self.batches) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::LatencyTarget;

    fn after(rounds: usize, late_of_a_thousand: usize) -> f64 {
        let mut target = LatencyTarget::new(1_000);
        for request in 0..rounds * 1000 {
            let arrived = if request % 1000 < late_of_a_thousand { 8_999 } else { 9_500 };
            target.record_responses(10_000, &[arrived], 0);
        }
        target.share
    }

    #[test]
    fn the_whole_target_is_used_until_more_than_one_percent_is_late() {
        assert!(after(20, 0) > 0.999);
        assert!(after(20, 20) < 0.85);
    }

    #[test]
    fn one_stall_costs_one_step() {
        let mut target = LatencyTarget::new(1_000);
        target.record_responses(100_000, &[0; 1_000], 0);
        for _ in 0..31 {
            target.record_responses(100_000, &[99_900], 0);
        }
        assert!(target.share > 0.854);
    }

    #[test]
    fn requests_admitted_before_the_first_measurement_do_not_count() {
        let mut target = LatencyTarget::new(1_000);
        for _ in 0..1_000 {
            target.record_responses(100_000, &[0], 1);
        }
        assert!((target.share - 0.9).abs() < 1e-9);
    }
}
