//! The order in which the containers of a group start, and what follows when one exits.
//!
//! Init containers run one after another, and each must succeed; then all others run concurrently. A state machine that
//! takes events and returns the actions that the supervisor carries out.

use std::time::Duration;

use crate::group::Group;
use crate::restart::{Exit, GroupState, Moment, Next, Outcome, RestartPolicy, Restarts};

/// The exit code of a container that could not be started, as docker has it.
const COULD_NOT_START: i32 = 125;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passed: the first event, and the one after each [`Action::Wait`].
    Tick,
    /// A container's process runs.
    Started(String),
    CouldNotStart(String),
    /// A container's process exited.
    Exited {
        name: String,
        /// Its exit code; 128 plus the signal's number if a signal ended it.
        code: i32,
    },
    /// A container's liveness probe failed.
    Unhealthy(String),
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this container, which is not running.
    Start(String),
    /// Stop this container, which is running. Its [`Event::Exited`] follows.
    Kill { name: String, reason: KillReason },
    /// Send an [`Event::Tick`] after this time unless another event comes first. The last of its list.
    Wait(Duration),
    /// The group has finished and no container runs. The last action of all.
    Finished(GroupState),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    Unhealthy,
    Stopping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not started yet.
    Waiting,
    /// It runs or is being started.
    Running { since: Moment },
    /// It runs and is being stopped; `unhealthy` if its probe failed.
    Ending { since: Moment, unhealthy: bool },
    /// It exited and waits for its restart.
    BackOff { until: Moment },
    /// It exited and does not restart.
    Ended(Outcome),
}

impl Phase {
    fn runs(self) -> bool {
        matches!(self, Self::Running { .. } | Self::Ending { .. })
    }
}

#[derive(Clone, Debug)]
pub struct Member {
    name: String,
    restarts: Restarts,
    phase: Phase,
}

impl Member {
    fn new(name: String, restarts: Restarts) -> Self {
        Self { name, restarts, phase: Phase::Waiting }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn restarts(&self) -> u64 {
        self.restarts.count()
    }

    /// Starts it if it is due.
    fn start(&mut self, now: Moment) -> Option<Action> {
        match self.phase {
            Phase::Waiting => {}
            Phase::BackOff { until } if until <= now => {}
            _ => return None,
        }
        self.phase = Phase::Running { since: now };
        Some(Action::Start(self.name.clone()))
    }

    fn kill(&mut self, reason: KillReason) -> Option<Action> {
        let Phase::Running { since } = self.phase else { return None };
        self.phase = Phase::Ending { since, unhealthy: reason == KillReason::Unhealthy };
        Some(Action::Kill { name: self.name.clone(), reason })
    }

    fn exited(&mut self, code: i32, now: Moment, stopping: bool) {
        let (started, unhealthy) = match self.phase {
            Phase::Running { since } => (since, false),
            Phase::Ending { since, unhealthy } => (since, unhealthy),
            _ => return,
        };
        let exit = Exit { code, unhealthy, started, ended: now };
        self.phase = if stopping {
            Phase::Ended(exit.outcome())
        } else {
            match self.restarts.exited(exit) {
                Next::Restart { after } => Phase::BackOff { until: now.saturating_add(after) },
                Next::Done { outcome } => Phase::Ended(outcome),
            }
        };
    }
}

#[derive(Clone, Debug)]
pub struct Sequence {
    init: Vec<Member>,
    containers: Vec<Member>,
    stopping: bool,
    finished: Option<GroupState>,
}

impl Sequence {
    /// The sequence for containers with these distinct names.
    pub fn new<N: Into<String>>(
        policy: RestartPolicy,
        init: impl IntoIterator<Item = N>,
        containers: impl IntoIterator<Item = N>,
    ) -> Self {
        let init = init.into_iter().map(|name| Member::new(name.into(), Restarts::of_init(policy)));
        let containers = containers.into_iter().map(|name| Member::new(name.into(), Restarts::new(policy)));
        Self { init: init.collect(), containers: containers.collect(), stopping: false, finished: None }
    }

    pub fn of(group: &Group) -> Self {
        let names = |containers: &[crate::Container]| -> Vec<String> {
            containers.iter().map(|container| container.name.clone()).collect()
        };
        Self::new(group.restart_policy, names(&group.init_containers), names(&group.containers))
    }

    /// Init containers, then the others.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.init.iter().chain(&self.containers)
    }

    pub fn state(&self) -> GroupState {
        let begun = self.containers.iter().any(|member| member.phase != Phase::Waiting);
        self.finished.unwrap_or(if begun { GroupState::Running } else { GroupState::Pending })
    }

    /// Handles an event and returns actions in order. Events about containers that do not run are ignored.
    pub fn on(&mut self, event: &Event, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.finished.is_some() {
            return actions;
        }
        match event {
            Event::Tick => {}
            Event::Started(name) => {
                if let Some(member) = self.member(name)
                    && let Phase::Running { since } = &mut member.phase
                {
                    *since = now;
                }
            }
            Event::CouldNotStart(name) => self.exited(name, COULD_NOT_START, now),
            Event::Exited { name, code } => self.exited(name, *code, now),
            Event::Unhealthy(name) => {
                actions.extend(self.member(name).and_then(|member| member.kill(KillReason::Unhealthy)));
            }
            Event::Stop => {
                self.stopping = true;
                let members = self.init.iter_mut().chain(&mut self.containers);
                actions.extend(members.filter_map(|member| member.kill(KillReason::Stopping)));
            }
        }
        self.advance(now, &mut actions);
        actions
    }

    fn exited(&mut self, name: &str, code: i32, now: Moment) {
        let stopping = self.stopping;
        if let Some(member) = self.member(name) {
            member.exited(code, now, stopping);
        }
    }

    fn member(&mut self, name: &str) -> Option<&mut Member> {
        self.init.iter_mut().chain(&mut self.containers).find(|member| member.name == name)
    }

    fn advance(&mut self, now: Moment, actions: &mut Vec<Action>) {
        if !self.stopping {
            let startable = self.startable();
            actions.extend(startable.iter_mut().filter_map(|member| member.start(now)));
        }
        self.finished = self.end();
        if let Some(state) = self.finished {
            actions.push(Action::Finished(state));
        } else if let Some(until) = self.next_start() {
            actions.push(Action::Wait(until.saturating_sub(now)));
        }
    }

    /// The init container that has not succeeded yet, or all containers.
    fn startable(&mut self) -> &mut [Member] {
        let done = |member: &Member| member.phase == Phase::Ended(Outcome::Succeeded);
        match self.init.iter().position(|member| !done(member)) {
            Some(current) => self.init.get_mut(current..=current).unwrap_or_default(),
            None => &mut self.containers,
        }
    }

    fn end(&self) -> Option<GroupState> {
        if self.members().any(|member| member.phase.runs()) {
            return None;
        }
        if self.stopping {
            return Some(GroupState::Stopped);
        }
        let outcome = |member: &Member| match member.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        };
        if self.init.iter().filter_map(outcome).any(|outcome| outcome != Outcome::Succeeded) {
            return Some(GroupState::Failed);
        }
        let outcomes: Option<Vec<Outcome>> = self.containers.iter().map(outcome).collect();
        outcomes.map(GroupState::of)
    }

    fn next_start(&self) -> Option<Moment> {
        if self.stopping {
            return None;
        }
        let until = |member: &Member| match member.phase {
            Phase::BackOff { until } => Some(until),
            _ => None,
        };
        self.members().filter_map(until).min()
    }
}
