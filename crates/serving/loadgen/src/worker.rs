//! One thread of the generator: an event loop over its share of the connections.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::client::connection::{Connection, Exchange, ExchangeState};
use crate::client::poll::Poll;
use crate::results::counters::{LoadCounters, Window};
use crate::schedule::Schedule;
use crate::{LoadError, LoadRequest, LoadSettings};

/// Pause of a client of a closed loop after a failure.
const PAUSE: Duration = Duration::from_millis(10);
const READ_AT_ONCE: usize = 128 << 10;

/// The source of requests, which determines when each is sent.
#[derive(Debug)]
pub(crate) enum LoadSource {
    /// This many clients, each of which sends after its response.
    Closed(usize),
    /// A schedule, over at most this many connections.
    Open(Schedule, usize),
}

/// The part of a run for one worker.
#[derive(Debug)]
pub(crate) struct WorkerConfig<'a> {
    pub(crate) settings: &'a LoadSettings,
    pub(crate) requests: &'a [LoadRequest],
    pub(crate) source: LoadSource,
    pub(crate) window: Window,
    /// First index in the pool.
    pub(crate) first_request: usize,
}

/// A slot for a connection; the generation distinguishes events of earlier ones.
#[derive(Debug, Default)]
struct ConnectionSlot {
    connection: Option<Connection>,
    generation: u32,
}

struct Worker<'a> {
    config: WorkerConfig<'a>,
    poll: Poll,
    buffer: Box<[u8]>,
    slots: Vec<ConnectionSlot>,
    /// Open loop: slots with a free connection, the last used on top. Some may have been closed since.
    free: Vec<usize>,
    /// Open loop: slots without a connection.
    empty: Vec<usize>,
    /// Closed loop: clients that pause before they reconnect.
    pausing: VecDeque<(Instant, usize)>,
    busy: usize,
    sent: u64,
    next_request: usize,
    counters: LoadCounters,
}

pub(crate) fn work(config: WorkerConfig<'_>) -> Result<LoadCounters, LoadError> {
    let begun = (Instant::now(), thread_time());
    let mut worker = Worker {
        poll: Poll::new()?,
        buffer: vec![0; READ_AT_ONCE].into_boxed_slice(),
        slots: Vec::new(),
        free: Vec::new(),
        empty: Vec::new(),
        pausing: VecDeque::new(),
        busy: 0,
        sent: 0,
        next_request: config.first_request,
        counters: LoadCounters::new(config.window),
        config,
    };
    worker.run()?;
    worker.abandon();
    let mut counters = worker.counters;
    counters.busy = (thread_time() - begun.1) / begun.0.elapsed().as_secs_f64().max(1e-9);
    counters.connections = worker.slots.len();
    Ok(counters)
}

