//! When a probe runs, and what follows from its results.
//!
//! A state machine with the clock passed in. Azure's probes behave as those of Kubernetes, and Azure documents no defaults of
//! its own, so these are Kubernetes' defaults and rules.

use std::time::Duration;

use crate::restart::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time between the start of the container and the first attempt.
    pub initial_delay: Duration,
    /// The time between two attempts; not zero.
    pub period: Duration,
    /// How long an attempt may take; not zero.
    pub timeout: Duration,
    /// Successes in a row until it is healthy; at least 1.
    pub success_threshold: u32,
    /// Failures in a row until it is unhealthy; at least 1.
    pub failure_threshold: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 3,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The container is killed when it fails.
    Liveness,
    /// The container is ready while it succeeds, and not before.
    Readiness,
}

/// The number of an attempt, by which its result is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeAttempt(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Run the command or send the request, and call [`Prober::finished`] before the deadline: after it the attempt has failed.
    Run { attempt: ProbeAttempt, deadline: Moment },
    /// Nothing, until then or until a result arrives.
    Wait(Moment),
    /// Kill the container; its restart policy decides what follows. Returned once.
    Restart,
    /// The container became ready or unready. Returned when it changes.
    Ready(bool),
}

pub const FOREVER: Moment = Duration::MAX;

/// A probe of one run of a container. The next run needs a new one.
#[derive(Clone, Debug)]
pub struct Prober {
    purpose: Purpose,
    timing: Timing,
    due: Moment,
    /// The attempt without a result, and its deadline.
    pending: Option<(ProbeAttempt, Moment)>,
    attempts: u64,
    successes: u32,
    failures: u32,
    ready: bool,
    /// A change that was not returned yet.
    change: Option<ProbeStep>,
    over: bool,
}

