//! What decides in a simulated server: the batcher, or a rule with two numbers to compare it with.

use std::collections::VecDeque;
use std::time::Duration;

use cudock_batcher::{Arrival, Batch, Batcher, Next, Refusal, Ticket, Time};

pub trait Policy {
    fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), Refusal>;
    fn quiet(&mut self, now: Time);
    fn next(&mut self, now: Time) -> Next;
    fn expired(&mut self, now: Time, out: &mut Vec<Ticket>);
    fn filled(&mut self, now: Time, batch: u64);
    fn finished(&mut self, now: Time, batch: u64);
}

impl Policy for Batcher {
    fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), Refusal> {
        Batcher::admit(self, now, arrival)
    }

    fn quiet(&mut self, now: Time) {
        Batcher::quiet(self, now);
    }

    fn next(&mut self, now: Time) -> Next {
        Batcher::next(self, now)
    }

    fn expired(&mut self, now: Time, out: &mut Vec<Ticket>) {
        self.take_expired(now, out);
    }

    fn filled(&mut self, now: Time, batch: u64) {
        Batcher::filled(self, now, batch);
    }

    fn finished(&mut self, now: Time, batch: u64) {
        Batcher::finished(self, now, batch, true);
    }
}

/// Runs what waits as soon as a lane is free and there are `size` requests, or the first has waited for `wait`.
pub struct Fixed {
    pub size: usize,
    pub max: usize,
    pub wait: Duration,
    pub lanes: usize,
    queue: VecDeque<(Ticket, Time)>,
    running: usize,
    batches: u64,
}

impl Fixed {
    pub fn new(size: usize, max: usize, wait: Duration, lanes: usize) -> Self {
        Self { size, max, wait, lanes, queue: VecDeque::new(), running: 0, batches: 0 }
    }
}

impl Policy for Fixed {
    fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), Refusal> {
        self.queue.push_back((arrival.ticket, now));
        Ok(())
    }

    fn quiet(&mut self, _: Time) {}

    fn next(&mut self, now: Time) -> Next {
        let Some(&(_, oldest)) = self.queue.front() else { return Next::Idle };
        if self.running >= self.lanes {
            return Next::Idle;
        }
        let due = oldest.plus(self.wait);
        if self.queue.len() < self.size && now < due {
            return Next::WaitUntil(due);
        }
        let rows = self.queue.len().min(self.max);
        self.running += 1;
        self.batches += 1;
        let tickets = self.queue.drain(..rows).map(|(ticket, _)| ticket).collect();
        Next::Run(Batch { id: self.batches, bucket: 0, tickets, rows, padded_rows: rows })
    }

    fn expired(&mut self, _: Time, _: &mut Vec<Ticket>) {}

    fn filled(&mut self, _: Time, _: u64) {}

    fn finished(&mut self, _: Time, _: u64) {
        self.running -= 1;
    }
}