impl Worker<'_> {
    fn run(&mut self) -> Result<(), LoadError> {
        if let LoadSource::Closed(clients) = self.config.source {
            for slot in 0..clients {
                self.slots.push(ConnectionSlot::default());
                self.send(slot, Instant::now())?;
            }
        }
        let end = self.config.window.end;
        let last = end + self.config.settings.grace;
        loop {
            let now = Instant::now();
            let over = now >= end && self.busy == 0 && self.scheduled().is_none();
            if over || now >= last {
                return Ok(());
            }
            self.send_due(now)?;
            self.resume(now)?;
            self.poll.wait(now, self.wake(now, end, last))?;
            let mut number = 0;
            while let Some(ready) = self.poll.event(number) {
                number += 1;
                if let (Ok(slot), Ok(generation)) =
                    (usize::try_from(ready.token & 0xFFFF_FFFF), u32::try_from(ready.token >> 32))
                    && self.slots.get(slot).is_some_and(|slot| slot.generation == generation)
                {
                    self.advance(slot, ready.ended)?;
                }
            }
        }
    }

    /// When the next request of the schedule is due, if there is one.
    fn scheduled(&self) -> Option<Instant> {
        match &self.config.source {
            LoadSource::Open(schedule, _) => schedule.peek(),
            LoadSource::Closed(_) => None,
        }
    }

    /// When to wake up without an event.
    fn wake(&self, now: Instant, end: Instant, last: Instant) -> Instant {
        let edge = if now < end { end } else { last };
        // A due request waits for a connection, not for the clock.
        let scheduled = self.scheduled().filter(|due| *due > now);
        let resume = self.pausing.front().map(|(time, _)| *time);
        [scheduled, resume].into_iter().flatten().fold(edge, Instant::min)
    }

    /// Open loop: sends due requests, as far as there are connections.
    fn send_due(&mut self, now: Instant) -> Result<(), LoadError> {
        while self.scheduled().is_some_and(|due| due <= now) {
            let Some(slot) = self.vacancy() else { return Ok(()) };
            self.send_scheduled(slot)?;
        }
        Ok(())
    }

    /// A slot for a request: one with a free connection, an empty one, or a new one.
    fn vacancy(&mut self) -> Option<usize> {
        while let Some(slot) = self.free.pop() {
            match self.slots.get(slot).map(|slot| &slot.connection) {
                Some(Some(connection)) if connection.exchange.is_none() => return Some(slot),
                Some(None) => return Some(slot),
                _ => {}
            }
        }
        if let Some(slot) = self.empty.pop() {
            return Some(slot);
        }
        match self.config.source {
            LoadSource::Open(_, limit) if self.slots.len() < limit => {
                self.slots.push(ConnectionSlot::default());
                Some(self.slots.len() - 1)
            }
            _ => None,
        }
    }

    fn send_scheduled(&mut self, slot: usize) -> Result<(), LoadError> {
        let Some(intended) = self.scheduled() else { return Ok(()) };
        if let LoadSource::Open(schedule, _) = &mut self.config.source {
            schedule.advance();
        }
        self.counters.send(intended, Instant::now());
        self.send(slot, intended)
    }

    /// Closed loop: resumes clients whose pause is over.
    fn resume(&mut self, now: Instant) -> Result<(), LoadError> {
        while self.pausing.front().is_some_and(|(time, _)| *time <= now) {
            if let Some((_, slot)) = self.pausing.pop_front()
                && now < self.config.window.end
            {
                self.send(slot, now)?;
            }
        }
        Ok(())
    }

    /// Sends the next request of the pool, on a new connection if there is none.
    fn send(&mut self, number: usize, intended: Instant) -> Result<(), LoadError> {
        self.counters.start(intended);
        let request = self.next_request % self.config.requests.len().max(1);
        self.next_request = request + 1;
        let Some(prepared) = self.config.requests.get(request) else { return Ok(()) };
        self.sent += 1;
        let check_every = self.config.settings.check_every;
        let check = check_every > 0 && self.sent.is_multiple_of(check_every) && prepared.expected.is_some();
        let Some(slot) = self.slots.get_mut(number) else { return Ok(()) };
        if slot.connection.is_none() {
            slot.generation = slot.generation.wrapping_add(1);
            match Connection::open(self.config.settings.address) {
                Ok(connection) => {
                    let token = u64::from(slot.generation) << 32 | number as u64;
                    self.poll.watch(connection.stream(), token)?;
                    slot.connection = Some(connection);
                }
                Err(error) => {
                    self.counters.lose(intended, &error.to_string());
                    self.vacate(number, Instant::now());
                    return Ok(());
                }
            }
        }
        let Some(connection) = &mut slot.connection else { return Ok(()) };
        self.busy += 1;
        let state = connection.begin(Exchange { intended, request, check }, &prepared.bytes);
        if let ExchangeState::Broken(reason) = state {
            self.broken(number, &reason);
        }
        Ok(())
    }

    fn advance(&mut self, number: usize, ended: bool) -> Result<(), LoadError> {
        let Some(connection) = self.slots.get_mut(number).and_then(|slot| slot.connection.as_mut()) else {
            return Ok(());
        };
        let request = connection.exchange.and_then(|exchange| self.config.requests.get(exchange.request));
        let bytes = request.map_or(&[][..], |request| &request.bytes);
        match connection.advance(bytes, &mut self.buffer, ended) {
            ExchangeState::Waiting => Ok(()),
            ExchangeState::Broken(reason) => {
                self.broken(number, &reason);
                Ok(())
            }
            ExchangeState::Completed(completed) => {
                let mut now = Instant::now();
                let Some(exchange) = connection.exchange.take() else { return Ok(()) };
                self.busy -= 1;
                let rows = request.map_or(0, |request| request.rows);
                self.counters.response(exchange.intended, now, completed.status, rows);
                if exchange.check
                    && (200..300).contains(&completed.status)
                    && let Some(expected) = request.and_then(|request| request.expected.as_ref())
                {
                    let (body, json_length) = connection.response();
                    self.counters.check(expected.agrees(body, json_length));
                    // The time of the verification does not count toward the next request.
                    now = Instant::now();
                }
                if completed.close
                    && let Some(slot) = self.slots.get_mut(number)
                {
                    slot.connection = None;
                }
                self.go_on(number, now)
            }
        }
    }

    /// Continues a slot after a response.
    fn go_on(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        match self.config.source {
            LoadSource::Closed(_) if now < self.config.window.end => self.send(number, now),
            LoadSource::Closed(_) => Ok(()),
            LoadSource::Open(..) if self.scheduled().is_some_and(|due| due <= now) => {
                self.send_scheduled(number)
            }
            LoadSource::Open(..) => {
                self.free.push(number);
                Ok(())
            }
        }
    }

    /// Handles a failed connection; its request, if any, will have no response.
    fn broken(&mut self, number: usize, reason: &str) {
        let now = Instant::now();
        let gone = self.slots.get_mut(number).and_then(|slot| slot.connection.take());
        match gone.and_then(|connection| connection.exchange) {
            Some(exchange) => {
                self.busy -= 1;
                self.counters.lose(exchange.intended, reason);
                self.vacate(number, now);
            }
            // Closed while it was free: its slot is still in the free list.
            None if matches!(self.config.source, LoadSource::Closed(_)) => self.vacate(number, now),
            None => {}
        }
    }

    fn vacate(&mut self, number: usize, now: Instant) {
        match self.config.source {
            LoadSource::Closed(_) => self.pausing.push_back((now + PAUSE, number)),
            LoadSource::Open(..) => self.empty.push(number),
        }
    }

    /// Counts requests without a response at the end.
    fn abandon(&mut self) {
        for slot in &self.slots {
            if let Some(exchange) = slot.connection.as_ref().and_then(|connection| connection.exchange) {
                self.counters.abandon(exchange.intended);
            }
        }
        if let LoadSource::Open(schedule, _) = &mut self.config.source {
            while let Some(intended) = schedule.peek() {
                self.counters.start(intended);
                self.counters.abandon(intended);
                schedule.advance();
            }
        }
    }
}

/// CPU time of this thread in seconds.
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
