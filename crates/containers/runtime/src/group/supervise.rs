//! The supervisor of a group.
//!
//! The main thread makes all changes: it starts watchers (which are killed when the thread that started them ends), collects
//! their exit codes, and passes events to the state machine of `cudock_group`. Other threads only wait: for signals, for a
//! watcher's report, for a probe's response, for a container's output.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use cudock_group::Group;
use cudock_group::restart::{GroupState, Moment, Outcome};
use cudock_group::sequence::{Action, Event, KillReason, Phase, Sequence};
use nix::sys::signal::{SigSet, Signal};

use super::create::container_name;
use super::dir::{GroupDir, GroupLock};
use super::log_mux::{LogMux, spawn};
use super::member::{Channels, Member, RunEnd};
use super::message::Message;
use super::probe::runner::ProbeEvent;
use super::start::{GroupHandover, NOT_READY, READY};
use super::status::{GroupStatus, MemberStatus};
use super::volumes;
use crate::container::config::NetworkMode;
use crate::container::home::Home;
use crate::container::state_file::{is_full, write_json};
use crate::container::status::{now, process_began};
use crate::error::{OnError, RuntimeError, error_text};
use crate::namespace::reexec;
use crate::start::network::Network;
use crate::start::overlay::leave_mount_namespace;
use crate::supervise::watch::Connection;

const HANDLED_SIGNALS: [Signal; 5] =
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// A container without a readiness probe counts as ready after this time: most failures happen at once.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Supervises a group until it has ended, and returns its final state.
pub fn supervise(
    dir: &GroupDir,
    lock: GroupLock,
    handover: &GroupHandover,
    mut connection: Connection,
) -> Result<GroupState, RuntimeError> {
    let supervisor = match set_up(dir, handover, &mut connection) {
        Ok(supervisor) => supervisor,
        Err(error) => {
            // Nothing ever ran, so nothing is kept; the group is removed before the error is reported.
            volumes::unmount(dir);
            let _ = dir.remove(&Home::at(&handover.home), lock);
            reexec::reply(&mut connection.ready, &reexec::format_error(&error));
            return Err(error);
        }
    };
    let outcome = supervisor.run();
    if let Err(error) = &outcome {
        let status =
            GroupStatus { error: Some(error_text(error)), ..initial_status(dir, GroupState::Failed) };
        dir.set_status(&status)?;
    }
    drop(lock);
    outcome
}

fn initial_status(dir: &GroupDir, state: GroupState) -> GroupStatus {
    let supervisor = std::process::id();
    GroupStatus {
        name: dir.name(),
        state,
        created: now(),
        supervisor,
        supervisor_began: i32::try_from(supervisor).ok().and_then(process_began),
        ports: Vec::new(),
        error: None,
        containers: Vec::new(),
    }
}

/// Creates what the containers share. The order matters: the helper processes of the network must not inherit blocked
/// signals, and the mount namespace must be left while there is one thread.
fn set_up(
    dir: &GroupDir,
    handover: &GroupHandover,
    connection: &mut Connection,
) -> Result<Supervisor, RuntimeError> {
    let mut group =
        cudock_group::read(&handover.text).map_err(|error| RuntimeError::Request(error.to_string()))?.group;
    group.name.clone_from(&handover.name);
    let status = initial_status(dir, GroupState::Pending);
    dir.set_status(&status)?;
    leave_mount_namespace()?;
    volumes::create(&group, dir, &handover.volumes.iter().cloned().collect())?;
    let network = Network::set_up(dir.path(), &handover.network)?;
    let members = members(&group, &Home::at(&handover.home), &network)?;
    let mux =
        LogMux::new(group.all_containers().map(|container| container.name.as_str()), connection.attached);
    let (sender, messages) = channel();
    handle_signals(sender.clone())?;
    let host_network = handover.network.mode == NetworkMode::Host;
    let supervisor = Supervisor {
        dir: dir.clone(),
        sequence: Sequence::of(&group),
        members,
        status: GroupStatus { ports: network.ports(), ..status },
        host_network,
        network,
        mux,
        began: Instant::now(),
        sender,
        messages,
        ready: connection.ready.take(),
        announced: false,
        wake: None,
        stop_requests: 0,
        finished: None,
        network_changed: false,
    };
    Ok(supervisor)
}

