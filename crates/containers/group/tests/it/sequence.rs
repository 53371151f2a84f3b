//! What every course of a group keeps to, whatever happens to its containers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cudock_group::restart::{GroupState, Moment, RestartPolicy};
use cudock_group::sequence::{Action, Event, KillReason, Phase, Sequence};
use proptest::collection::vec;
use proptest::prelude::*;

/// Kubernetes' longest delay between restarts.
const LONGEST_DELAY: Duration = Duration::from_secs(300);

fn start(name: &str) -> Action {
    Action::Start(name.to_owned())
}

fn exit(name: &str, code: i32) -> Event {
    Event::Exited { name: name.to_owned(), code }
}

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn wait(seconds: u64) -> Action {
    Action::Wait(at(seconds))
}

#[test]
fn init_containers_run_one_after_another_then_all_others_at_once() {
    let mut course = Sequence::new(RestartPolicy::Always, ["a", "b"], ["x", "y"]);
    assert_eq!(course.state(), GroupState::Pending);
    assert_eq!(course.on(&Event::Tick, at(0)), [start("a")]);
    assert_eq!(course.on(&exit("a", 0), at(5)), [start("b")]);
    assert_eq!(course.state(), GroupState::Pending);
    assert_eq!(course.on(&exit("b", 0), at(6)), [start("x"), start("y")]);
    assert_eq!(course.state(), GroupState::Running);
}

#[test]
fn a_failing_init_container_is_tried_again_unless_the_policy_is_never() {
    for policy in [RestartPolicy::Always, RestartPolicy::OnFailure] {
        let mut course = Sequence::new(policy, ["a"], ["x"]);
        course.on(&Event::Tick, at(0));
        assert_eq!(course.on(&exit("a", 1), at(1)), [start("a")], "the first time at once");
        assert_eq!(course.on(&exit("a", 1), at(2)), [wait(10)]);
        assert_eq!(course.on(&Event::Tick, at(11)), [wait(1)]);
        assert_eq!(course.on(&Event::Tick, at(12)), [start("a")]);
        assert_eq!(course.on(&exit("a", 0), at(13)), [start("x")]);
    }
    let mut course = Sequence::new(RestartPolicy::Never, ["a", "b"], ["x"]);
    course.on(&Event::Tick, at(0));
    assert_eq!(course.on(&exit("a", 1), at(1)), [Action::Finished(GroupState::Failed)]);
    assert_eq!(course.state(), GroupState::Failed);
}

#[test]
fn a_group_ends_with_its_last_container_and_fails_if_one_did() {
    for (code, state) in [(0, GroupState::Succeeded), (7, GroupState::Failed)] {
        let mut course = Sequence::new(RestartPolicy::Never, [], ["x", "y"]);
        course.on(&Event::Tick, at(0));
        assert_eq!(course.on(&exit("x", code), at(1)), []);
        assert_eq!(course.on(&exit("y", 0), at(2)), [Action::Finished(state)]);
        assert_eq!(course.on(&Event::Stop, at(3)), [], "nothing follows the end");
    }
}

#[test]
fn what_cannot_be_started_has_failed() {
    let mut course = Sequence::new(RestartPolicy::OnFailure, [], ["x"]);
    course.on(&Event::Tick, at(0));
    let failed = Event::CouldNotStart("x".to_owned());
    assert_eq!(course.on(&failed, at(1)), [start("x")]);
    assert_eq!(course.on(&failed, at(2)), [wait(10)]);
    assert_eq!(course.members().next().unwrap().restarts(), 2);
}

#[test]
fn an_unhealthy_container_is_killed_once_and_starts_again_even_if_it_left_with_zero() {
    let mut course = Sequence::new(RestartPolicy::OnFailure, [], ["x"]);
    course.on(&Event::Tick, at(0));
    let unhealthy = Event::Unhealthy("x".to_owned());
    let kill = Action::Kill { name: "x".to_owned(), reason: KillReason::Unhealthy };
    assert_eq!(course.on(&unhealthy, at(30)), [kill]);
    assert_eq!(course.on(&unhealthy, at(31)), []);
    assert_eq!(course.on(&exit("x", 0), at(32)), [start("x")]);
}

#[test]
fn stopping_ends_what_runs_and_starts_nothing() {
    let mut course = Sequence::new(RestartPolicy::Always, [], ["x", "y", "z"]);
    course.on(&Event::Tick, at(0));
    for now in [1, 2] {
        course.on(&exit("y", 1), at(now));
    }
    let killed = |name: &str| Action::Kill { name: name.to_owned(), reason: KillReason::Stopping };
    assert_eq!(course.on(&Event::Stop, at(3)), [killed("x"), killed("z")], "y waits and is not killed");
    assert_eq!(course.on(&exit("x", 143), at(4)), []);
    assert_eq!(course.on(&exit("z", 0), at(5)), [Action::Finished(GroupState::Stopped)]);
}

