//! A discrete-event simulation of a server, its clients and its device.
//!
//! A request is made by a client process (one at a time), crosses the network, is read by the server's only I/O thread
//! (one at a time), is admitted, copied into a lane and run by the device (one batch at a time), and its response goes
//! back the same way. If cores are shared, I/O and the device each run at half speed while both are busy.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use cudock_batcher::{Arrival, Batch, LaneAction, Ticket, Time};

use super::policy::Policy;
use super::rng::Rng;

/// How requests are generated.
#[derive(Clone, Copy, Debug)]
pub enum LoadPattern {
    /// Each client sends its next request after its response and a mean think time.
    Closed { clients: usize, think: Duration },
    /// Requests arrive at random at this rate per second, whatever the server does.
    Open { rate: f64 },
    /// A burst of requests at a fixed interval.
    Bursts { size: usize, every: Duration },
}

/// Costs in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Per batch.
    pub fixed: f64,
    /// Per row of a batch.
    pub row: f64,
    /// Relative standard deviation of batch times.
    pub noise: f64,
    /// Share of batches that take three times as long.
    pub stalls: f64,
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
    stalls: 0.0,
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

/// Results after the warm-up.
#[derive(Debug, Default)]
pub struct SimulationResult {
    pub seconds: f64,
    pub completed: usize,
    pub rejected: usize,
    pub expired: usize,
    pub batches: usize,
    /// From admission to the end of the batch, in microseconds, sorted.
    pub latency: Vec<f64>,
    pub max_queued: usize,
}

impl SimulationResult {
    pub fn throughput(&self) -> f64 {
        self.completed as f64 / self.seconds
    }

    pub fn mean_batch(&self) -> f64 {
        self.completed as f64 / self.batches.max(1) as f64
    }

    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.latency.len().saturating_sub(1);
        self.latency.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request has reached the server's network card.
    Reached(u64),
    /// A response has reached the client.
    Returned(u64),
    /// A client's think time is over.
    Send,
    /// The next request or burst of an open load.
    NextArrival,
    Filled(u64),
}

#[derive(Clone, Copy)]
enum IoTask {
    Read(u64),
    Write(u64),
}

pub struct SimulatedServer<'a> {
    policy: &'a mut dyn Policy,
    costs: Costs,
    load: LoadPattern,
    rng: Rng,
    now: f64,
    sequence: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    io: VecDeque<(IoTask, f64)>,
    device: VecDeque<(Batch, f64)>,
    fill_time_per_row: HashMap<u64, Batch>,
    /// When the client process is free again.
    client_free: f64,
    admitted: HashMap<u64, f64>,
    rejected: HashMap<u64, Duration>,
    tickets: u64,
    wake: Option<f64>,
    warm: f64,
    result: SimulationResult,
}

/// Simulates a server; the first quarter is not counted.
pub fn run(
    policy: &mut dyn Policy,
    costs: Costs,
    load: LoadPattern,
    seconds: f64,
    seed: u64,
) -> SimulationResult {
    let end = seconds * 1e6;
    let mut server = SimulatedServer {
        policy,
        costs,
        load,
        rng: Rng::new(seed),
        now: 0.0,
        sequence: 0,
        events: BinaryHeap::new(),
        io: VecDeque::new(),
        device: VecDeque::new(),
        fill_time_per_row: HashMap::new(),
        client_free: 0.0,
        admitted: HashMap::new(),
        rejected: HashMap::new(),
        tickets: 0,
        wake: None,
        warm: end / 4.0,
        result: SimulationResult { seconds: seconds * 0.75, ..SimulationResult::default() },
    };
    match load {
        LoadPattern::Closed { clients, .. } => (0..clients).for_each(|_| server.later(0.0, Event::Send)),
        LoadPattern::Open { .. } | LoadPattern::Bursts { .. } => server.later(0.0, Event::NextArrival),
    }
    while server.now < end {
        server.step();
    }
    server.result.latency.sort_by(f64::total_cmp);
    server.result
}

