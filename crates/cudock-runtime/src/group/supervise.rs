//! The life of a group, from the side of the one process that supervises it.
//!
//! The main thread does everything that changes anything: it starts watchers (which end with the thread that started
//! them), takes their exit codes, and tells the policies of `cudock_group`. Threads beside it only wait: for signals,
//! for a watcher's word, for an answer to a request, for a container's output.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use cudock_group::Group;
use cudock_group::restart::{GroupState, Moment, Outcome};
use cudock_group::sequence::{Action, Event, KillReason, Phase, Sequence};
use nix::sys::signal::{SigSet, Signal};

use super::ask::News;
use super::dir::{GroupDir, GroupLock};
use super::make::container_name;
use super::member::{Answer, Came, Member, Ties};
use super::message::Message;
use super::output::Voice;
use super::start::{Handover, NOT_READY, READY};
use super::state::{GroupStatus, MemberStatus, State};
use super::volumes;
use crate::error::{OnSystem, RuntimeError};
use crate::home::{Home, is_full, write_json};
use crate::launch::text;
use crate::network::Network;
use crate::overlay::leave_mount_namespace;
use crate::plan::NetworkMode;
use crate::reexec;
use crate::status::{now, process_began};

/// How a supervisor is connected to whoever started it.
#[derive(Debug, Default)]
pub struct Connection {
    /// Whether what the containers write goes to our own outputs.
    pub attached: bool,
    /// Where to say that all containers are ready, or why they are not.
    pub ready: Option<File>,
}

/// The signals a supervisor hears.
const HEARD: [Signal; 5] =
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// A container that nobody asks after counts as well when it has run so long: most that fail do so at once.
const SETTLED: Duration = Duration::from_secs(1);

/// Supervises a group until it has ended. How it ended.
pub fn supervise(
    dir: &GroupDir,
    lock: GroupLock,
    handover: &Handover,
    mut connection: Connection,
) -> Result<GroupState, RuntimeError> {
    let supervisor = match set_up(dir, handover, &mut connection) {
        Ok(supervisor) => supervisor,
        Err(error) => {
            // Nothing ever ran, so nothing of it is worth keeping; and it is gone when that is said.
            volumes::forget(dir);
            let _ = dir.remove(&Home::at(&handover.home), lock);
            if let Some(mut ready) = connection.ready.take() {
                let _ = ready.write_all(reexec::report(&error).as_bytes());
            }
            return Err(error);
        }
    };
    let outcome = supervisor.live();
    if let Err(error) = &outcome {
        let status = GroupStatus { error: Some(text(error)), ..first_status(dir, State::Failed) };
        dir.set_status(&status)?;
    }
    drop(lock);
    outcome
}

