//! A server, its clients and its device, event by event.
//!
//! A request is made by a client process (one thing at a time), crosses the network, is read by the server's one IO
//! thread (one thing at a time), is admitted, filled into a lane, run by the device (one batch at a time), and its
//! answer goes back the same way. Where cores are shared, reading and running halve each other's speed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use cudock_batcher::{Arrival, Batch, Next, Ticket, Time};

use super::policy::Policy;
use super::rng::Rng;

/// Who sends.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Each client sends its next request when it has its answer and has thought for a while (on average).
    Closed { clients: usize, think: Duration },
    /// Requests come at random, so many a second, whatever the server does.
    Open { rate: f64 },
    /// So many at once, time and again.
    Bursts { size: usize, every: Duration },
}

/// What things cost, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// For each batch.
    pub fixed: f64,
    /// For each row of a batch.
    pub row: f64,
    /// Spread of batch times, as a share.
    pub noise: f64,
    /// Share of batches that take three times as long.
    pub hiccups: f64,
    /// To copy a row into a lane.
    pub copy: f64,
    pub read: f64,
    pub write: f64,
    pub network: f64,
    pub client: f64,
    pub shared_cores: bool,
}

/// The MLP of the measured peers, behind a fast transport.
pub const MLP: Costs = Costs {
    fixed: 250.0,
    row: 17.0,
    noise: 0.03,
    hiccups: 0.0,
    copy: 0.2,
    read: 3.0,
    write: 1.5,
    network: 15.0,
    client: 3.0,
    shared_cores: false,
};

impl Costs {
    pub fn time(&self, rows: usize) -> f64 {
        self.fixed + self.row * rows as f64
    }
}

/// What came of it, over the time after warming up.
#[derive(Debug, Default)]
pub struct Outcome {
    pub seconds: f64,
    pub answered: usize,
    pub refused: usize,
    pub expired: usize,
    pub batches: usize,
    /// From admission to the end of the batch, in microseconds, sorted.
    pub latency: Vec<f64>,
    pub most_queued: usize,
}

impl Outcome {
    pub fn throughput(&self) -> f64 {
        self.answered as f64 / self.seconds
    }

    pub fn mean_batch(&self) -> f64 {
        self.answered as f64 / self.batches.max(1) as f64
    }

    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.latency.len().saturating_sub(1);
        self.latency.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request is with the server's network card.
    Reached(u64),
    /// An answer, or a refusal, is with the client's.
    Returned(u64),
    /// A client has thought.
    Send,
    /// A source that does not wait for answers.
    Source,
    Filled(u64),
}

#[derive(Clone, Copy)]
enum Chore {
    Read(u64),
    Write(u64),
}

pub struct World<'a> {
    policy: &'a mut dyn Policy,
    costs: Costs,
    source: Source,
    rng: Rng,
    now: f64,
    sequence: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    io: VecDeque<(Chore, f64)>,
    device: VecDeque<(Batch, f64)>,
    filling: HashMap<u64, Batch>,
    /// When the client process has time again.
    client_free: f64,
    admitted: HashMap<u64, f64>,
    refused: HashMap<u64, Duration>,
    tickets: u64,
    wake: Option<f64>,
    warm: f64,
    outcome: Outcome,
}

/// Runs a server for so long; the first quarter is not counted.
pub fn run(policy: &mut dyn Policy, costs: Costs, source: Source, seconds: f64, seed: u64) -> Outcome {
    let end = seconds * 1e6;
    let mut world = World {
        policy,
        costs,
        source,
        rng: Rng::new(seed),
        now: 0.0,
        sequence: 0,
        events: BinaryHeap::new(),
        io: VecDeque::new(),
        device: VecDeque::new(),
        filling: HashMap::new(),
        client_free: 0.0,
        admitted: HashMap::new(),
        refused: HashMap::new(),
        tickets: 0,
        wake: None,
        warm: end / 4.0,
        outcome: Outcome { seconds: seconds * 0.75, ..Outcome::default() },
    };
    match source {
        Source::Closed { clients, .. } => (0..clients).for_each(|_| world.later(0.0, Event::Send)),
        Source::Open { .. } | Source::Bursts { .. } => world.later(0.0, Event::Source),
    }
    while world.now < end {
        world.step();
    }
    world.outcome.latency.sort_by(f64::total_cmp);
    world.outcome
}

