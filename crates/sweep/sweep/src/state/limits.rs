//! Limits of time and money.
//!
//! Money is spent until a stopped trial is gone, so trials are stopped [`STOP_MARGIN`] before the budget is used up at the
//! rate at which it is being spent. After that, none is started, although some money is left when they are gone sooner. A
//! trial is started only if the budget also pays for the median time of the trials that have succeeded (or while there are
//! none, of those that ended otherwise), for it and for what the running ones still need to come to that time.

use std::time::Duration;

use cudock_base::{Timestamp, Usd, mul_div_ceil};

use super::sweep::Sweep;
use super::trial::{TrialAttempt, TrialStatus, cost_of};
use crate::event::{StopReason, SweepEnd};

/// How long it may take until a trial that is stopped does not exist any more.
pub const STOP_MARGIN: Duration = Duration::from_secs(10);

impl Sweep {
    /// Why all trials are to be stopped now.
    pub(super) fn exceeded(&self, now: Timestamp) -> Option<(StopReason, SweepEnd)> {
        if self.is_canceled {
            return Some((StopReason::Canceled, SweepEnd::Canceled));
        }
        let limits = &self.plan.limits;
        if let Some(limit) = limits.timeout.filter(|limit| self.active_time(now) >= *limit) {
            return Some((StopReason::SweepTimeout { limit }, SweepEnd::Timeout));
        }
        let limit = limits.dollars?;
        let spent = self.cost(now);
        let is_exceeded = spent + cost_of(self.rate(), STOP_MARGIN) >= limit;
        is_exceeded.then_some((StopReason::Budget { spent, limit }, SweepEnd::Budget))
    }

    /// Why a trial by itself is to be stopped now.
    pub(super) fn timed_out(&self, attempt: &TrialAttempt, now: Timestamp) -> Option<StopReason> {
        let limit = self.plan.limits.trial_timeout?;
        (attempt.time(now) >= limit).then_some(StopReason::TrialTimeout { limit })
    }

    /// Dollars per hour of all attempts that may exist.
    fn rate(&self) -> Usd {
        self.live().filter_map(|(_, attempt)| attempt.price_per_hour).sum()
    }

    /// The median time of the trials that have succeeded, or else of attempts that ended otherwise.
    fn expected_time(&self) -> Duration {
        let median = |times: &[Duration]| times.get(times.len() / 2).copied();
        median(&self.times).or_else(|| median(&self.other_times)).unwrap_or_default()
    }

    /// The expected cost of a new trial in a slot.
    pub(super) fn expected_cost(&self, slot: u32) -> Usd {
        cost_of(self.slot_price(slot).unwrap_or_default(), self.expected_time().max(STOP_MARGIN))
    }

    /// Whether the budget pays for more trials that are expected to cost this.
    pub(super) fn can_pay(&self, now: Timestamp, new: Usd) -> bool {
        let Some(limit) = self.plan.limits.dollars else { return true };
        let expected = self.expected_time();
        let rest = |attempt: &TrialAttempt| {
            let left = expected.saturating_sub(attempt.time(now)).max(STOP_MARGIN);
            cost_of(attempt.price_per_hour.unwrap_or_default(), left)
        };
        let running: Usd = self.live().map(|(_, attempt)| rest(attempt)).sum();
        // At the limit, it would be stopped at once.
        self.cost(now) + running + new < limit
    }

    /// When time or money alone changes what [`next`](Self::next) returns.
    pub fn wake_at(&self, now: Timestamp) -> Option<Timestamp> {
        let running = || self.live().filter(|(trial, _)| trial.status != TrialStatus::Stopping);
        running().next()?;
        let limits = &self.plan.limits;
        let trials = running().filter_map(|(_, attempt)| Some(attempt.starting.plus(limits.trial_timeout?)));
        let sweep = limits.timeout.filter(|_| self.active_since.is_some());
        let sweep = sweep.map(|limit| now.plus(limit.saturating_sub(self.active_time(now))));
        let budget = limits.dollars.filter(|_| self.rate() > Usd::ZERO).map(|limit| {
            let left = limit.saturating_sub(self.cost(now) + cost_of(self.rate(), STOP_MARGIN));
            let millis = mul_div_ceil(left.nanos(), 3_600_000, self.rate().nanos());
            now.plus(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
        });
        trials.chain(sweep).chain(budget).min()
    }
}