fn members(group: &Group, home: &Home, network: &Network) -> Result<Vec<Member>, RuntimeError> {
    let inits = group.init_containers.iter().map(|container| (container, true));
    let others = group.containers.iter().map(|container| (container, false));
    let member = |(container, init): (&cudock_group::Container, bool)| {
        let (dir, mut config) = home.find(&container_name(&group.name, &container.name))?;
        // The address of the outbound tool's name server is known only now.
        if let Some(server) = network.name_server().filter(|_| config.network.dns.is_empty()) {
            config.network.dns.push(server.to_string());
            write_json(&dir.config_file(), &config)?;
        }
        Ok(Member::new(container.clone(), init, dir, config))
    };
    inits.chain(others).map(member).collect()
}

/// Turns signals into messages from here on.
fn handle_signals(messages: Sender<Message>) -> Result<(), RuntimeError> {
    let set: SigSet = HANDLED_SIGNALS.into_iter().collect();
    set.thread_block().when("cannot block signals")?;
    let forward = move || {
        while let Ok(signal) = set.wait() {
            if messages.send(Message::Signal(signal)).is_err() {
                return;
            }
        }
    };
    spawn("signals".to_owned(), forward).map(drop)
}

struct Supervisor {
    dir: GroupDir,
    sequence: Sequence,
    members: Vec<Member>,
    status: GroupStatus,
    network: Network,
    host_network: bool,
    mux: Arc<LogMux>,
    began: Instant,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    ready: Option<File>,
    announced: bool,
    /// When the sequence needs its next tick.
    wake: Option<Moment>,
    stop_requests: u32,
    finished: Option<GroupState>,
    network_changed: bool,
}