impl SimulatedServer<'_> {
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
            self.io_done();
        } else if device <= next {
            self.batch_done();
        } else if event <= next {
            if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.handle(event);
            }
        } else {
            self.wake = None;
        }
        self.serve();
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Send => self.send(),
            Event::NextArrival => {
                let delay = match self.load {
                    LoadPattern::Open { rate } => {
                        self.send();
                        self.rng.exponential(1e6 / rate)
                    }
                    LoadPattern::Bursts { size, every } => {
                        (0..size).for_each(|_| self.send());
                        every.as_secs_f64() * 1e6
                    }
                    LoadPattern::Closed { .. } => return,
                };
                self.later(delay, Event::NextArrival);
            }
            Event::Reached(ticket) => self.io.push_back((IoTask::Read(ticket), self.costs.read)),
            Event::Returned(ticket) => self.returned(ticket),
            Event::Filled(batch) => {
                if let Some(batch) = self.fill_time_per_row.remove(&batch) {
                    let time = self.time();
                    self.policy.on_filled(time, batch.id);
                    let slow = if self.rng.chance(self.costs.stalls) { 3.0 } else { 1.0 };
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
        let closed = matches!(self.load, LoadPattern::Closed { .. });
        let cost = if closed { self.costs.client } else { 0.0 };
        self.client_free = self.client_free.max(self.now) + cost;
        self.later(self.client_free - self.now + self.costs.network, Event::Reached(ticket));
    }

    fn returned(&mut self, ticket: u64) {
        let rejected = self.rejected.remove(&ticket);
        if let LoadPattern::Closed { think, .. } = self.load {
            let think = think.as_secs_f64() * 1e6;
            let pause = if think > 0.0 { self.rng.exponential(think) } else { 0.0 };
            let back_off = rejected.map_or(0.0, |after| after.as_secs_f64() * 1e6 * (1.0 + self.rng.unit()));
            self.later(pause + back_off, Event::Send);
        }
    }

    fn io_done(&mut self) {
        let Some((task, _)) = self.io.pop_front() else { return };
        match task {
            IoTask::Read(ticket) => self.admit(ticket),
            IoTask::Write(ticket) => self.later(self.costs.network, Event::Returned(ticket)),
        }
        if self.io.is_empty() {
            let time = self.time();
            self.policy.on_reads_drained(time);
        }
    }

    fn admit(&mut self, ticket: u64) {
        let arrival =
            Arrival { ticket: Ticket(ticket), rows: 1, bucket: 0, bytes: 2048, priority: 0, deadline: None };
        let time = self.time();
        match self.policy.admit(time, arrival) {
            Ok(()) => {
                self.admitted.insert(ticket, self.now);
                self.result.max_queued = self.result.max_queued.max(self.admitted.len());
            }
            Err(error) => {
                let cudock_batcher::AdmissionError::QueueFull { retry_after } = error else {
                    panic!("no request of this server is late")
                };
                self.rejected.insert(ticket, retry_after);
                self.result.rejected += usize::from(self.now > self.warm);
                self.io.push_back((IoTask::Write(ticket), self.costs.write));
            }
        }
    }

    fn batch_done(&mut self) {
        let Some((batch, _)) = self.device.pop_front() else { return };
        let time = self.time();
        self.policy.on_finished(time, batch.id);
        let counted = self.now > self.warm;
        self.result.batches += usize::from(counted);
        for Ticket(ticket) in batch.tickets {
            let admitted = self.admitted.remove(&ticket).expect("no ticket runs twice");
            if counted {
                self.result.completed += 1;
                self.result.latency.push(self.now - admitted);
            }
            self.io.push_back((IoTask::Write(ticket), self.costs.write));
        }
    }

    fn serve(&mut self) {
        loop {
            let time = self.time();
            match self.policy.next_action(time) {
                LaneAction::Run(batch) => {
                    let copy = self.costs.copy * batch.rows as f64;
                    self.later(copy, Event::Filled(batch.id));
                    self.fill_time_per_row.insert(batch.id, batch);
                }
                LaneAction::WaitUntil(until) => {
                    assert!(until > time, "a wait that is over already");
                    self.wake = Some(until.0 as f64 / 1e3);
                    break;
                }
                LaneAction::Idle => {
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
            self.result.expired += 1;
        }
    }
}
