//! Waits for deployments: each phase has a clock and a limit.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cudock_azure::{DeploymentState, Phase, Status};

use crate::clock::pause;
use crate::cloud::ApiErrorReason;
use crate::create::phase::PhaseProgress;
use crate::create::run::Deployer;
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::observe::status;

/// The first and the longest pause between two status requests.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Status requests that may fail in a row before the wait ends; the client has repeated each of them already.
const TOLERATED_FAILURES: u32 = 10;

/// Time within which a service may not know yet what it has created.
const CONSISTENCY_DELAY: Duration = Duration::from_secs(120);

/// The state to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitGoal {
    /// It serves requests or works.
    Running,
    /// It has ended.
    Ended,
}

impl Deployer<'_> {
    /// Waits until a deployment runs or has ended, and returns its last status. Nothing is deleted.
    pub(crate) fn wait(&self, record: &DeploymentRecord, goal: WaitGoal) -> Result<Status, DeployError> {
        let name = || record.name.clone();
        let run_id = &record.run_id;
        let began = self.clock.elapsed();
        let mut current: Option<(Phase, bool, Duration)> = None;
        let mut pause_time = FIRST_PAUSE;
        let mut failures = 0;
        let mut was_seen = false;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(DeployError::Interrupted);
            }
            let (status, retry_after) = match status(self.cloud, &record.identity) {
                Ok(response) => response,
                Err(error) if error.reason == ApiErrorReason::Outside && failures < TOLERATED_FAILURES => {
                    failures += 1;
                    pause(self.clock, pause_time, self.interrupted);
                    continue;
                }
                Err(error) => {
                    return Err(DeployError::cloud(
                        format!("cannot read the state of `{}`", record.name),
                        error,
                    ));
                }
            };
            failures = 0;
            self.journal.observe(run_id, &status)?;
            let is_billed = status.billed_from.is_some();
            let now = self.clock.elapsed();
            let since = match current {
                Some((phase, billed, since)) if (phase, billed) == (status.phase, is_billed) => since,
                _ => {
                    self.journal.enter_phase(run_id, Some((status.phase, is_billed)), self.cloud.now())?;
                    // A phase does not begin again because billing began.
                    match current {
                        Some((phase, _, since)) if phase == status.phase => since,
                        _ => now,
                    }
                }
            };
            current = Some((status.phase, is_billed, since));
            let elapsed = now.saturating_sub(since);
            let known = self.known(run_id)?;
            (self.on_progress)(&PhaseProgress {
                phase: status.phase,
                elapsed,
                billed: known.billed.from.map(|_| known.billed_cost(self.cloud.now())),
                detail: status.detail.as_deref(),
            });
            match status.state {
                DeploymentState::Running if goal == WaitGoal::Running => return Ok(status),
                DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Evicted => {
                    return Ok(status);
                }
                DeploymentState::Gone | DeploymentState::Deleting => {
                    if was_seen || now.saturating_sub(began) >= CONSISTENCY_DELAY {
                        return Err(DeployError::Vanished { name: name() });
                    }
                }
                DeploymentState::Starting | DeploymentState::Running => was_seen = true,
            }
            if let Some(limit) = self.limits.of(status.phase).filter(|limit| elapsed >= *limit) {
                return Err(DeployError::GaveUp {
                    name: name(),
                    phase: status.phase,
                    limit,
                    detail: status.detail,
                });
            }
            pause(self.clock, retry_after.unwrap_or(pause_time), self.interrupted);
            pause_time = (pause_time * 3 / 2).min(LONGEST_PAUSE);
        }
    }
}
