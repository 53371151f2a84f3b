//! One thread of the generator: an event loop over its share of the connections.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Exchange, Turn};
use crate::poll::Poll;
use crate::schedule::Schedule;
use crate::tally::{Tally, Window};
use crate::{LoadError, Request};

/// How long a client of a closed loop waits before it connects again after a failure.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes read at once.
const READ_AT_ONCE: usize = 128 << 10;

/// What decides when a request is sent.
#[derive(Debug)]
pub(crate) enum Source {
    /// So many clients, each of which sends when it has its answer.
    Closed(usize),
    /// A schedule, over at most so many connections.
    Open(Schedule, usize),
}

/// A worker's share of a run.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) requests: &'a [Request],
    pub(crate) source: Source,
    pub(crate) window: Window,
    pub(crate) grace: Duration,
    /// Compare every so many answers; none if zero.
    pub(crate) check_every: u64,
    /// Where in the pool to begin.
    pub(crate) first_request: usize,
}

/// A place for a connection; the number tells events of an earlier one apart.
#[derive(Debug, Default)]
struct Place {
    connection: Option<Connection>,
    generation: u32,
}

struct Worker<'a> {
    share: Share<'a>,
    poll: Poll,
    buffer: Box<[u8]>,
    places: Vec<Place>,
    /// Open loop: places with a free connection, the last used on top. Some may have been closed since.
    free: Vec<usize>,
    /// Open loop: places without a connection.
    empty: Vec<usize>,
    /// Closed loop: clients that wait before they connect again.
    pausing: VecDeque<(Instant, usize)>,
    busy: usize,
    sent: u64,
    next_request: usize,
    tally: Tally,
}

/// Puts a share of the load on the server and tells what came of it.
pub(crate) fn work(share: Share<'_>) -> Result<Tally, LoadError> {
    let begun = (Instant::now(), thread_time());
    let mut worker = Worker {
        poll: Poll::new()?,
        buffer: vec![0; READ_AT_ONCE].into_boxed_slice(),
        places: Vec::new(),
        free: Vec::new(),
        empty: Vec::new(),
        pausing: VecDeque::new(),
        busy: 0,
        sent: 0,
        next_request: share.first_request,
        tally: Tally::new(share.window),
        share,
    };
    worker.run()?;
    worker.abandon();
    let mut tally = worker.tally;
    tally.busy = (thread_time() - begun.1) / begun.0.elapsed().as_secs_f64().max(1e-9);
    tally.connections = worker.places.len();
    Ok(tally)
}