impl Supervisor {
    fn run(mut self) -> Result<GroupState, RuntimeError> {
        self.handle(Event::Tick);
        loop {
            let next = self.poll();
            // Written first, so that notified processes read the new status.
            self.write_status()?;
            self.report_start();
            if let Some(state) = self.finished {
                self.mux.announce("group", &state.to_string());
                return Ok(state);
            }
            let limit = next.map_or(Duration::from_secs(3600), |next| next.saturating_sub(self.now()));
            match self.messages.recv_timeout(limit) {
                Ok(message) => self.receive(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn now(&self) -> Moment {
        self.began.elapsed()
    }

    fn receive(&mut self, message: Message) {
        let now = self.now();
        match message {
            // The exits of watchers are collected in `poll`.
            Message::Signal(Signal::SIGCHLD) => self.restart_network(),
            Message::Signal(_) => self.stop(),
            Message::Began { name, run, reply } => {
                if self.member(&name).is_some_and(|member| member.began(run, reply, now)) {
                    self.mux.announce(&name, "started");
                    self.handle(Event::Started(name));
                }
            }
            Message::Probed { name, run, probe, attempt, outcome } => {
                if let Some(runner) = self.member(&name).and_then(|member| member.probe(run, probe)) {
                    runner.finished(attempt, outcome, now);
                }
            }
        }
    }

    fn restart_network(&mut self) {
        if self.network.restart_helpers() {
            // Written with the next status.
            self.network_changed = true;
            if let Some(error) = self.network.error() {
                self.mux.announce("group", &error);
            }
        }
    }

    /// The containers, and what the state machine knows of each.
    fn members(&self) -> impl Iterator<Item = (&Member, &cudock_group::sequence::Member)> {
        self.members.iter().zip(self.sequence.members())
    }

    fn member(&mut self, name: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.container.name == name)
    }

    /// Stops the group the first time, and kills it after that.
    fn stop(&mut self) {
        self.stop_requests += 1;
        let now = self.now();
        if self.stop_requests == 1 {
            self.mux.announce("group", "stopping; press Ctrl-C again to kill it");
            self.handle(Event::Stop);
        } else {
            self.members.iter_mut().for_each(|member| member.stop(Duration::ZERO, now));
        }
    }

    /// Passes an event to the state machine and carries out its actions, and those that follow from them.
    fn handle(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = self.now();
            let actions = self.sequence.on(&event, now);
            self.wake = None;
            for action in actions {
                match action {
                    Action::Start(name) => events.extend(self.start(&name)),
                    Action::Kill { name, reason } => self.kill(&name, reason),
                    Action::Wait(pause) => self.wake = Some(now.saturating_add(pause)),
                    Action::Finished(state) => self.finished = Some(state),
                }
            }
            if let Event::Exited { name, .. } | Event::CouldNotStart(name) = &event {
                self.announce_backoff(name, now);
            }
        }
    }

    /// Prints how long a container waits for its restart, if it does.
    fn announce_backoff(&self, name: &str, now: Moment) {
        let known = self.sequence.members().find(|known| known.name() == name);
        if let Some(Phase::BackOff { until }) = known.map(cudock_group::sequence::Member::phase)
            && until > now
        {
            self.mux.announce(name, &format!("restarts in {} s", seconds(until, now)));
        }
    }

    /// Starts a container. Returns an event if that failed at once.
    fn start(&mut self, name: &str) -> Option<Event> {
        let network = if self.host_network { None } else { self.network.namespace().map(Into::into) };
        let channels = Channels { messages: &self.sender, mux: &self.mux, network };
        let member = self.members.iter_mut().find(|member| member.container.name == name)?;
        let error = member.start(&channels).err()?;
        member.reason = Some(error_text(&error));
        self.mux.announce(name, &format!("failed to start: {}", error_text(&error)));
        Some(Event::CouldNotStart(name.to_owned()))
    }

    fn kill(&mut self, name: &str, reason: KillReason) {
        let now = self.now();
        let requested = self.dir.grace().map(|seconds| Duration::from_secs(seconds.into()));
        if let Some(member) = self.member(name) {
            let own = member.grace();
            let grace = if reason == KillReason::Stopping { requested.unwrap_or(own) } else { own };
            member.stop(grace, now);
        }
    }

    /// Handles everything that has changed or is due, and returns when to poll again.
    fn poll(&mut self) -> Option<Moment> {
        if self.wake.is_some_and(|wake| wake <= self.now()) {
            self.handle(Event::Tick);
        }
        let mut next: Option<Moment> = None;
        for index in 0..self.members.len() {
            while let Some(event) = self.poll_member(index, &mut next) {
                self.handle(event);
            }
        }
        let settles = self.settles().filter(|then| !self.announced && *then > self.now());
        [next, self.wake, settles].into_iter().flatten().min()
    }

    fn poll_member(&mut self, index: usize, next: &mut Option<Moment>) -> Option<Event> {
        let now = self.now();
        let member = self.members.get_mut(index)?;
        let name = member.container.name.clone();
        match member.take_end() {
            Some(RunEnd::Exited(code)) => {
                let memory = if member.ran_out_of_memory() { ": out of memory" } else { "" };
                // A container that was killed for a failed probe keeps that reason.
                if code != 0 && member.reason.is_none() {
                    member.reason = Some(format!("exited with code {code}{memory}"));
                }
                self.mux.announce(&name, &format!("exited with code {code}{memory}"));
                return Some(Event::Exited { name, code });
            }
            Some(RunEnd::FailedToStart(reason)) => {
                self.mux.announce(&name, &format!("failed to start: {reason}"));
                member.reason = Some(reason);
                return Some(Event::CouldNotStart(name));
            }
            None => {}
        }
        let (events, again) = member.poll_probes(now);
        let stop = member.poll_stop(now);
        *next = [*next, again, stop].into_iter().flatten().min();
        let mut event = None;
        for probe_event in events {
            match probe_event {
                ProbeEvent::Ready(true) => self.mux.announce(&name, "is ready"),
                ProbeEvent::Ready(false) => self.mux.announce(&name, "is no longer ready"),
                ProbeEvent::Unhealthy(reason) => {
                    self.mux.announce(&name, &format!("is not alive: {reason}"));
                    event = Some(Event::Unhealthy(name.clone()));
                }
                ProbeEvent::Wait(_) => {}
            }
        }
        event
    }

    /// Reports once that all containers are ready, or that they will not be soon.
    fn report_start(&mut self) {
        if self.announced {
            return;
        }
        let reply = if let Some(state) = self.finished {
            self.end_message(state)
        } else if let Some(reason) = self.failing() {
            format!("{NOT_READY}\n{reason}")
        } else if self.all_ready() {
            self.mux.announce("group", &self.ready_message());
            READY.to_owned()
        } else {
            return;
        };
        self.announced = true;
        reexec::reply(&mut self.ready, &reply);
    }

    fn ready_message(&self) -> String {
        let ports = self.status.ports.join(", ");
        if ports.is_empty() {
            "all containers are ready".to_owned()
        } else {
            format!("all containers are ready: {ports}")
        }
    }

    fn end_message(&self, state: GroupState) -> String {
        if state == GroupState::Succeeded {
            return READY.to_owned();
        }
        let reason = |member: &Member| {
            member.reason.as_ref().map(|reason| format!("{}: {reason}", member.container.name))
        };
        let reasons: Vec<String> = self.members.iter().filter_map(reason).collect();
        format!("{NOT_READY}\nthe group {state}: {}", reasons.join("; "))
    }

    fn all_ready(&self) -> bool {
        self.members().all(|(member, known)| {
            known.phase() == Phase::Ended(Outcome::Succeeded) || (!member.init && member.is_ready())
        }) && self.settles().is_none_or(|then| then <= self.now())
    }

    /// When all containers without a readiness probe count as ready.
    fn settles(&self) -> Option<Moment> {
        let settles = self.members().filter_map(|(member, known)| match known.phase() {
            Phase::Running { since } if member.container.readiness.is_none() => {
                Some(since.saturating_add(SETTLE_TIME))
            }
            _ => None,
        });
        settles.max()
    }

    /// A container that keeps failing or has failed for good, with the reason.
    fn failing(&self) -> Option<String> {
        let now = self.now();
        self.members().find_map(|(member, known)| {
            let name = &member.container.name;
            let reason = member
                .reason
                .clone()
                .unwrap_or_else(|| format!("exited with code {}", member.exit_code.unwrap_or_default()));
            match known.phase() {
                Phase::BackOff { until } if until > now => {
                    Some(format!("{name}: {reason}; it restarts in {} s", seconds(until, now)))
                }
                Phase::Ended(Outcome::Failed) => Some(format!("{name}: {reason}")),
                _ => None,
            }
        })
    }

    /// Writes the status of the group if it has changed.
    fn write_status(&mut self) -> Result<(), RuntimeError> {
        let containers = self.members().map(|(member, known)| MemberStatus {
            name: member.container.name.clone(),
            id: member.config.id.clone(),
            init: member.init,
            phase: known.phase().into(),
            ready: member.is_ready(),
            restarts: known.restarts(),
            exit_code: member.exit_code,
            reason: member.reason.clone().or_else(|| member.unready_reason()),
        });
        let state = self.sequence.state();
        let mut status = GroupStatus { state, containers: containers.collect(), ..self.status.clone() };
        if std::mem::take(&mut self.network_changed) {
            status.ports = self.network.ports();
            status.error = self.network.error();
        }
        if status != self.status {
            // On a full disk it is written with the next change; the containers keep running.
            match self.dir.set_status(&status) {
                Err(RuntimeError::File { source, .. }) if is_full(&source) => {}
                other => other?,
            }
            self.status = status;
        }
        Ok(())
    }
}

/// Seconds until a time, rounded up.
fn seconds(until: Moment, now: Moment) -> u64 {
    until.saturating_sub(now).as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}
