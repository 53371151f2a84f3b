//! Decisions in a table of situations, and in random simulations.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn on_demand() -> Policy {
    Policy { on_demand: true, devices: vec![0], ..Policy::default() }
}

fn pinned() -> Policy {
    Policy { pinned: true, ..on_demand() }
}

/// Models of one byte each, under a budget; those in `loaded` are loaded at the start, for which each needed 100 ms.
fn residency(
    budget: u64,
    models: &[(&'static str, Policy)],
    loaded: &[&'static str],
) -> (Residency<&'static str>, Instant) {
    let start = Instant::now();
    let mut residency = Residency::new(Some(budget));
    for (name, policy) in models {
        residency.insert(*name, policy.clone(), Memory::Estimated { least: 1, likely: 1 });
    }
    for name in loaded {
        load(&mut residency, name, start);
    }
    (residency, start)
}

fn load(residency: &mut Residency<&'static str>, name: &'static str, since: Instant) {
    residency.begin_load(&name);
    residency.loaded(&name, since, 100 * MS);
    residency.measured(&name, 1);
}

/// The usage of some models; the others are not used.
fn usage(models: &[(&'static str, Usage)]) -> impl Fn(&&'static str) -> Usage + use<> {
    let models: BTreeMap<_, _> = models.iter().copied().collect();
    move |name| models.get(name).copied().unwrap_or_default()
}

fn waits(since: Instant) -> Usage {
    Usage { waiting_since: Some(since), ..Usage::default() }
}

#[test]
fn the_least_recently_used_idle_model_makes_room() {
    let models = ["a", "b", "c"].map(|name| (name, on_demand()));
    let (residency, start) = residency(2, &models, &["a", "b"]);
    let used = |at| Usage { last_request: Some(at), ..Usage::default() };
    let now = start + 1000 * MS;
    for (last_a, last_b, expected) in [(200, 300, "a"), (300, 200, "b")] {
        let usage =
            usage(&[("a", used(start + last_a * MS)), ("b", used(start + last_b * MS)), ("c", waits(now))]);
        assert_eq!(residency.next_step(now, &usage), Step::Unload(expected));
    }
}

#[test]
fn a_model_stays_until_it_is_idle_or_has_been_loaded_as_long_as_its_load_took() {
    let (residency, start) = residency(1, &[("a", on_demand()), ("b", on_demand())], &["a"]);
    let requested = Usage { last_request: Some(start + 30 * MS), ..Usage::default() };
    let running = Usage { is_running: true, ..requested };
    let owed = waits(start);
    for (case, used, now, expected) in [
        ("idle for a tenth of its load time", requested, 40, Step::Unload("a")),
        ("used a moment ago", requested, 35, Step::Wait(Some(start + 40 * MS))),
        ("busy", running, 60, Step::Wait(Some(start + 100 * MS))),
        ("busy for long", running, 100, Step::Unload("a")),
        ("busy with later requests", waits(start + MS), 100, Step::Unload("a")),
        ("not done with the requests it was loaded for", owed, 500, Step::Wait(Some(start + 520 * MS))),
        ("without an engine", Usage { is_stalled: true, ..owed }, 500, Step::Unload("a")),
    ] {
        let now = start + now * MS;
        let usage = usage(&[("a", used), ("b", waits(start))]);
        assert_eq!(residency.next_step(now, &usage), expected, "{case}");
    }
}

#[test]
fn models_are_loaded_in_the_order_of_their_oldest_request() {
    let (mut residency, start) =
        residency(1, &[("a", on_demand()), ("b", on_demand()), ("c", on_demand())], &["a"]);
    let now = start + 1000 * MS;
    let usage = usage(&[("b", waits(start + 20 * MS)), ("c", waits(start + 10 * MS))]);
    assert_eq!(residency.next_step(now, &usage), Step::Unload("a"));
    residency.unloaded(&"a");
    assert_eq!(residency.next_step(now, &usage), Step::Load("c"));
}

#[test]
fn models_of_different_devices_do_not_wait_for_each_other() {
    let second = Policy { devices: vec![1], ..on_demand() };
    let (residency, start) = residency(1, &[("a", on_demand()), ("b", on_demand()), ("c", second)], &["a"]);
    let busy = Usage { is_running: true, ..Usage::default() };
    let usage = usage(&[("a", busy), ("b", waits(start)), ("c", waits(start + MS))]);
    assert_eq!(residency.next_step(start + 2 * MS, &usage), Step::Load("c"));
}

#[test]
fn pinned_models_stay_and_their_memory_is_not_available() {
    let (mut residency, start) =
        residency(2, &[("a", pinned()), ("b", on_demand()), ("c", on_demand())], &["a"]);
    residency.insert("b", on_demand(), Memory::Estimated { least: 2, likely: 2 });
    let now = start + 1000 * MS;
    let usage = usage(&[("b", waits(start)), ("c", waits(start))]);
    assert_eq!(residency.next_step(now, &usage), Step::Reject("b"));
    assert_eq!(residency.refusal(&"b", now), Some(Refusal::TooLarge { needed: 2, available: 1, budget: 2 }));
    assert_eq!(residency.refusal(&"c", now), None);
    assert_eq!(residency.room(&"c", now, &usage), Room::Fits);
}

#[test]
fn a_model_that_turns_out_too_large_is_unloaded_and_refused_from_then_on() {
    let (mut residency, start) = residency(2, &[("a", on_demand())], &[]);
    residency.insert("a", on_demand(), Memory::Estimated { least: 1, likely: 50 });
    let usage = usage(&[("a", waits(start))]);
    assert_eq!(residency.next_step(start, &usage), Step::Load("a"));
    residency.begin_load(&"a");
    residency.loaded(&"a", start, MS);
    residency.measured(&"a", 3);
    assert_eq!(residency.next_step(start, &usage), Step::Unload("a"));
    residency.unloaded(&"a");
    let too_large = Some(Refusal::TooLarge { needed: 3, available: 2, budget: 2 });
    assert_eq!(residency.refusal(&"a", start), too_large);
    let smaller = Memory::Estimated { least: 1, likely: 1 };
    residency.insert("a", on_demand(), smaller);
    assert_eq!(residency.refusal(&"a", start), too_large, "its memory is known");
    residency.forget_outcome(&"a");
    residency.insert("a", on_demand(), smaller);
    assert_eq!(residency.refusal(&"a", start), None, "its file may have changed");
}

#[test]
fn memory_that_grows_makes_the_least_recently_used_model_go() {
    let (mut residency, start) = residency(3, &[("a", on_demand()), ("b", on_demand())], &["a", "b"]);
    residency.measured(&"b", 3);
    let used = Usage { last_request: Some(start + 500 * MS), ..Usage::default() };
    assert_eq!(residency.next_step(start + 1000 * MS, &usage(&[("b", used)])), Step::Unload("a"));
}

#[test]
fn an_idle_model_is_unloaded_after_its_time_unless_it_is_pinned() {
    let idle_unload = Some(300 * MS);
    for (policy, expected) in [
        (Policy { idle_unload, ..on_demand() }, Step::Unload("a")),
        (Policy { idle_unload, ..pinned() }, Step::Wait(None)),
        (on_demand(), Step::Wait(None)),
    ] {
        let (residency, start) = residency(1, &[("a", policy.clone())], &["a"]);
        let used = Usage { last_request: Some(start + 100 * MS), ..Usage::default() };
        let step = |after, used| residency.next_step(start + after * MS, &usage(&[("a", used)]));
        assert_eq!(step(400, used), expected, "{policy:?}");
        let wake_up = policy.idle_unload.filter(|_| !policy.pinned).map(|_| start + 400 * MS);
        assert_eq!(step(399, used), Step::Wait(wake_up), "{policy:?}");
        assert_eq!(step(1000, Usage { is_running: true, ..used }), Step::Wait(None), "{policy:?}");
    }
}

#[test]
fn a_failed_load_is_repeated_after_a_pause_that_grows() {
    let (mut residency, start) = residency(1, &[("a", on_demand())], &[]);
    let failed = |after| Some(Refusal::Failed { reason: "no".to_owned(), retry_after: after });
    residency.load_failed(&"a", start, "no");
    assert_eq!(residency.refusal(&"a", start + 400 * MS), failed(600 * MS));
    assert_eq!(residency.next_step(start, &usage(&[("a", waits(start))])), Step::Reject("a"));
    assert_eq!(residency.refusal(&"a", start + 1000 * MS), None);
    residency.load_failed(&"a", start, "no");
    assert_eq!(residency.refusal(&"a", start), failed(2000 * MS));
    for _ in 0..10 {
        residency.load_failed(&"a", start, "no");
    }
    assert_eq!(residency.refusal(&"a", start), failed(60_000 * MS));
    residency.forget_outcome(&"a");
    assert_eq!(residency.refusal(&"a", start), None);
}

#[test]
fn a_model_that_a_user_unloaded_is_loaded_again_only_on_demand() {
    for (policy, expected) in
        [(on_demand(), None), (Policy { on_demand: false, ..on_demand() }, Some(Refusal::Unloaded))]
    {
        let (mut residency, start) = residency(1, &[("a", policy)], &["a"]);
        residency.unloaded(&"a");
        assert_eq!(residency.refusal(&"a", start), expected);
        load(&mut residency, "a", start);
        assert_eq!(residency.refusal(&"a", start), None);
        let report = residency.report(&"a");
        assert_eq!((report.loads, report.unloads, report.memory), (2, 1, Some(1)));
    }
}

/// A model of a simulation. Times are in milliseconds.
#[derive(Clone, Debug)]
struct SimulatedModel {
    pinned: bool,
    bytes: u64,
    likely: u64,
    load_time: u32,
    work_time: u32,
    /// Its first loads, which fail.
    failures: u32,
    idle_unload: Option<u32>,
}

fn simulated_model() -> impl Strategy<Value = SimulatedModel> {
    let idle_unload = prop_oneof![Just(None), (1_u32..500).prop_map(Some)];
    let times = (1_u32..400, 1_u32..60);
    (prop::bool::weighted(0.15), 1_u64..12, 1_u64..20, times, 0_u32..2, idle_unload).prop_map(
        |(pinned, bytes, likely, (load_time, work_time), failures, idle_unload)| SimulatedModel {
            pinned,
            bytes,
            likely,
            load_time,
            work_time,
            failures,
            idle_unload,
        },
    )
}

/// Carries out the steps of a [`Residency`] for models that work on one request at a time.
struct Simulation {
    now: Instant,
    residency: Residency<usize>,
    models: Vec<SimulatedModel>,
    queues: Vec<SimulatedQueue>,
    /// Future requests, the next one last.
    arrivals: Vec<(Instant, usize)>,
}

#[derive(Clone, Default)]
struct SimulatedQueue {
    is_loaded: bool,
    waiting: Vec<Instant>,
    /// The end of the request that runs.
    running_until: Option<Instant>,
    last_request: Option<Instant>,
    /// Requests that the model was loaded for and has not answered.
    owed: usize,
    answered: usize,
    rejected: usize,
}

impl Simulation {
    /// A simulation in which each request arrives at a time and names a model.
    fn new(budget: u64, models: Vec<SimulatedModel>, requests: &[(u32, usize)]) -> Self {
        let start = Instant::now();
        let mut residency = Residency::new(Some(budget));
        for (number, model) in models.iter().enumerate() {
            let policy = Policy {
                pinned: model.pinned,
                on_demand: true,
                idle_unload: model.idle_unload.map(|time| time * MS),
                devices: vec![0],
            };
            residency.insert(number, policy, Memory::Estimated { least: 1, likely: model.likely });
        }
        let mut arrivals: Vec<_> =
            requests.iter().map(|(time, number)| (start + *time * MS, number % models.len())).collect();
        arrivals.sort_unstable_by(|a, b| b.cmp(a));
        let queues = vec![SimulatedQueue::default(); models.len()];
        let mut simulation = Self { now: start, residency, models, queues, arrivals };
        for number in 0..simulation.models.len() {
            if simulation.models[number].pinned {
                simulation.residency.begin_load(&number);
                simulation.finish_load(number, MS);
            }
        }
        simulation
    }

    fn usage(&self, number: usize) -> Usage {
        let queue = &self.queues[number];
        Usage {
            waiting_since: queue.waiting.first().copied(),
            is_running: queue.running_until.is_some(),
            last_request: queue.last_request,
            is_stalled: false,
        }
    }

    fn is_waiting_for_a_load(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_loaded && !queue.waiting.is_empty())
    }

    fn is_done(&self) -> bool {
        let is_quiet = |queue: &SimulatedQueue| queue.waiting.is_empty() && queue.running_until.is_none();
        self.arrivals.is_empty() && self.queues.iter().all(is_quiet)
    }

    /// Lets a millisecond pass; returns whether a request arrived for a model that is not loaded.
    fn tick(&mut self) -> bool {
        self.now += MS;
        let mut wakes = false;
        while let Some((_, number)) = self.arrivals.pop_if(|(time, _)| *time <= self.now) {
            let queue = &mut self.queues[number];
            queue.waiting.push(self.now);
            queue.last_request = Some(self.now);
            wakes |= !queue.is_loaded;
        }
        for (model, queue) in self.models.iter().zip(&mut self.queues) {
            if queue.running_until.is_some_and(|end| end <= self.now) {
                queue.running_until = None;
                queue.owed = queue.owed.saturating_sub(1);
                queue.answered += 1;
            }
            if queue.is_loaded && queue.running_until.is_none() && !queue.waiting.is_empty() {
                queue.waiting.remove(0);
                queue.running_until = Some(self.now + model.work_time * MS);
            }
        }
        wakes
    }

    fn pass(&mut self, milliseconds: u32) {
        for _ in 0..milliseconds {
            self.tick();
        }
    }

    fn finish_load(&mut self, number: usize, took: Duration) {
        self.residency.loaded(&number, self.now, took);
        self.residency.measured(&number, self.models[number].bytes);
        let queue = &mut self.queues[number];
        (queue.is_loaded, queue.owed) = (true, queue.waiting.len());
    }

    fn load(&mut self, number: usize) {
        let used = self.residency.used(0) + self.residency.needed(&number);
        assert!(Some(used) <= self.residency.budget, "model {number} does not fit");
        self.residency.begin_load(&number);
        let took = self.models[number].load_time;
        self.pass(took);
        if self.models[number].failures == 0 {
            return self.finish_load(number, took * MS);
        }
        self.models[number].failures -= 1;
        self.residency.load_failed(&number, self.now, "simulated");
        self.reject(number);
    }

    fn unload(&mut self, number: usize) {
        let is_too_large = self.models[number].bytes > self.residency.available(&number);
        assert!(!self.models[number].pinned, "model {number} is pinned");
        let queue = &mut self.queues[number];
        // The request that runs is answered before the engine ends.
        let is_done = queue.owed <= usize::from(queue.running_until.is_some());
        assert!(is_done || is_too_large, "model {number} still has to answer requests");
        queue.is_loaded = false;
        // It answers what is queued, and nothing that arrives meanwhile.
        let queued = std::mem::take(&mut queue.waiting).len();
        let rounds = u32::try_from(queued).unwrap() + u32::from(queue.running_until.is_some());
        self.pass(rounds * self.models[number].work_time);
        self.queues[number].answered += queued;
        self.residency.unloaded(&number);
    }

    fn reject(&mut self, number: usize) {
        assert!(self.residency.refusal(&number, self.now).is_some(), "model {number} is not refused");
        let queue = &mut self.queues[number];
        queue.rejected += std::mem::take(&mut queue.waiting).len();
    }

    fn run(&mut self) {
        while !self.is_done() {
            match self.residency.next_step(self.now, &|number| self.usage(*number)) {
                Step::Load(number) => self.load(number),
                Step::Unload(number) => self.unload(number),
                Step::Reject(number) => self.reject(number),
                Step::Wait(time) => {
                    assert!(time.is_some() || !self.is_waiting_for_a_load(), "a request waits forever");
                    while !self.tick() && !self.is_done() && time.is_none_or(|time| self.now < time) {}
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn random_requests_are_all_answered_within_the_budget(
        budget in 1_u64..25,
        models in prop::collection::vec(simulated_model(), 1..7),
        requests in prop::collection::vec((0_u32..3000, 0_usize..100), 1..80),
    ) {
        let mut simulation = Simulation::new(budget, models.clone(), &requests);
        simulation.run();
        let finished: usize = simulation.queues.iter().map(|queue| queue.answered + queue.rejected).sum();
        prop_assert_eq!(finished, requests.len());
        for (number, model) in models.iter().enumerate() {
            let fits = model.pinned || model.bytes <= simulation.residency.available(&number);
            if fits && (model.pinned || model.failures == 0) {
                prop_assert_eq!(simulation.queues[number].rejected, 0, "model {}", number);
            }
        }
    }
}
