//! How a deployment is deleted from the inside: which request comes next, and when to give up.

use std::time::Duration;

use cudock_azure::{Call, Plane, group_name, reaper_run_path};
use cudock_base::text::percent;
use cudock_http::Method;

/// Time after which the deletion fails. A role assignment takes up to ten minutes to take effect;
/// refusals are retried for longer than that.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15 * 60);
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Time that the reaper has before the group is deleted directly.
const REAPER_TIME: Duration = Duration::from_secs(5 * 60);
const DEALLOCATE_ATTEMPTS: u32 = 3;

/// The requests that end a deployment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeletionCalls {
    /// Runs the Logic App that deletes the group. It needs the least rights, so it is tried first.
    pub reaper: Option<Call>,
    pub group: Option<Call>,
    /// Stops billing for the machine if nothing may be deleted. Its disk and address still cost.
    pub deallocate: Option<Call>,
}

impl DeletionCalls {
    /// The requests for a run, whose names derive from its id.
    pub fn of_run(subscription: &str, run_id: &str, vm: Option<&str>) -> Self {
        let (subscription, run) = (percent::encode(subscription), percent::encode(run_id));
        let call = |method: Method, path: String| {
            Some(Call { method, plane: Plane::ResourceManager, path, body: None })
        };
        let group = format!("/subscriptions/{subscription}/resourceGroups/{}", group_name(&run));
        let delete =
            format!("{group}?api-version=2021-04-01&forceDeletionTypes=Microsoft.Compute%2FvirtualMachines");
        Self {
            reaper: call(Method::POST, reaper_run_path(&subscription, &run)),
            group: call(Method::DELETE, delete),
            deallocate: vm.and_then(|vm| {
                let vm = percent::encode(vm);
                let path = format!(
                    "{group}/providers/Microsoft.Compute/virtualMachines/{vm}/deallocate?api-version=2024-07-01"
                );
                call(Method::POST, path)
            }),
        }
    }
}

/// The next action of a deletion.
#[derive(Debug, Clone, PartialEq)]
pub enum DeletionAction {
    Send(Call),
    /// Ask again at this time since the start.
    WaitUntil(Duration),
    End(DeletionEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionEnd {
    /// Azure accepted to delete everything.
    Deleted,
    /// Nothing may be deleted, and the machine is stopped.
    Deallocated,
    /// Neither was possible.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Reaper,
    Group,
    Deallocate { attempt: u32 },
}

#[derive(Debug, Clone, Copy)]
enum DeletionState {
    Next { means: Means, at: Duration },
    Ended(DeletionEnd),
}

/// A deletion that has begun.
#[derive(Debug, Clone)]
pub struct Deletion {
    calls: DeletionCalls,
    started: Duration,
    state: DeletionState,
}

impl Deletion {
    /// Begins at a time since the start of the watch.
    pub fn new(calls: DeletionCalls, now: Duration) -> Self {
        let mut deletion = Self { calls, started: now, state: DeletionState::Ended(DeletionEnd::Failed) };
        deletion.state = deletion.first(now);
        deletion
    }

    /// The next action at this time.
    pub fn next(&self, now: Duration) -> DeletionAction {
        match self.state {
            DeletionState::Ended(end) => DeletionAction::End(end),
            DeletionState::Next { at, .. } if now < at => DeletionAction::WaitUntil(at),
            DeletionState::Next { means, .. } => match self.call(means) {
                Some(call) => DeletionAction::Send(call.clone()),
                None => DeletionAction::End(DeletionEnd::Failed),
            },
        }
    }

    /// Takes the status of the response to what was sent; none if there was no response.
    pub fn on_response(&mut self, now: Duration, status: Option<u16>) {
        let DeletionState::Next { means, .. } = self.state else { return };
        let is_accepted = matches!(status, Some(200..=299));
        // The sender is part of the deleted group: 404 means that another deletion was faster.
        let is_gone = status == Some(404);
        self.state = match means {
            // This process ends with the machine, so it continues only if the reaper fails.
            Means::Reaper if is_accepted => self.direct(now.saturating_add(REAPER_TIME)),
            Means::Reaper => match self.calls.group {
                Some(_) => self.direct(now),
                None => self.again(now),
            },
            Means::Group if is_accepted || is_gone => DeletionState::Ended(DeletionEnd::Deleted),
            Means::Group => self.again(now),
            Means::Deallocate { .. } if is_accepted || is_gone => {
                DeletionState::Ended(DeletionEnd::Deallocated)
            }
            Means::Deallocate { attempt } if attempt < DEALLOCATE_ATTEMPTS => DeletionState::Next {
                means: Means::Deallocate { attempt: attempt + 1 },
                at: now.saturating_add(RETRY_AFTER),
            },
            Means::Deallocate { .. } => DeletionState::Ended(DeletionEnd::Failed),
        };
    }

    fn call(&self, means: Means) -> Option<&Call> {
        match means {
            Means::Reaper => self.calls.reaper.as_ref(),
            Means::Group => self.calls.group.as_ref(),
            Means::Deallocate { .. } => self.calls.deallocate.as_ref(),
        }
    }

    fn first(&self, at: Duration) -> DeletionState {
        match (&self.calls.reaper, &self.calls.group) {
            (Some(_), _) => DeletionState::Next { means: Means::Reaper, at },
            (None, Some(_)) => DeletionState::Next { means: Means::Group, at },
            (None, None) => self.deallocate(at),
        }
    }

    /// Deletes the group directly; retries the reaper if that is not possible at all.
    fn direct(&self, at: Duration) -> DeletionState {
        match self.calls.group {
            Some(_) => DeletionState::Next { means: Means::Group, at },
            None => self.again(at),
        }
    }

    /// Starts over after a pause, until it is time to give up.
    fn again(&self, now: Duration) -> DeletionState {
        if now.saturating_sub(self.started) >= GIVE_UP_AFTER {
            self.deallocate(now)
        } else {
            self.first(now.saturating_add(RETRY_AFTER))
        }
    }

    fn deallocate(&self, at: Duration) -> DeletionState {
        match self.calls.deallocate {
            Some(_) => DeletionState::Next { means: Means::Deallocate { attempt: 1 }, at },
            None => DeletionState::Ended(DeletionEnd::Failed),
        }
    }
}