impl Prober {
    /// A probe of a container that started at this time.
    pub fn new(purpose: Purpose, timing: Timing, started: Moment) -> Self {
        Self {
            purpose,
            timing,
            due: started.saturating_add(timing.initial_delay),
            pending: None,
            attempts: 0,
            successes: 0,
            failures: 0,
            ready: false,
            change: None,
            over: false,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// The next step. Call it again after each step until it returns [`ProbeStep::Wait`].
    pub fn step(&mut self, now: Moment) -> ProbeStep {
        if let Some((_, deadline)) = self.pending
            && now >= deadline
        {
            self.pending = None;
            self.count(false);
        }
        if let Some(change) = self.change.take() {
            return change;
        }
        if self.over {
            return ProbeStep::Wait(FOREVER);
        }
        match self.pending {
            Some((_, deadline)) => ProbeStep::Wait(deadline),
            None if now < self.due => ProbeStep::Wait(self.due),
            None => self.start_attempt(now),
        }
    }

    fn start_attempt(&mut self, now: Moment) -> ProbeStep {
        let attempt = ProbeAttempt(self.attempts);
        let deadline = now.saturating_add(self.timing.timeout.max(Duration::from_millis(1)));
        self.attempts += 1;
        self.pending = Some((attempt, deadline));
        // Attempts keep their period; one that takes longer is followed by the next at once.
        self.due = now.saturating_add(self.timing.period.max(Duration::from_millis(1)));
        ProbeStep::Run { attempt, deadline }
    }

    /// Takes the result of an attempt. One that timed out is ignored.
    pub fn finished(&mut self, attempt: ProbeAttempt, healthy: bool, now: Moment) {
        if let Some((pending, deadline)) = self.pending
            && pending == attempt
        {
            self.pending = None;
            self.count(healthy && now < deadline);
        }
    }

    fn count(&mut self, healthy: bool) {
        if healthy {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
        } else {
            self.successes = 0;
            self.failures = self.failures.saturating_add(1);
        }
        match self.purpose {
            Purpose::Liveness if self.failures >= self.timing.failure_threshold.max(1) && !self.over => {
                self.over = true;
                self.change = Some(ProbeStep::Restart);
            }
            Purpose::Liveness => {}
            Purpose::Readiness => self.update_readiness(),
        }
    }

    fn update_readiness(&mut self) {
        let ready = if self.ready {
            self.failures < self.timing.failure_threshold.max(1)
        } else {
            self.successes >= self.timing.success_threshold.max(1)
        };
        if ready != self.ready {
            self.ready = ready;
            self.change = Some(ProbeStep::Ready(ready));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn run(prober: &mut Prober, now: u64) -> ProbeAttempt {
        match prober.step(secs(now)) {
            ProbeStep::Run { attempt, .. } => attempt,
            other => panic!("{other:?} at {now}"),
        }
    }

    fn finish(prober: &mut Prober, now: u64, healthy: bool) {
        let attempt = run(prober, now);
        prober.finished(attempt, healthy, secs(now));
    }

    #[test]
    fn the_first_attempt_comes_after_the_delay_and_the_others_each_period() {
        let timing = Timing { initial_delay: secs(5), period: secs(7), ..Timing::default() };
        let mut prober = Prober::new(Purpose::Liveness, timing, secs(100));
        assert_eq!(prober.step(secs(100)), ProbeStep::Wait(secs(105)));
        finish(&mut prober, 105, true);
        assert_eq!(prober.step(secs(105)), ProbeStep::Wait(secs(112)));
        finish(&mut prober, 112, true);
        assert_eq!(prober.step(secs(113)), ProbeStep::Wait(secs(119)));
    }

    #[test]
    fn liveness_restarts_after_failures_in_a_row_and_only_once() {
        let mut prober = Prober::new(Purpose::Liveness, Timing::default(), secs(0));
        for (now, healthy) in [(0, false), (10, false), (20, true), (30, false), (40, false), (50, false)] {
            finish(&mut prober, now, healthy);
        }
        assert_eq!(prober.step(secs(50)), ProbeStep::Restart);
        assert_eq!(prober.step(secs(50)), ProbeStep::Wait(FOREVER));
        assert_eq!(prober.step(secs(500)), ProbeStep::Wait(FOREVER));
    }

    #[test]
    fn readiness_begins_as_false_and_changes_at_its_thresholds() {
        let timing = Timing { success_threshold: 2, failure_threshold: 2, ..Timing::default() };
        let mut prober = Prober::new(Purpose::Readiness, timing, secs(0));
        let mut changes = Vec::new();
        for (round, healthy) in
            [true, false, true, true, false, true, false, false, true, true].into_iter().enumerate()
        {
            let now = u64::try_from(round).unwrap() * 10;
            finish(&mut prober, now, healthy);
            match prober.step(secs(now)) {
                ProbeStep::Ready(ready) => changes.push((round, ready)),
                ProbeStep::Wait(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(changes, [(3, true), (7, false), (9, true)]);
        assert!(prober.is_ready());
    }

    #[test]
    fn a_timeout_is_a_failure_and_a_late_result_is_ignored() {
        let timing = Timing { timeout: secs(2), failure_threshold: 2, ..Timing::default() };
        let mut prober = Prober::new(Purpose::Liveness, timing, secs(0));
        let late = run(&mut prober, 0);
        assert_eq!(prober.step(secs(1)), ProbeStep::Wait(secs(2)));
        assert_eq!(prober.step(secs(2)), ProbeStep::Wait(secs(10)));
        prober.finished(late, true, secs(3));
        let second = run(&mut prober, 10);
        prober.finished(late, true, secs(11));
        prober.finished(second, true, secs(12));
        assert_eq!(prober.step(secs(12)), ProbeStep::Restart, "a result at the deadline is too late");
    }

    #[test]
    fn an_attempt_that_took_longer_than_the_period_is_followed_at_once() {
        let timing = Timing { period: secs(1), timeout: secs(5), ..Timing::default() };
        let mut prober = Prober::new(Purpose::Liveness, timing, secs(0));
        let attempt = run(&mut prober, 0);
        assert_eq!(prober.step(secs(3)), ProbeStep::Wait(secs(5)), "never two attempts at once");
        prober.finished(attempt, true, secs(4));
        run(&mut prober, 4);
    }
}