impl Worker<'_> {
    fn run(&mut self) -> Result<(), LoadError> {
        if let Source::Closed(clients) = self.share.source {
            for place in 0..clients {
                self.places.push(Place::default());
                self.send(place, Instant::now())?;
            }
        }
        let end = self.share.window.end;
        let last = end + self.share.grace;
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
                if let (Ok(place), Ok(generation)) =
                    (usize::try_from(ready.token & 0xFFFF_FFFF), u32::try_from(ready.token >> 32))
                    && self.places.get(place).is_some_and(|place| place.generation == generation)
                {
                    self.advance(place, ready.ended)?;
                }
            }
        }
    }

    /// When the next request of the schedule is due, if there is one.
    fn scheduled(&self) -> Option<Instant> {
        match &self.share.source {
            Source::Open(schedule, _) => schedule.peek(),
            Source::Closed(_) => None,
        }
    }

    /// When to look at the clock again, if no socket asks for it.
    fn wake(&self, now: Instant, end: Instant, last: Instant) -> Instant {
        let edge = if now < end { end } else { last };
        // What is due already waits for a connection, not for the clock.
        let scheduled = self.scheduled().filter(|due| *due > now);
        let resume = self.pausing.front().map(|(time, _)| *time);
        [scheduled, resume].into_iter().flatten().fold(edge, Instant::min)
    }

    /// Open loop: sends what is due, as far as there are connections.
    fn send_due(&mut self, now: Instant) -> Result<(), LoadError> {
        while self.scheduled().is_some_and(|due| due <= now) {
            let Some(place) = self.vacancy() else { return Ok(()) };
            self.send_scheduled(place)?;
        }
        Ok(())
    }

    /// A place for a request: one with a free connection, an empty one, or a new one.
    fn vacancy(&mut self) -> Option<usize> {
        while let Some(place) = self.free.pop() {
            match self.places.get(place).map(|place| &place.connection) {
                Some(Some(connection)) if connection.exchange.is_none() => return Some(place),
                Some(None) => return Some(place),
                _ => {}
            }
        }
        if let Some(place) = self.empty.pop() {
            return Some(place);
        }
        match self.share.source {
            Source::Open(_, limit) if self.places.len() < limit => {
                self.places.push(Place::default());
                Some(self.places.len() - 1)
            }
            _ => None,
        }
    }

    /// Sends the next request of the schedule.
    fn send_scheduled(&mut self, place: usize) -> Result<(), LoadError> {
        let Some(intended) = self.scheduled() else { return Ok(()) };
        if let Source::Open(schedule, _) = &mut self.share.source {
            schedule.advance();
        }
        self.tally.send(intended, Instant::now());
        self.send(place, intended)
    }

    /// Closed loop: clients whose pause is over go on.
    fn resume(&mut self, now: Instant) -> Result<(), LoadError> {
        while self.pausing.front().is_some_and(|(time, _)| *time <= now) {
            if let Some((_, place)) = self.pausing.pop_front()
                && now < self.share.window.end
            {
                self.send(place, now)?;
            }
        }
        Ok(())
    }

    /// Sends the next request of the pool, on a new connection if there is none.
    fn send(&mut self, number: usize, intended: Instant) -> Result<(), LoadError> {
        self.tally.start(intended);
        let request = self.next_request % self.share.requests.len().max(1);
        self.next_request = request + 1;
        let Some(prepared) = self.share.requests.get(request) else { return Ok(()) };
        self.sent += 1;
        let check = self.share.check_every > 0
            && self.sent.is_multiple_of(self.share.check_every)
            && prepared.expected().is_some();
        let Some(place) = self.places.get_mut(number) else { return Ok(()) };
        if place.connection.is_none() {
            place.generation = place.generation.wrapping_add(1);
            match Connection::open(self.share.address) {
                Ok(connection) => {
                    let token = u64::from(place.generation) << 32 | number as u64;
                    self.poll.watch(connection.stream(), token)?;
                    place.connection = Some(connection);
                }
                Err(error) => {
                    self.tally.lose(intended, &error.to_string());
                    self.vacate(number, Instant::now());
                    return Ok(());
                }
            }
        }
        let Some(connection) = &mut place.connection else { return Ok(()) };
        self.busy += 1;
        match connection.begin(Exchange { intended, request, check }, prepared.bytes()) {
            Turn::Broken(reason) => self.broken(number, &reason),
            Turn::Waiting | Turn::Answered(_) => {}
        }
        Ok(())
    }

    /// A socket has changed.
    fn advance(&mut self, number: usize, ended: bool) -> Result<(), LoadError> {
        let Some(connection) = self.places.get_mut(number).and_then(|place| place.connection.as_mut()) else {
            return Ok(());
        };
        let request = connection.exchange.and_then(|exchange| self.share.requests.get(exchange.request));
        let bytes = request.map_or(&[][..], Request::bytes);
        match connection.advance(bytes, &mut self.buffer, ended) {
            Turn::Waiting => Ok(()),
            Turn::Broken(reason) => {
                self.broken(number, &reason);
                Ok(())
            }
            Turn::Answered(answered) => {
                let mut now = Instant::now();
                let Some(exchange) = connection.exchange.take() else { return Ok(()) };
                self.busy -= 1;
                self.tally.answer(exchange.intended, now, answered.status, request.map_or(0, Request::rows));
                if exchange.check
                    && (200..300).contains(&answered.status)
                    && let Some(expected) = request.and_then(Request::expected)
                {
                    let (body, json_length) = connection.answer();
                    self.tally.check(expected.agrees(body, json_length));
                    // The next request of this client is not late by what the comparison took.
                    now = Instant::now();
                }
                if answered.close
                    && let Some(place) = self.places.get_mut(number)
                {
                    place.connection = None;
                }
                self.go_on(number, now)
            }
        }
    }

    /// What a place does after an answer.
    fn go_on(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        match self.share.source {
            Source::Closed(_) if now < self.share.window.end => self.send(number, now),
            Source::Closed(_) => Ok(()),
            Source::Open(..) if self.scheduled().is_some_and(|due| due <= now) => self.send_scheduled(number),
            Source::Open(..) => {
                self.free.push(number);
                Ok(())
            }
        }
    }

    /// A connection is gone, and the request on it, if there was one, will have no answer.
    fn broken(&mut self, number: usize, reason: &str) {
        let now = Instant::now();
        let gone = self.places.get_mut(number).and_then(|place| place.connection.take());
        match gone.and_then(|connection| connection.exchange) {
            Some(exchange) => {
                self.busy -= 1;
                self.tally.lose(exchange.intended, reason);
                self.vacate(number, now);
            }
            // Closed while it was free: its place is still among the free ones.
            None if matches!(self.share.source, Source::Closed(_)) => self.vacate(number, now),
            None => {}
        }
    }

    fn vacate(&mut self, number: usize, now: Instant) {
        match self.share.source {
            Source::Closed(_) => self.pausing.push_back((now + PAUSE, number)),
            Source::Open(..) => self.empty.push(number),
        }
    }

    /// Counts what has no answer when the time is over.
    fn abandon(&mut self) {
        for place in &self.places {
            if let Some(exchange) = place.connection.as_ref().and_then(|connection| connection.exchange) {
                self.tally.abandon(exchange.intended);
            }
        }
        if let Source::Open(schedule, _) = &mut self.share.source {
            while let Some(intended) = schedule.peek() {
                self.tally.start(intended);
                self.tally.abandon(intended);
                schedule.advance();
            }
        }
    }
}

/// Processor time of this thread, in seconds.
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
