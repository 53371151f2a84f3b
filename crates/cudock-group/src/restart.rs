//! Whether a container that ended starts again, and when.
//!
//! Azure documents the three policies and no delay. Containers restart there as in Kubernetes, whose rule this is: the
//! first time at once, then after 10 s, 20 s and so on up to 5 minutes; a run of 10 minutes clears the slate.

use std::time::Duration;

use serde::Serialize;

/// A moment: the time since one of the caller's choice, by a clock that does not go back.
pub type Moment = Duration;

/// The second restart in a row waits this long.
pub const FIRST_DELAY: Duration = Duration::from_secs(10);

/// No restart waits longer.
pub const LONGEST_DELAY: Duration = Duration::from_secs(300);

/// Who ran this long begins anew.
pub const LONG_RUN: Duration = Duration::from_secs(600);

/// What happens when a container ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum RestartPolicy {
    /// It starts again, whatever its exit code.
    #[default]
    Always,
    /// It starts again unless its exit code is 0.
    OnFailure,
    /// It has ended.
    Never,
}

/// The end of one run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code; 128 and the signal's number for one that a signal ended.
    pub code: i32,
    /// Whether it was killed because its liveness probe failed. Then its code says nothing.
    pub unhealthy: bool,
    /// When it started.
    pub started: Moment,
    /// When it ended.
    pub ended: Moment,
}

impl Exit {
    /// How the container ended.
    pub fn outcome(self) -> Outcome {
        if self.code == 0 && !self.unhealthy {
            Outcome::Succeeded
        } else {
            Outcome::Failed { code: self.code }
        }
    }
}

/// How a container ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With exit code 0.
    Succeeded,
    /// With another, or because it was not healthy.
    Failed {
        /// The exit code.
        code: i32,
    },
}

/// What comes after the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another run.
    Restart {
        /// How long after the end of the last.
        after: Duration,
    },
    /// Nothing.
    Done {
        /// How it ended.
        state: Outcome,
    },
}

/// The restarts of one container.
#[derive(Clone, Debug)]
pub struct Restarts {
    policy: RestartPolicy,
    /// Restarts since the last long run.
    streak: u32,
    /// All restarts.
    count: u64,
}

impl Restarts {
    /// Of a container that has not run yet.
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, streak: 0, count: 0 }
    }

    /// Of an init container: it has done its work when it succeeds, so `Always` means until then.
    pub fn of_init(policy: RestartPolicy) -> Self {
        Self::new(if policy == RestartPolicy::Always { RestartPolicy::OnFailure } else { policy })
    }

    /// How often it was started again.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A run ended: what comes next?
    pub fn exited(&mut self, exit: Exit) -> Next {
        let state = exit.outcome();
        let again = match self.policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => state != Outcome::Succeeded,
            RestartPolicy::Never => false,
        };
        if !again {
            return Next::Done { state };
        }
        if exit.ended.saturating_sub(exit.started) >= LONG_RUN {
            self.streak = 0;
        }
        let after = delay(self.streak);
        self.streak = self.streak.saturating_add(1);
        self.count = self.count.saturating_add(1);
        Next::Restart { after }
    }
}

/// How long the next restart waits after so many in a row.
pub fn delay(streak: u32) -> Duration {
    let Some(doublings) = streak.checked_sub(1) else { return Duration::ZERO };
    // Ten seconds doubled five times are more than the longest delay.
    FIRST_DELAY.saturating_mul(1 << doublings.min(5)).min(LONGEST_DELAY)
}

/// How a group stands, in Azure's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum GroupState {
    /// Init containers run, or nothing does yet.
    Pending,
    /// Containers run, or wait to run again.
    Running,
    /// All have ended, each with exit code 0.
    Succeeded,
    /// All have ended, and one failed.
    Failed,
    /// It was told to stop.
    Stopped,
}

impl GroupState {
    /// How a group ends whose containers ended like this.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let all_well = outcomes.into_iter().all(|outcome| outcome == Outcome::Succeeded);
        if all_well { Self::Succeeded } else { Self::Failed }
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
        assert_eq!(delay(u32::MAX), LONGEST_DELAY);
    }

    #[test]
    fn a_run_of_ten_minutes_clears_the_slate() {
        let mut restarts = Restarts::new(RestartPolicy::OnFailure);
        for _ in 0..8 {
            restarts.exited(run(1, 1));
        }
        assert_eq!(after(restarts.exited(run(1, 599))), Some(300));
        assert_eq!(after(restarts.exited(run(1, 600))), Some(0));
        assert_eq!(after(restarts.exited(run(1, 1))), Some(10));
    }

    #[test]
    fn policies_differ_in_which_exit_codes_they_forgive() {
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
            assert_eq!(next, Next::Done { state: Outcome::Succeeded });
        }
        assert_eq!(after(Restarts::of_init(RestartPolicy::Always).exited(run(1, 5))), Some(0));
        assert_eq!(after(Restarts::of_init(RestartPolicy::Never).exited(run(1, 5))), None);
    }

    #[test]
    fn a_group_fails_if_one_of_its_containers_did() {
        let failed = Outcome::Failed { code: 3 };
        assert_eq!(GroupState::of([Outcome::Succeeded, failed]), GroupState::Failed);
        assert_eq!(GroupState::of([Outcome::Succeeded, Outcome::Succeeded]), GroupState::Succeeded);
    }
}
