//! Invariants: thousands of random schedules against a simple model of the queue.

use std::collections::HashMap;
use std::time::Duration;

use cudock_batcher::{Arrival, Batch, Batcher, BatcherSettings, LEVELS, LaneAction, Ticket, Time};

use super::rng::Rng;

/// A queued request in the model.
#[derive(Clone, Copy)]
struct Waiting {
    arrival: Arrival,
    arrived: u64,
    order: u64,
    /// Whether its batch failed, and whether it then runs alone.
    retried: bool,
    alone: bool,
}

struct Schedule {
    seed: u64,
    rng: Rng,
    settings: BatcherSettings,
    batcher: Batcher,
    now: u64,
    tickets: u64,
    order: u64,
    waiting: HashMap<u64, Waiting>,
    running: Vec<(Batch, Vec<Waiting>)>,
    expired: Vec<Ticket>,
    ran: u64,
    /// When an engine crashed.
    crashed: Option<u64>,
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let max_rows = 1 + rng.below(40) as usize;
        let settings = BatcherSettings {
            max_rows,
            max_wait: Duration::from_micros(rng.below(3000)),
            preferred_rows: (0..rng.below(4)).map(|_| rng.below(48) as usize).collect(),
            pad: rng.chance(0.5),
            latency_target: rng.chance(0.4).then(|| Duration::from_micros(200 + rng.below(5000))),
            max_queued_rows: 1 + rng.below(300) as usize,
            max_queued_bytes: 1 + rng.below(100_000) as usize,
            max_queue_time: Duration::from_micros(rng.below(100_000)),
            lanes: 1 + rng.below(3) as usize,
            shared_cores: rng.chance(0.3),
            drain_timeout: Duration::from_micros(rng.below(200)),
        };
        Self {
            seed,
            batcher: Batcher::new(settings.clone()),
            settings,
            rng,
            now: 0,
            tickets: 0,
            order: 0,
            waiting: HashMap::new(),
            running: Vec::new(),
            expired: Vec::new(),
            ran: 0,
            crashed: None,
        }
    }

    fn admit(&mut self) {
        self.tickets += 1;
        let rows = if self.rng.chance(0.9) { 1 + self.rng.below(4) } else { self.rng.below(100) } as usize;
        let arrival = Arrival {
            ticket: Ticket(self.tickets),
            rows,
            bucket: if self.rng.chance(0.7) { 0 } else { self.rng.below(4) },
            bytes: self.rng.below(2000) as usize,
            priority: if self.rng.chance(0.8) { 0 } else { self.rng.below(20) as u32 },
            deadline: self.rng.chance(0.3).then(|| Time(self.now + self.rng.below(8_000_000))),
        };
        if self.batcher.admit(Time(self.now), arrival).is_ok() {
            assert!(arrival.deadline.is_none_or(|deadline| deadline.0 > self.now), "seed {}", self.seed);
            self.order += 1;
            let (arrived, order) = (self.now, self.order);
            self.waiting
                .insert(self.tickets, Waiting { arrival, arrived, order, retried: false, alone: false });
        }
    }

    fn cancel(&mut self) {
        let ticket = Ticket(1 + self.rng.below(self.tickets.max(1)));
        let queued = self.waiting.remove(&ticket.0).is_some();
        let expired = self.expired.contains(&ticket);
        assert!(!expired || !queued);
        assert_eq!(self.batcher.cancel(ticket), queued, "seed {}", self.seed);
    }

    /// Asks for batches as a server would, until there are no more.
    fn serve(&mut self) {
        loop {
            let next = self.batcher.next_action(Time(self.now));
            self.collect_expired();
            match next {
                LaneAction::Run(batch) => self.start(batch),
                LaneAction::WaitUntil(until) => {
                    assert!(until.0 > self.now, "seed {}: a wait that is over", self.seed);
                    assert!(until.0 - self.now < 60_000_000_000, "seed {}: a wait without end", self.seed);
                    assert!(!self.waiting.is_empty(), "seed {}: a wait with an empty queue", self.seed);
                    return;
                }
                LaneAction::Idle => {
                    let lane_free = self.running.len() < self.settings.lanes;
                    assert!(
                        !lane_free || self.waiting.is_empty(),
                        "seed {}: a queued request is forgotten",
                        self.seed
                    );
                    return;
                }
            }
        }
    }

    fn start(&mut self, batch: Batch) {
        let seed = self.seed;
        let members: Vec<Waiting> = batch
            .tickets
            .iter()
            .map(|ticket| {
                self.waiting
                    .remove(&ticket.0)
                    .unwrap_or_else(|| panic!("seed {seed}: {ticket:?} was not waiting"))
            })
            .collect();
        assert!(!members.is_empty(), "seed {seed}: an empty batch");
        assert!(self.running.len() < self.settings.lanes, "seed {seed}: more batches than lanes");
        assert_eq!(
            members.iter().map(|member| member.arrival.rows).sum::<usize>(),
            batch.rows,
            "seed {seed}"
        );
        assert!(
            batch.rows <= self.settings.max_rows || members.len() == 1,
            "seed {seed}: {} rows",
            batch.rows
        );
        let careful =
            self.crashed.map_or(usize::MAX, |crashed| 1 << ((self.now - crashed) / 2_000_000_000).min(60));
        let is_limited = careful < self.settings.max_rows && members.iter().all(|member| !member.retried);
        assert!(
            !is_limited || members.len() <= careful,
            "seed {seed}: {} requests after a crash",
            members.len()
        );
        assert!(batch.padded_rows >= batch.rows && (self.settings.pad || batch.padded_rows == batch.rows));
        assert!(
            members.iter().all(|member| member.arrival.bucket == batch.bucket),
            "seed {seed}: mixed buckets"
        );
        assert!(
            members.iter().all(|member| member.arrival.deadline.is_none_or(|deadline| deadline.0 > self.now)),
            "seed {seed}: an expired request runs"
        );
        if members[0].alone {
            assert_eq!((members.len(), self.running.len()), (1, 0), "seed {seed}: retries run isolated");
        } else {
            assert!(!self.waiting.values().any(|waiting| waiting.alone), "seed {seed}: retries go first");
        }
        for member in members.iter().filter(|member| !member.alone) {
            let overtaken = self.waiting.values().find(|other| {
                !other.alone
                    && other.order < member.order
                    && other.arrival.bucket == batch.bucket
                    && level(other) == level(member)
            });
            assert!(overtaken.is_none(), "seed {seed}: the order of arrival is kept");
        }
        self.ran += members.len() as u64;
        self.running.push((batch, members));
    }

    fn collect_expired(&mut self) {
        let mut expired = Vec::new();
        self.batcher.take_expired(Time(self.now), &mut expired);
        for ticket in expired {
            let waiting = self.waiting.remove(&ticket.0);
            let waiting = waiting.unwrap_or_else(|| panic!("seed {}: {ticket:?} expired twice", self.seed));
            assert!(waiting.arrival.deadline.is_some(), "seed {}: expired without a deadline", self.seed);
            self.expired.push(ticket);
        }
        let passed = self
            .waiting
            .values()
            .filter(|waiting| waiting.arrival.deadline.is_some_and(|deadline| deadline.0 <= self.now));
        assert_eq!(passed.count(), 0, "seed {}: a deadline passed unnoticed", self.seed);
    }

    fn finish(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let which = self.rng.below(self.running.len() as u64) as usize;
        let (batch, members) = self.running.remove(which);
        let died = self.rng.chance(0.1);
        if self.rng.chance(0.3) {
            self.batcher.on_filled(Time(self.now), batch.id);
        }
        self.batcher.on_finished(Time(self.now), batch.id, !died);
        if died {
            self.ran -= members.len() as u64;
            let alone = members.iter().any(|member| member.retried) || self.rng.chance(0.5);
            for member in members {
                let mut again = Waiting { retried: true, alone, ..member };
                if alone {
                    self.batcher.retry_alone(Time(self.now), again.arrival);
                } else {
                    again.arrival.bucket = 1_000_000 + batch.id;
                    self.batcher.retry_together(Time(again.arrived), again.arrival);
                }
                self.waiting.insert(again.arrival.ticket.0, again);
            }
        }
        self.batcher.recycle(batch.tickets);
    }

    fn check_counts(&self) {
        let rows: usize = self.waiting.values().map(|waiting| waiting.arrival.rows).sum();
        assert_eq!(self.batcher.queued_requests(), self.waiting.len(), "seed {}", self.seed);
        assert_eq!(self.batcher.queued_rows(), rows, "seed {}", self.seed);
        let fresh = self.waiting.values().filter(|waiting| !waiting.retried);
        let fresh_rows: usize = fresh.clone().map(|waiting| waiting.arrival.rows).sum();
        assert!(
            fresh_rows <= self.settings.max_queued_rows || fresh.count() == 1,
            "seed {}: too full",
            self.seed
        );
    }
}

