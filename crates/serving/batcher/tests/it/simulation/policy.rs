//! The policy of a simulated server: the batcher, or a fixed size and delay to compare it with.

use std::collections::VecDeque;
use std::time::Duration;

use cudock_batcher::{AdmissionError, Arrival, Batch, Batcher, LaneAction, Ticket, Time};

pub trait Policy {
    fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), AdmissionError>;
    fn on_reads_drained(&mut self, now: Time);
    fn next_action(&mut self, now: Time) -> LaneAction;
    fn expired(&mut self, now: Time, out: &mut Vec<Ticket>);
    fn on_filled(&mut self, now: Time, batch: u64);
    fn on_finished(&mut self, now: Time, batch: u64);
}

impl Policy for Batcher {
    fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), AdmissionError> {
        Batcher::admit(self, now, arrival)
    }

    fn on_reads_drained(&mut self, now: Time) {
        Batcher::on_reads_drained(self, now);
    }

    fn next_action(&mut self, now: Time) -> LaneAction {
        Batcher::next_action(self, now)
    }

    fn expired(&mut self, now: Time, out: &mut Vec<Ticket>) {
        self.take_expired(now, out);
    }

    fn on_filled(&mut self, now: Time, batch: u64) {
        Batcher::on_filled(self, now, batch);
    }

    fn on_finished(&mut self, now: Time, batch: u64) {
        Batcher::on_finished(self, now, batch, true);
    }
}

/// Runs a batch as soon as a lane is free and `size` requests are queued, or the first one has waited for `wait`.
pub struct FixedPolicy {
    pub size: usize,
    pub max: usize,
    pub wait: Duration,
    pub lanes: usize,
    queue: VecDeque<(Ticket, Time)>,
    running: usize,
    batches: u64,
}

impl FixedPolicy {
    pub fn new(size: usize, max: usize, wait: Duration, lanes: usize) -> Self {
        Self { size, max, wait, lanes, queue: VecDeque::new(), running: 0, batches: 0 }
    }
}

impl Policy for FixedPolicy {
    fn admit(&mut self, now: Time, arrival: Arrival) -> Result<(), AdmissionError> {
        self.queue.push_back((arrival.ticket, now));
        Ok(())
    }

    fn on_reads_drained(&mut self, _: Time) {}

    fn next_action(&mut self, now: Time) -> LaneAction {
        let Some(&(_, oldest)) = self.queue.front() else { return LaneAction::Idle };
        if self.running >= self.lanes {
            return LaneAction::Idle;
        }
        let due = Time(oldest.0 + u64::try_from(self.wait.as_nanos()).unwrap());
        if self.queue.len() < self.size && now < due {
            return LaneAction::WaitUntil(due);
        }
        let rows = self.queue.len().min(self.max);
        self.running += 1;
        self.batches += 1;
        let tickets = self.queue.drain(..rows).map(|(ticket, _)| ticket).collect();
        LaneAction::Run(Batch { id: self.batches, bucket: 0, tickets, rows, padded_rows: rows })
    }

    fn expired(&mut self, _: Time, _: &mut Vec<Ticket>) {}

    fn on_filled(&mut self, _: Time, _: u64) {}

    fn on_finished(&mut self, _: Time, _: u64) {
        self.running -= 1;
    }
}