#[test]
fn a_group_stopped_before_anything_runs_is_stopped_at_once() {
    let mut course = Sequence::new(RestartPolicy::Always, ["a"], ["x"]);
    assert_eq!(course.on(&Event::Stop, at(0)), [Action::Finished(GroupState::Stopped)]);
}

#[test]
fn a_long_run_counts_from_the_moment_it_started_and_not_from_the_order() {
    let mut course = Sequence::new(RestartPolicy::Always, [], ["x"]);
    course.on(&Event::Tick, at(0));
    course.on(&exit("x", 1), at(1));
    course.on(&Event::Started("x".to_owned()), at(500));
    assert_eq!(course.on(&exit("x", 1), at(1099)), [wait(10)]);
    course.on(&Event::Tick, at(1109));
    assert_eq!(course.on(&exit("x", 1), at(1709)), [start("x")]);
}

/// What a test does next: lets time pass, or picks one of the containers that run.
#[derive(Clone, Debug)]
enum Deed {
    Pass(u64),
    Exit(usize, i32),
    CannotStart(usize),
    Sicken(usize),
    Confuse(usize, i32),
    Stop,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let code = prop_oneof![Just(0), Just(1), Just(137), any::<i32>()];
    let deed = prop_oneof![
        4 => (0_u64..900).prop_map(Deed::Pass),
        6 => (any::<usize>(), code.clone()).prop_map(|(which, code)| Deed::Exit(which, code)),
        1 => any::<usize>().prop_map(Deed::CannotStart),
        1 => any::<usize>().prop_map(Deed::Sicken),
        1 => (any::<usize>(), code).prop_map(|(which, code)| Deed::Confuse(which, code)),
        1 => Just(Deed::Stop),
    ];
    vec(deed, 0..80)
}

/// Carries actions out, and holds each to what is promised.
struct World {
    policy: RestartPolicy,
    init: Vec<String>,
    course: Sequence,
    now: u64,
    running: BTreeSet<String>,
    sick: BTreeSet<String>,
    /// How each container's last run ended: code, whether it was killed for its health, and when.
    ended: BTreeMap<String, (i32, bool, u64)>,
    succeeded: BTreeSet<String>,
    since: BTreeMap<String, u64>,
    /// Runs since the last long one, and how long the next has to wait after the last.
    streak: BTreeMap<String, usize>,
    delay: BTreeMap<String, u64>,
    stopping: bool,
    finished: Option<GroupState>,
}

impl World {
    fn tell(&mut self, event: &Event) {
        let actions = self.course.on(event, at(self.now));
        let last = actions.len().saturating_sub(1);
        assert!(self.finished.is_none() || actions.is_empty(), "{actions:?} after the end");
        for (index, action) in actions.iter().enumerate() {
            match action {
                Action::Start(name) => self.started(name),
                Action::Kill { name, reason } => {
                    assert!(self.running.contains(name), "{name} is killed and does not run");
                    if *reason == KillReason::Unhealthy {
                        self.sick.insert(name.clone());
                    }
                }
                Action::Wait(duration) => {
                    assert!(*duration <= LONGEST_DELAY, "a wait of {duration:?}");
                    assert_eq!(index, last);
                }
                Action::Finished(state) => {
                    assert!(self.running.is_empty(), "{:?} run at the end", self.running);
                    assert_eq!(index, last);
                    self.finished = Some(*state);
                }
            }
        }
    }

    fn started(&mut self, name: &str) {
        assert!(self.running.insert(name.to_owned()), "two of {name}");
        self.since.insert(name.to_owned(), self.now);
        assert!(!self.stopping, "{name} starts while the group stops");
        let init_before =
            self.init.iter().take_while(|init| *init != name).all(|init| self.succeeded.contains(init));
        assert!(init_before, "{name} starts before init containers are done");
        assert!(!self.init.contains(&name.to_owned()) || self.running.len() == 1, "init runs beside others");
        if let Some((code, sick, when)) = self.ended.get(name) {
            assert_ne!(self.policy, RestartPolicy::Never, "{name} runs again");
            let failed = *code != 0 || *sick;
            assert!(failed || self.policy == RestartPolicy::Always, "{name} runs again after success");
            assert!(failed || !self.init.contains(&name.to_owned()));
            assert!(self.now >= when + self.delay[name], "{name} starts {} s after its end", self.now - when);
        }
    }