fn first_status(dir: &GroupDir, state: State) -> GroupStatus {
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

/// Makes what the containers share. The order matters: the helpers of the network must not inherit blocked signals, and
/// the mount namespace must be left while there is one thread.
fn set_up(
    dir: &GroupDir,
    handover: &Handover,
    connection: &mut Connection,
) -> Result<Supervisor, RuntimeError> {
    let mut group =
        cudock_group::read(&handover.text).map_err(|error| RuntimeError::Request(error.to_string()))?.group;
    group.name.clone_from(&handover.name);
    let status = first_status(dir, State::Pending);
    dir.set_status(&status)?;
    leave_mount_namespace()?;
    volumes::make(&group, dir, &handover.volumes.iter().cloned().collect())?;
    let network = Network::set_up(dir.path(), &handover.network)?;
    let members = members(&group, &Home::at(&handover.home), &network)?;
    let voice =
        Voice::new(group.all_containers().map(|container| container.name.as_str()), connection.attached);
    let (sender, messages) = channel();
    listen(sender.clone())?;
    let shared = handover.network.mode == NetworkMode::Host;
    let supervisor = Supervisor {
        dir: dir.clone(),
        sequence: Sequence::of(&group),
        members,
        status: GroupStatus { ports: network.ports(), ..status },
        shared,
        network,
        voice,
        began: Instant::now(),
        sender,
        messages,
        ready: connection.ready.take(),
        announced: false,
        wake: None,
        stops: 0,
        finished: None,
        network_changed: false,
    };
    Ok(supervisor)
}

/// The containers that were made for the group.
fn members(group: &Group, home: &Home, network: &Network) -> Result<Vec<Member>, RuntimeError> {
    let inits = group.init_containers.iter().map(|container| (container, true));
    let others = group.containers.iter().map(|container| (container, false));
    let member = |(container, init): (&cudock_group::Container, bool)| {
        let (dir, mut plan) = home.find(&container_name(&group.name, &container.name))?;
        // A way out answers for the machine's own name servers, at an address that is known only now.
        if let Some(server) = network.name_server().filter(|_| plan.network.dns.is_empty()) {
            plan.network.dns.push(server.to_string());
            write_json(&dir.plan_file(), &plan)?;
        }
        Ok(Member::new(container.clone(), init, dir, plan))
    };
    inits.chain(others).map(member).collect()
}

/// From here on signals are messages.
fn listen(messages: Sender<Message>) -> Result<(), RuntimeError> {
    let set: SigSet = HEARD.into_iter().collect();
    set.thread_block().when("cannot block signals")?;
    let thread = thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10);
    let listener = move || {
        while let Ok(signal) = set.wait() {
            if messages.send(Message::Signal(signal)).is_err() {
                return;
            }
        }
    };
    thread.spawn(listener).map(|_| ()).when("cannot start a thread")
}

struct Supervisor {
    dir: GroupDir,
    sequence: Sequence,
    members: Vec<Member>,
    status: GroupStatus,
    network: Network,
    /// Whether the containers are in this machine's own network.
    shared: bool,
    voice: Arc<Voice>,
    began: Instant,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    ready: Option<File>,
    announced: bool,
    /// When the sequence wants to be told the time.
    wake: Option<Moment>,
    /// How often we were asked to end.
    stops: u32,
    finished: Option<GroupState>,
    network_changed: bool,
}

