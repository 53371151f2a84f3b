//! Measures the cost of a request in the batcher: admission, batching, completion. A server does this under a lock for
//! each request, so at 50,000 requests per second, one microsecond each is a twentieth of a core.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails panics")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures for people")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use cudock_batcher::{Arrival, Batcher, BatcherSettings, LaneAction, Ticket, Time};

const REQUESTS: u64 = 200_000;

struct Case {
    name: &'static str,
    batch: u64,
    buckets: u64,
    waiting: u64,
    deadlines: bool,
    target: bool,
}

fn main() {
    for case in [
        Case { name: "one by one", batch: 1, buckets: 1, waiting: 0, deadlines: false, target: false },
        Case { name: "batches of 32", batch: 32, buckets: 1, waiting: 0, deadlines: false, target: false },
        Case {
            name: "batches of 32, 2,000 waiting",
            batch: 32,
            buckets: 1,
            waiting: 2000,
            deadlines: false,
            target: false,
        },
        Case {
            name: "the same with deadlines",
            batch: 32,
            buckets: 1,
            waiting: 2000,
            deadlines: true,
            target: false,
        },
        Case { name: "eight buckets", batch: 32, buckets: 8, waiting: 2000, deadlines: false, target: false },
        Case {
            name: "with a latency target",
            batch: 32,
            buckets: 1,
            waiting: 0,
            deadlines: false,
            target: true,
        },
    ] {
        let fastest = (0..9).map(|_| measure(&case)).fold(f64::INFINITY, f64::min);
        println!("{:30} {fastest:6.0} ns a request", case.name);
    }
}

fn measure(case: &Case) -> f64 {
    let settings = BatcherSettings {
        max_queue_time: Duration::from_secs(3600),
        latency_target: case.target.then_some(Duration::from_secs(60)),
        ..BatcherSettings::default()
    };
    let mut batcher = Batcher::new(settings);
    let (mut now, mut ticket, mut done) = (0, 0, 0);
    let mut expired = Vec::new();
    let begin = Instant::now();
    while done < REQUESTS {
        while batcher.queued_requests() < (case.waiting + case.batch) as usize {
            now += 2_000;
            let deadline = case.deadlines.then_some(Time(now + 3_600_000_000_000));
            let bucket = ticket % case.buckets;
            let arrival =
                Arrival { ticket: Ticket(ticket), rows: 1, bucket, bytes: 2048, priority: 0, deadline };
            batcher.admit(Time(now), arrival).unwrap();
            ticket += 1;
        }
        batcher.on_reads_drained(Time(now));
        let batch = loop {
            match batcher.next_action(Time(now)) {
                LaneAction::Run(batch) => break batch,
                LaneAction::WaitUntil(until) => now = until.0,
                LaneAction::Idle => panic!("there is work and a free lane"),
            }
        };
        batcher.take_expired(Time(now), &mut expired);
        now += 250_000 + 17_000 * batch.rows as u64;
        batcher.on_finished(Time(now), batch.id, true);
        done += batch.tickets.len() as u64;
        batcher.recycle(black_box(batch.tickets));
    }
    begin.elapsed().as_nanos() as f64 / done as f64
}