    fn end(&mut self, name: &str, code: i32, event: &Event) {
        self.running.remove(name);
        let streak = self.streak.entry(name.to_owned()).or_default();
        if self.now - self.since[name] >= 600 {
            *streak = 0;
        }
        self.delay.insert(name.to_owned(), [0, 10, 20, 40, 80, 160, 300][(*streak).min(6)]);
        *streak += 1;
        let sick = self.sick.remove(name);
        self.ended.insert(name.to_owned(), (code, sick, self.now));
        if code == 0 && !sick {
            self.succeeded.insert(name.to_owned());
        }
        self.tell(event);
    }

    fn pick(&self, which: usize) -> Option<String> {
        self.running.iter().nth(which.checked_rem(self.running.len())?).cloned()
    }

    fn do_it(&mut self, deed: &Deed) {
        match deed {
            Deed::Pass(seconds) => {
                self.now += seconds;
                self.tell(&Event::Tick);
            }
            Deed::Exit(which, code) => {
                if let Some(name) = self.pick(*which) {
                    self.end(&name, *code, &exit(&name, *code));
                }
            }
            Deed::CannotStart(which) => {
                if let Some(name) = self.pick(*which) {
                    self.end(&name, 125, &Event::CouldNotStart(name.clone()));
                }
            }
            Deed::Sicken(which) => {
                if let Some(name) = self.pick(*which) {
                    self.tell(&Event::Unhealthy(name));
                }
            }
            // About a container that does not run, or does not exist.
            Deed::Confuse(which, code) => {
                let names: Vec<String> =
                    self.course.members().map(|member| member.name().to_owned()).collect();
                let name = names.get(which % (names.len() + 1)).cloned().unwrap_or("nobody".to_owned());
                if !self.running.contains(&name) {
                    self.tell(&exit(&name, *code));
                    self.tell(&Event::Unhealthy(name));
                }
            }
            Deed::Stop => {
                self.stopping = true;
                self.tell(&Event::Stop);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_course_breaks_its_promises(
        policy in prop_oneof![
            Just(RestartPolicy::Always), Just(RestartPolicy::OnFailure), Just(RestartPolicy::Never)
        ],
        init in 0_usize..4,
        containers in 1_usize..5,
        deeds in deeds(),
    ) {
        let init: Vec<String> = (0..init).map(|index| format!("init{index}")).collect();
        let containers: Vec<String> = (0..containers).map(|index| format!("main{index}")).collect();
        let course = Sequence::new(policy, init.clone(), containers.clone());
        let mut world = World {
            policy, init, course, now: 0, running: BTreeSet::new(), sick: BTreeSet::new(),
            ended: BTreeMap::new(), succeeded: BTreeSet::new(),
            since: BTreeMap::new(), streak: BTreeMap::new(), delay: BTreeMap::new(), stopping: false, finished: None,
        };
        world.tell(&Event::Tick);
        for deed in &deeds {
            world.do_it(deed);
            for member in world.course.members() {
                let runs = matches!(member.phase(), Phase::Running { .. } | Phase::Ending { .. });
                prop_assert_eq!(runs, world.running.contains(member.name()));
            }
        }
        // Whatever happened before, a group that is stopped ends as soon as all of its members have ended.
        world.do_it(&Deed::Stop);
        while let Some(name) = world.pick(0) {
            world.end(&name, 137, &exit(&name, 137));
        }
        prop_assert!(world.finished.is_some());
        if policy == RestartPolicy::Always {
            prop_assert_eq!(world.finished, Some(GroupState::Stopped), "Always ends only when stopped");
        }
    }

    /// Nothing but failures, as fast as they come: each restart waits at most the cap, and the group never gives up.
    #[test]
    fn a_crash_loop_waits_no_longer_than_the_cap(runs in vec(0_u64..30, 1..60)) {
        let mut course = Sequence::new(RestartPolicy::OnFailure, [], ["x"]);
        let mut now = Duration::ZERO;
        let mut actions = course.on(&Event::Tick, now);
        let mut delays = Vec::new();
        for seconds in runs {
            prop_assert_eq!(&actions, &[start("x")]);
            now += at(seconds);
            actions = course.on(&exit("x", 1), now);
            if let [Action::Wait(delay)] = actions[..] {
                prop_assert!(delay <= LONGEST_DELAY);
                delays.push(delay);
                now += delay;
                actions = course.on(&Event::Tick, now);
            }
        }
        prop_assert!(delays.is_sorted(), "short runs only make waits longer: {:?}", delays);
    }
}