fn level(waiting: &Waiting) -> usize {
    (waiting.arrival.priority as usize).min(LEVELS - 1)
}

fn play(seed: u64, steps: usize) -> Schedule {
    let mut schedule = Schedule::new(seed);
    let pace = 1 << schedule.rng.below(20);
    for _ in 0..steps {
        schedule.now += schedule.rng.below(pace);
        match schedule.rng.below(20) {
            0..9 => schedule.admit(),
            9..10 => schedule.cancel(),
            10..13 => schedule.batcher.on_reads_drained(Time(schedule.now)),
            13..17 => schedule.finish(),
            17 if schedule.rng.chance(0.1) => {
                schedule.batcher.be_careful(Time(schedule.now));
                schedule.crashed = Some(schedule.now);
            }
            _ => {}
        }
        schedule.collect_expired();
        if schedule.rng.chance(0.7) {
            schedule.serve();
        }
        schedule.check_counts();
    }
    schedule
}

#[test]
fn every_admitted_request_comes_out_once_and_in_order() {
    let mut ran = 0;
    for seed in 0..4000 {
        ran += play(seed, 150).ran;
    }
    assert!(ran > 50_000, "the schedules must exercise something: {ran} requests were run");
}

#[test]
fn the_queue_runs_empty_once_no_more_requests_arrive() {
    for seed in 10_000..11_000 {
        let mut schedule = play(seed, 200);
        for _ in 0..10_000 {
            schedule.now += 1_000_000;
            schedule.collect_expired();
            schedule.serve();
            let Some((batch, _)) = schedule.running.pop() else { break };
            schedule.batcher.on_finished(Time(schedule.now), batch.id, true);
        }
        // The rest was held back for more requests to arrive: the wait ends.
        schedule.now += 10_000_000_000;
        while !schedule.waiting.is_empty() {
            schedule.now += 10_000_000;
            schedule.collect_expired();
            schedule.serve();
            while let Some((batch, _)) = schedule.running.pop() {
                schedule.batcher.on_finished(Time(schedule.now), batch.id, true);
            }
            assert!(schedule.now < 1_000_000_000_000, "seed {seed}: {} wait forever", schedule.waiting.len());
        }
        schedule.check_counts();
    }
}

#[test]
fn a_clock_that_runs_backward_does_no_harm() {
    let mut schedule = play(77, 100);
    schedule.batcher.on_reads_drained(Time(0));
    let arrival =
        Arrival { ticket: Ticket(u64::MAX), rows: 1, bucket: 9, bytes: 0, priority: 0, deadline: None };
    let _ = schedule.batcher.admit(Time(0), arrival);
    if let LaneAction::WaitUntil(until) = schedule.batcher.next_action(Time(0)) {
        assert!(until.0 > schedule.now / 2);
    }
}
