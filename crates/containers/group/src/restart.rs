//! Restart policies: whether a container that exited starts again, and when.
//!
//! Azure documents the three policies but no delays. Containers restart there as in Kubernetes: immediately the first time,
//! then after 10 s, 20 s and so on up to 5 minutes; a run of 10 minutes resets the delay.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in time: the duration since a start that the caller chooses, by a monotonic clock.
pub type Moment = Duration;

const LONG_RUN: Duration = Duration::from_secs(600);

/// Exponential delays between restarts.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    /// Restarts without a delay before the first one.
    immediate: u32,
    /// Restarts since the last long run.
    streak: u32,
}

impl Backoff {
    /// Kubernetes' delays, for containers of a group: none, 10 s, 20 s and so on up to 5 minutes.
    pub fn kubernetes() -> Self {
        Self { first: Duration::from_secs(10), max: Duration::from_secs(300), immediate: 1, streak: 0 }
    }

    /// The delays of `--restart`: 1 s, 2 s and so on up to a minute.
    pub fn single_container() -> Self {
        Self { first: Duration::from_secs(1), max: Duration::from_secs(60), immediate: 0, streak: 0 }
    }

    /// The delay after a run of this length.
    pub fn next_delay(&mut self, ran: Duration) -> Duration {
        if ran >= LONG_RUN {
            self.streak = 0;
        }
        let streak = self.streak;
        self.streak = streak.saturating_add(1);
        let Some(doublings) = streak.checked_sub(self.immediate) else { return Duration::ZERO };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// It restarts, whatever its exit code.
    #[default]
    Always,
    /// It restarts unless its exit code is 0.
    OnFailure,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code; 128 plus the signal's number if a signal ended it.
    pub code: i32,
    /// Whether it was killed because its liveness probe failed; the code is meaningless then.
    pub unhealthy: bool,
    pub started: Moment,
    pub ended: Moment,
}

impl Exit {
    pub fn outcome(self) -> Outcome {
        if self.code == 0 && !self.unhealthy { Outcome::Succeeded } else { Outcome::Failed }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    /// An exit code other than 0, or unhealthy.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Restart { after: Duration },
    Done { outcome: Outcome },
}

#[derive(Clone, Debug)]
pub struct Restarts {
    policy: RestartPolicy,
    backoff: Backoff,
    count: u64,
}

impl Restarts {
    /// The restarts of a container that has not run yet.
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, backoff: Backoff::kubernetes(), count: 0 }
    }

    /// The restarts of an init container, which restarts only until it succeeds, even under `Always`.
    pub fn of_init(policy: RestartPolicy) -> Self {
        Self::new(if policy == RestartPolicy::Always { RestartPolicy::OnFailure } else { policy })
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn exited(&mut self, exit: Exit) -> Next {
        let outcome = exit.outcome();
        let restart = match self.policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => outcome != Outcome::Succeeded,
            RestartPolicy::Never => false,
        };
        if !restart {
            return Next::Done { outcome };
        }
        self.count = self.count.saturating_add(1);
        Next::Restart { after: self.backoff.next_delay(exit.ended.saturating_sub(exit.started)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupState {
    /// Init containers run, or nothing runs yet.
    Pending,
    /// Containers run, or wait for their restart.
    Running,
    /// All containers exited with code 0.
    Succeeded,
    /// All containers exited, and one failed.
    Failed,
    Stopped,
    /// Its supervisor was killed, and its containers with it.
    Lost,
}

impl GroupState {
    /// Whether it needs a supervisor.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }

    /// The final state for these results.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let all_succeeded = outcomes.into_iter().all(|outcome| outcome == Outcome::Succeeded);
        if all_succeeded { Self::Succeeded } else { Self::Failed }
    }
}

/// The name in the status file.
impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: i32, seconds: u64) -> Exit {
        let started = Duration::from_secs(1000);
        Exit { code, unhealthy: false, started, ended: started + Duration::from_secs(seconds) }
    }

    fn after(next: Next) -> Option<u64> {
        match next {
            Next::Restart { after } => Some(after.as_secs()),
            Next::Done { .. } => None,
        }
    }

    #[test]
    fn delays_double_from_ten_seconds_to_five_minutes() {
        let mut restarts = Restarts::new(RestartPolicy::Always);
        let delays: Vec<_> = (0..9).map(|_| after(restarts.exited(run(1, 1))).unwrap()).collect();
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(restarts.count(), 9);
        restarts.backoff.streak = u32::MAX;
        assert_eq!(after(restarts.exited(run(1, 1))), Some(300));
    }

    #[test]
    fn a_single_container_waits_from_one_second_to_a_minute() {
        let mut backoff = Backoff::single_container();
        let delays: Vec<_> = (0..8).map(|_| backoff.next_delay(Duration::ZERO).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.next_delay(LONG_RUN).as_secs(), 1);
    }

    #[test]
    fn a_run_of_ten_minutes_resets_the_delay() {
        let mut restarts = Restarts::new(RestartPolicy::OnFailure);
        for _ in 0..8 {
            restarts.exited(run(1, 1));
        }
        assert_eq!(after(restarts.exited(run(1, 599))), Some(300));
        assert_eq!(after(restarts.exited(run(1, 600))), Some(0));
        assert_eq!(after(restarts.exited(run(1, 1))), Some(10));
    }

    #[test]
    fn policies_differ_in_which_exit_codes_restart() {
        let unhealthy = Exit { unhealthy: true, ..run(0, 5) };
        let rows = [
            (RestartPolicy::Always, run(0, 5), true),
            (RestartPolicy::Always, run(137, 5), true),
            (RestartPolicy::OnFailure, run(0, 5), false),
            (RestartPolicy::OnFailure, run(1, 5), true),
            (RestartPolicy::OnFailure, unhealthy, true),
            (RestartPolicy::Never, run(0, 5), false),
            (RestartPolicy::Never, run(1, 5), false),
            (RestartPolicy::Never, unhealthy, false),
        ];
        for (policy, exit, again) in rows {
            assert_eq!(after(Restarts::new(policy).exited(exit)).is_some(), again, "{policy:?} {exit:?}");
        }
    }

    #[test]
    fn an_init_container_that_succeeds_is_done_under_every_policy() {
        for policy in [RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never] {
            let next = Restarts::of_init(policy).exited(run(0, 5));
            assert_eq!(next, Next::Done { outcome: Outcome::Succeeded });
        }
        assert_eq!(after(Restarts::of_init(RestartPolicy::Always).exited(run(1, 5))), Some(0));
        assert_eq!(after(Restarts::of_init(RestartPolicy::Never).exited(run(1, 5))), None);
    }

    #[test]
    fn a_group_fails_if_one_of_its_containers_did() {
        assert_eq!(GroupState::of([Outcome::Succeeded, Outcome::Failed]), GroupState::Failed);
        assert_eq!(GroupState::of([Outcome::Succeeded, Outcome::Succeeded]), GroupState::Succeeded);
    }
}