impl World<'_> {
    fn time(&self) -> Time {
        Time((self.now * 1e3).round() as u64)
    }

    fn later(&mut self, delay: f64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((((self.now + delay) * 1e3).ceil() as u64, self.sequence, event)));
    }

    fn step(&mut self) {
        let both = self.costs.shared_cores && !self.io.is_empty() && !self.device.is_empty();
        let rate = if both { 0.5 } else { 1.0 };
        let io = self.io.front().map_or(f64::INFINITY, |(_, left)| self.now + left / rate);
        let device = self.device.front().map_or(f64::INFINITY, |(_, left)| self.now + left / rate);
        let event = self.events.peek().map_or(f64::INFINITY, |Reverse((at, _, _))| *at as f64 / 1e3);
        let wake = self.wake.unwrap_or(f64::INFINITY);
        let next = io.min(device).min(event).min(wake).max(self.now);
        assert!(next.is_finite(), "the simulated server sleeps for ever");
        let passed = (next - self.now) * rate;
        if let Some((_, left)) = self.io.front_mut() {
            *left -= passed;
        }
        if let Some((_, left)) = self.device.front_mut() {
            *left -= passed;
        }
        self.now = next;
        if io <= next {
            self.chore_done();
        } else if device <= next {
            self.batch_done();
        } else if event <= next {
            if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.happen(event);
            }
        } else {
            self.wake = None;
        }
        self.serve();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Send => self.send(),
            Event::Source => {
                let delay = match self.source {
                    Source::Open { rate } => {
                        self.send();
                        self.rng.exponential(1e6 / rate)
                    }
                    Source::Bursts { size, every } => {
                        (0..size).for_each(|_| self.send());
                        every.as_secs_f64() * 1e6
                    }
                    Source::Closed { .. } => return,
                };
                self.later(delay, Event::Source);
            }
            Event::Reached(ticket) => self.io.push_back((Chore::Read(ticket), self.costs.read)),
            Event::Returned(ticket) => self.returned(ticket),
            Event::Filled(batch) => {
                if let Some(batch) = self.filling.remove(&batch) {
                    let time = self.time();
                    self.policy.filled(time, batch.id);
                    let slow = if self.rng.chance(self.costs.hiccups) { 3.0 } else { 1.0 };
                    let spread = (1.0 + self.costs.noise * self.rng.normal()).max(0.2);
                    let work = self.costs.time(batch.padded_rows) * spread * slow;
                    self.device.push_back((batch, work));
                }
            }
        }
    }

    fn send(&mut self) {
        self.tickets += 1;
        let ticket = self.tickets;
        let closed = matches!(self.source, Source::Closed { .. });
        let cost = if closed { self.costs.client } else { 0.0 };
        self.client_free = self.client_free.max(self.now) + cost;
        self.later(self.client_free - self.now + self.costs.network, Event::Reached(ticket));
    }

    fn returned(&mut self, ticket: u64) {
        let refused = self.refused.remove(&ticket);
        if let Source::Closed { think, .. } = self.source {
            let think = think.as_secs_f64() * 1e6;
            let pause = if think > 0.0 { self.rng.exponential(think) } else { 0.0 };
            let back_off = refused.map_or(0.0, |after| after.as_secs_f64() * 1e6 * (1.0 + self.rng.unit()));
            self.later(pause + back_off, Event::Send);
        }
    }

    fn chore_done(&mut self) {
        let Some((chore, _)) = self.io.pop_front() else { return };
        match chore {
            Chore::Read(ticket) => self.admit(ticket),
            Chore::Write(ticket) => self.later(self.costs.network, Event::Returned(ticket)),
        }
        if self.io.is_empty() {
            let time = self.time();
            self.policy.quiet(time);
        }
    }

    fn admit(&mut self, ticket: u64) {
        let arrival =
            Arrival { ticket: Ticket(ticket), rows: 1, bucket: 0, bytes: 2048, priority: 0, deadline: None };
        let time = self.time();
        match self.policy.admit(time, arrival) {
            Ok(()) => {
                self.admitted.insert(ticket, self.now);
                self.outcome.most_queued = self.outcome.most_queued.max(self.admitted.len());
            }
            Err(refusal) => {
                let cudock_batcher::Refusal::Full { retry_after } = refusal else {
                    panic!("no request of this world is late or too large")
                };
                self.refused.insert(ticket, retry_after);
                self.outcome.refused += usize::from(self.now > self.warm);
                self.io.push_back((Chore::Write(ticket), self.costs.write));
            }
        }
    }

    fn batch_done(&mut self) {
        let Some((batch, _)) = self.device.pop_front() else { return };
        let time = self.time();
        self.policy.finished(time, batch.id);
        let counted = self.now > self.warm;
        self.outcome.batches += usize::from(counted);
        for Ticket(ticket) in batch.tickets {
            let admitted = self.admitted.remove(&ticket).expect("no ticket runs twice");
            if counted {
                self.outcome.answered += 1;
                self.outcome.latency.push(self.now - admitted);
            }
            self.io.push_back((Chore::Write(ticket), self.costs.write));
        }
    }

    fn serve(&mut self) {
        loop {
            let time = self.time();
            match self.policy.next(time) {
                Next::Run(batch) => {
                    let copy = self.costs.copy * batch.rows as f64;
                    self.later(copy, Event::Filled(batch.id));
                    self.filling.insert(batch.id, batch);
                }
                Next::WaitUntil(until) => {
                    assert!(until > time, "a wait that is over already");
                    self.wake = Some(until.0 as f64 / 1e3);
                    break;
                }
                Next::Idle => {
                    self.wake = None;
                    break;
                }
            }
        }
        let mut expired = Vec::new();
        let time = self.time();
        self.policy.expired(time, &mut expired);
        for Ticket(ticket) in expired {
            self.admitted.remove(&ticket).expect("no ticket expires that does not wait");
            self.outcome.expired += 1;
        }
    }
}