impl Supervisor {
    fn live(mut self) -> Result<GroupState, RuntimeError> {
        self.tell(Event::Tick);
        loop {
            let next = self.look();
            // First what others read, so that whoever is told finds it so.
            self.write_down()?;
            self.announce();
            if let Some(state) = self.finished {
                self.voice.say("group", State::from(state).word());
                return Ok(state);
            }
            let limit = next.map_or(Duration::from_secs(3600), |next| next.saturating_sub(self.now()));
            match self.messages.recv_timeout(limit) {
                Ok(message) => self.take_in(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn now(&self) -> Moment {
        self.began.elapsed()
    }

    fn take_in(&mut self, message: Message) {
        let now = self.now();
        match message {
            // Which of the containers is looked at for all.
            Message::Signal(Signal::SIGCHLD) => self.tend_network(),
            Message::Signal(_) => self.stop(),
            Message::Began { name, run, answer } => {
                if self.member(&name).is_some_and(|member| member.began(run, answer, now)) {
                    self.voice.say(&name, "runs");
                    self.tell(Event::Started(name));
                }
            }
            Message::Answered { name, run, probe, question, outcome } => {
                if let Some(member) = self.member(&name) {
                    member.answered(run, probe, Answer { question, outcome }, now);
                }
            }
        }
    }

    fn tend_network(&mut self) {
        if self.network.tend() {
            // Written down with the next look at all.
            self.network_changed = true;
            if let Some(complaint) = self.network.complaint() {
                self.voice.say("group", &complaint);
            }
        }
    }

    fn member(&mut self, name: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.container.name == name)
    }

    /// The first time the group is asked to end; after that it is ended.
    fn stop(&mut self) {
        self.stops += 1;
        let now = self.now();
        if self.stops == 1 {
            self.voice.say("group", "stops; once more kills it");
            self.tell(Event::Stop);
        } else {
            self.members.iter_mut().for_each(|member| member.end(Duration::ZERO, now));
        }
    }

    /// Tells the policy what happened and does what it says, and what follows from that.
    fn tell(&mut self, event: Event) {
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
                self.say_pause(name, now);
            }
        }
    }

    /// Says how long a container waits that ended, if it does.
    fn say_pause(&self, name: &str, now: Moment) {
        let known = self.sequence.members().find(|known| known.name() == name);
        if let Some(Phase::BackOff { until }) = known.map(cudock_group::sequence::Member::phase)
            && until > now
        {
            self.voice.say(name, &format!("starts again in {} s", seconds(until, now)));
        }
    }

    /// Starts a container; what happened where that did not even begin.
    fn start(&mut self, name: &str) -> Option<Event> {
        let network = if self.shared { None } else { self.network.namespace().map(Into::into) };
        let ties = Ties { messages: &self.sender, voice: &self.voice, network };
        let member = self.members.iter_mut().find(|member| member.container.name == name)?;
        let error = member.start(&ties).err()?;
        member.why = Some(text(&error));
        self.voice.say(name, &format!("cannot be started: {}", text(&error)));
        Some(Event::CouldNotStart(name.to_owned()))
    }

    fn kill(&mut self, name: &str, reason: KillReason) {
        let now = self.now();
        let asked = self.dir.grace().map(|seconds| Duration::from_secs(seconds.into()));
        if let Some(member) = self.member(name) {
            let own = member.grace();
            let grace = if reason == KillReason::Stopping { asked.unwrap_or(own) } else { own };
            member.end(grace, now);
        }
    }

    /// Looks at everything that may have changed or become due; when to look again.
    fn look(&mut self) -> Option<Moment> {
        if self.wake.is_some_and(|wake| wake <= self.now()) {
            self.tell(Event::Tick);
        }
        let mut next: Option<Moment> = None;
        for index in 0..self.members.len() {
            while let Some(event) = self.look_at(index, &mut next) {
                self.tell(event);
            }
        }
        let settles = self.settles().filter(|then| !self.announced && *then > self.now());
        [next, self.wake, settles].into_iter().flatten().min()
    }

    /// Looks at one container: the next thing that happened to it.
    fn look_at(&mut self, index: usize, next: &mut Option<Moment>) -> Option<Event> {
        let now = self.now();
        let member = self.members.get_mut(index)?;
        let name = member.container.name.clone();
        match member.came_out() {
            Some(Came::Out(code)) => {
                let memory = if member.ran_out_of_memory() { " for want of memory" } else { "" };
                // Who was killed for not being alive keeps that as the reason.
                if code != 0 && member.why.is_none() {
                    member.why = Some(format!("ended with {code}{memory}"));
                }
                self.voice.say(&name, &format!("ended with {code}{memory}"));
                return Some(Event::Exited { name, code });
            }
            Some(Came::ToNothing(why)) => {
                self.voice.say(&name, &format!("cannot be started: {why}"));
                member.why = Some(why);
                return Some(Event::CouldNotStart(name));
            }
            None => {}
        }
        let (news, again) = member.look(now);
        let ending = member.go_on_ending(now);
        *next = [*next, again, ending].into_iter().flatten().min();
        let mut event = None;
        for news in news {
            match news {
                News::Ready(true) => self.voice.say(&name, "is ready"),
                News::Ready(false) => self.voice.say(&name, "is not ready any more"),
                News::Unhealthy(why) => {
                    self.voice.say(&name, &format!("is not alive: {why}"));
                    event = Some(Event::Unhealthy(name.clone()));
                }
                News::Wait(_) => {}
            }
        }
        event
    }

    /// Tells whoever started us that all is well, or that it is not going to be soon.
    fn announce(&mut self) {
        if self.announced {
            return;
        }
        let word = if let Some(state) = self.finished {
            self.last_word(state)
        } else if let Some(why) = self.stuck() {
            format!("{NOT_READY}\n{why}")
        } else if self.all_ready() {
            self.voice.say("group", &self.welcome());
            READY.to_owned()
        } else {
            return;
        };
        self.announced = true;
        if let Some(mut ready) = self.ready.take() {
            let _ = ready.write_all(word.as_bytes());
        }
    }

    fn welcome(&self) -> String {
        let ports = self.status.ports.join(", ");
        if ports.is_empty() {
            "all containers are ready".to_owned()
        } else {
            format!("all containers are ready: {ports}")
        }
    }

    fn last_word(&self, state: GroupState) -> String {
        if state == GroupState::Succeeded {
            return READY.to_owned();
        }
        let whys = self
            .members
            .iter()
            .filter_map(|member| member.why.as_ref().map(|why| format!("{}: {why}", member.container.name)));
        let whys: Vec<String> = whys.collect();
        format!("{NOT_READY}\nthe group {}: {}", State::from(state).word(), whys.join("; "))
    }

    /// Every container runs and is ready, or has done its work.
    fn all_ready(&self) -> bool {
        let phases = self.sequence.members().map(cudock_group::sequence::Member::phase);
        self.members.iter().zip(phases).all(|(member, phase)| {
            phase == Phase::Ended(Outcome::Succeeded) || (!member.init && member.is_ready())
        }) && self.settles().is_none_or(|then| then <= self.now())
    }

    /// When the last of the containers that nobody asks after has run long enough.
    fn settles(&self) -> Option<Moment> {
        let known = self.members.iter().zip(self.sequence.members());
        let settles = known.filter_map(|(member, known)| match known.phase() {
            Phase::Running { since } if member.container.readiness.is_none() => {
                Some(since.saturating_add(SETTLED))
            }
            _ => None,
        });
        settles.max()
    }

    /// A container that waits after failing again and again, or has failed for good.
    fn stuck(&self) -> Option<String> {
        let now = self.now();
        let phases = self.sequence.members().map(cudock_group::sequence::Member::phase);
        self.members.iter().zip(phases).find_map(|(member, phase)| {
            let name = &member.container.name;
            let why = member
                .why
                .clone()
                .unwrap_or_else(|| format!("ended with {}", member.exit_code.unwrap_or_default()));
            match phase {
                Phase::BackOff { until } if until > now => {
                    Some(format!("{name}: {why}; it starts again in {} s", seconds(until, now)))
                }
                Phase::Ended(Outcome::Failed { .. }) => Some(format!("{name}: {why}")),
                _ => None,
            }
        })
    }

    /// Writes down how the group is, if that has changed.
    fn write_down(&mut self) -> Result<(), RuntimeError> {
        let containers =
            self.members.iter().zip(self.sequence.members()).map(|(member, known)| MemberStatus {
                name: member.container.name.clone(),
                id: member.plan.id.clone(),
                init: member.init,
                phase: known.phase().into(),
                ready: member.is_ready(),
                restarts: known.restarts(),
                exit_code: member.exit_code,
                why: member.why.clone().or_else(|| member.complaint()),
            });
        let state = self.sequence.state().into();
        let mut status = GroupStatus { state, containers: containers.collect(), ..self.status.clone() };
        if std::mem::take(&mut self.network_changed) {
            status.ports = self.network.ports();
            status.error = self.network.complaint();
        }
        if status != self.status {
            // On a disk that is full it is written with the next change; the containers go on.
            match self.dir.set_status(&status) {
                Err(RuntimeError::File { source, .. }) if is_full(&source) => {}
                other => other?,
            }
            self.status = status;
        }
        Ok(())
    }
}

/// The seconds between two moments, for people.
fn seconds(until: Moment, now: Moment) -> u64 {
    until.saturating_sub(now).as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}
