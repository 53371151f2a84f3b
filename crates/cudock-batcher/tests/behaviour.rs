//! What the batcher promises, one rule at a time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::time::Duration;

use cudock_batcher::{Arrival, Batch, Batcher, Next, Refusal, Settings, Ticket, Time};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn request(ticket: u64) -> Arrival {
    Arrival { ticket: Ticket(ticket), rows: 1, bucket: 0, bytes: 100, priority: 0, deadline: None }
}

/// Asks until there is a batch, and says when that was.
fn run(batcher: &mut Batcher, mut now: u64) -> (Batch, u64) {
    loop {
        match batcher.next(Time(now)) {
            Next::Run(batch) => return (batch, now),
            Next::WaitUntil(until) => now = until.0,
            Next::Idle => panic!("nothing to run"),
        }
    }
}

fn tickets(batch: &Batch) -> Vec<u64> {
    batch.tickets.iter().map(|ticket| ticket.0).collect()
}

/// Knows that a batch takes 250 µs, and 17 µs for each row.
fn taught(settings: Settings) -> Batcher {
    let mut batcher = Batcher::new(settings);
    for rows in [1, 2, 4, 8, 16, 32, 64, 128] {
        batcher.teach(Time(0), rows, Duration::from_micros(250 + 17 * rows as u64));
    }
    batcher
}

#[test]
fn a_request_to_an_idle_device_runs_once_the_transport_is_quiet() {
    let mut batcher = Batcher::new(Settings::default());
    batcher.admit(Time(10), request(1)).unwrap();
    assert!(matches!(batcher.next(Time(10)), Next::WaitUntil(_)));
    batcher.admit(Time(20), request(2)).unwrap();
    batcher.quiet(Time(30));
    let Next::Run(batch) = batcher.next(Time(30)) else { panic!("the transport is quiet") };
    assert_eq!(tickets(&batch), [1, 2]);
    assert_eq!((batch.rows, batch.padded_rows), (2, 2));
}

#[test]
fn a_transport_that_is_never_quiet_delays_a_batch_by_the_settling_time_only() {
    let mut batcher = Batcher::new(Settings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    assert_eq!(batcher.next(Time(0)), Next::WaitUntil(Time(100 * US)));
    assert!(matches!(batcher.next(Time(100 * US)), Next::Run(_)));
}

#[test]
fn on_shared_cores_a_batch_waits_for_a_busy_transport_up_to_the_longest_wait() {
    let mut batcher = taught(Settings { shared_cores: true, ..Settings::default() });
    batcher.admit(Time(0), request(1)).unwrap();
    assert_eq!(batcher.next(Time(0)), Next::WaitUntil(Time(2 * MS)));
    batcher.quiet(Time(5 * US));
    assert!(matches!(batcher.next(Time(5 * US)), Next::Run(_)));
}

#[test]
fn while_the_only_lane_is_busy_nothing_runs() {
    let mut batcher = Batcher::new(Settings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    let (batch, now) = run(&mut batcher, 0);
    batcher.admit(Time(now), request(2)).unwrap();
    batcher.quiet(Time(now));
    assert_eq!(batcher.next(Time(now)), Next::Idle);
    batcher.finished(Time(now + MS), batch.id, true);
    assert_eq!(tickets(&run(&mut batcher, now + MS).0), [2]);
}

#[test]
fn a_second_lane_is_filled_shortly_before_the_device_is_free() {
    let mut batcher = taught(Settings { lanes: 2, ..Settings::default() });
    for ticket in 0..32 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    run(&mut batcher, 0);
    batcher.admit(Time(100 * US), request(100)).unwrap();
    let Next::WaitUntil(begin) = batcher.next(Time(100 * US)) else { panic!("794 us are not over") };
    assert!((700 * US..794 * US).contains(&begin.0), "{begin:?}");
    let (batch, _) = run(&mut batcher, begin.0);
    assert_eq!(tickets(&batch), [100]);
}

#[test]
fn a_second_lane_takes_a_full_batch_at_once() {
    let mut batcher = taught(Settings { lanes: 2, ..Settings::default() });
    for ticket in 0..64 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    assert_eq!(run(&mut batcher, 0).1, 0);
    assert_eq!(run(&mut batcher, 0).1, 0);
    assert_eq!(batcher.running(), 2);
}

#[test]
fn a_request_with_more_rows_than_a_batch_runs_alone_unless_refused_by_choice() {
    let mut batcher = Batcher::new(Settings { max_rows: 8, ..Settings::default() });
    batcher.admit(Time(0), Arrival { rows: 20, ..request(1) }).unwrap();
    batcher.admit(Time(0), request(2)).unwrap();
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!((tickets(&batch), batch.rows), (vec![1], 20));

    let mut batcher = Batcher::new(Settings { max_rows: 8, refuse_larger: true, ..Settings::default() });
    let refusal = batcher.admit(Time(0), Arrival { rows: 20, ..request(1) }).unwrap_err();
    assert_eq!(refusal, Refusal::TooManyRows { max: 8 });
}

#[test]
fn only_requests_of_one_bucket_share_a_batch_and_the_oldest_decides_which() {
    let mut batcher = Batcher::new(Settings::default());
    for (ticket, bucket) in [(1, 7), (2, 8), (3, 7), (4, 8), (5, 8)] {
        batcher.admit(Time(ticket), Arrival { bucket, ..request(ticket) }).unwrap();
    }
    let (first, now) = run(&mut batcher, 10);
    assert_eq!((first.bucket, tickets(&first)), (7, vec![1, 3]));
    batcher.finished(Time(now + MS), first.id, true);
    let (second, _) = run(&mut batcher, now + MS);
    assert_eq!((second.bucket, tickets(&second)), (8, vec![2, 4, 5]));
}

#[test]
fn the_urgent_go_first_and_equals_keep_their_order() {
    let mut batcher = Batcher::new(Settings { max_rows: 2, ..Settings::default() });
    for (ticket, priority) in [(1, 1), (2, 0), (3, 1), (4, 0)] {
        batcher.admit(Time(ticket), Arrival { priority, ..request(ticket) }).unwrap();
    }
    let (batch, now) = run(&mut batcher, 10);
    assert_eq!(tickets(&batch), [2, 4]);
    batcher.finished(Time(now + MS), batch.id, true);
    assert_eq!(tickets(&run(&mut batcher, now + MS).0), [1, 3]);
}

#[test]
fn the_patient_are_not_overtaken_for_ever() {
    let queue_time = Duration::from_millis(50);
    let mut batcher = Batcher::new(Settings { max_rows: 1, queue_time, ..Settings::default() });
    batcher.admit(Time(0), Arrival { priority: 1, ..request(0) }).unwrap();
    let mut now = 0;
    for ticket in 1..1000 {
        batcher.admit(Time(now), request(ticket)).unwrap();
        batcher.quiet(Time(now));
        let (batch, at) = run(&mut batcher, now);
        if tickets(&batch) == [0] {
            assert!(at >= 50 * MS, "one level counts for the time a request may wait");
            return;
        }
        now = at + MS;
        batcher.finished(Time(now), batch.id, true);
    }
    panic!("a request was overtaken 1000 times");
}

#[test]
fn work_is_not_run_after_its_deadline() {
    let mut batcher = Batcher::new(Settings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    let (batch, _) = run(&mut batcher, 0);
    batcher.admit(Time(MS), Arrival { deadline: Some(Time(3 * MS)), ..request(2) }).unwrap();
    assert_eq!(batcher.next_deadline(), Some(Time(3 * MS)));
    batcher.admit(Time(MS), request(3)).unwrap();
    batcher.finished(Time(4 * MS), batch.id, true);
    let (batch, _) = run(&mut batcher, 4 * MS);
    assert_eq!(tickets(&batch), [3]);
    let mut expired = Vec::new();
    batcher.take_expired(Time(4 * MS), &mut expired);
    assert_eq!(expired, [Ticket(2)]);
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_at_the_door() {
    let mut batcher = taught(Settings::default());
    let in_time = |micros| Arrival { deadline: Some(Time(micros * US)), ..request(micros) };
    assert_eq!(batcher.admit(Time(0), in_time(0)), Err(Refusal::Late));
    assert_eq!(batcher.admit(Time(0), in_time(200)), Err(Refusal::Late), "a batch of one takes 267 us");
    batcher.admit(Time(0), in_time(400)).unwrap();
    batcher.quiet(Time(0));
    run(&mut batcher, 0);
    assert_eq!(batcher.admit(Time(0), in_time(500)), Err(Refusal::Late), "267 us are to be waited for");
    batcher.admit(Time(0), in_time(600)).unwrap();
}

#[test]
fn what_was_learned_long_ago_refuses_nobody() {
    let mut batcher = Batcher::new(Settings::default());
    batcher.teach(Time(0), 1, Duration::from_secs(1));
    let soon = |now: u64, ticket| Arrival { deadline: Some(Time(now + 100 * MS)), ..request(ticket) };
    assert_eq!(batcher.admit(Time(MS), soon(MS, 1)), Err(Refusal::Late));
    let later = 5_000 * MS;
    batcher.admit(Time(later), soon(later, 2)).unwrap();
    batcher.quiet(Time(later));
    assert_eq!(tickets(&run(&mut batcher, later).0), [2]);
}

#[test]
fn a_client_that_leaves_takes_its_request_along() {
    let mut batcher = Batcher::new(Settings::default());
    for ticket in 1..=3 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    assert!(batcher.cancel(Ticket(2)));
    assert!(!batcher.cancel(Ticket(2)), "it is gone already");
    assert_eq!((batcher.queued_requests(), batcher.queued_rows(), batcher.queued_bytes()), (2, 2, 200));
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!(tickets(&batch), [1, 3]);
    assert!(!batcher.cancel(Ticket(1)), "it is running");
}

#[test]
fn a_full_queue_says_when_it_will_be_worked_off() {
    let mut batcher = taught(Settings { queue_rows: 320, ..Settings::default() });
    for ticket in 0..320 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let Err(Refusal::Full { retry_after }) = batcher.admit(Time(0), request(1000)) else {
        panic!("320 rows wait")
    };
    let expected = Duration::from_micros(10 * 794);
    assert!(retry_after > expected * 9 / 10 && retry_after < expected * 11 / 10, "{retry_after:?}");
}

#[test]
fn a_queue_is_full_when_its_bytes_are() {
    let mut batcher = Batcher::new(Settings { queue_bytes: 250, ..Settings::default() });
    batcher.admit(Time(0), request(1)).unwrap();
    batcher.admit(Time(0), request(2)).unwrap();
    assert!(matches!(batcher.admit(Time(0), request(3)), Err(Refusal::Full { .. })));
}

#[test]
fn requests_without_rows_are_counted_too() {
    let mut batcher = Batcher::new(Settings { queue_rows: 2, ..Settings::default() });
    for ticket in 1..=2 {
        batcher.admit(Time(0), Arrival { rows: 0, bytes: 0, ..request(ticket) }).unwrap();
    }
    let third = batcher.admit(Time(0), Arrival { rows: 0, bytes: 0, ..request(3) });
    assert!(matches!(third, Err(Refusal::Full { .. })));
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!((tickets(&batch), batch.rows), (vec![1, 2], 0));
}

#[test]
fn requests_that_would_wait_too_long_are_refused_before_the_queue_is_full() {
    let mut batcher = taught(Settings { queue_time: Duration::from_millis(5), ..Settings::default() });
    let admitted = (0..4000).filter(|&ticket| batcher.admit(Time(0), request(ticket)).is_ok()).count();
    assert!((180..230).contains(&admitted), "5 ms are six batches of 32, and {admitted} were let in");
}

#[test]
fn an_engine_that_hangs_makes_the_expected_wait_grow() {
    let mut batcher = taught(Settings { queue_time: Duration::from_millis(100), ..Settings::default() });
    batcher.admit(Time(0), request(1)).unwrap();
    run(&mut batcher, 0);
    batcher.admit(Time(50 * MS), request(2)).unwrap();
    assert!(matches!(batcher.admit(Time(500 * MS), request(3)), Err(Refusal::Full { .. })));
}

#[test]
fn work_of_a_dead_engine_runs_first_and_each_by_itself() {
    let mut batcher = taught(Settings { lanes: 2, ..Settings::default() });
    for ticket in 1..=3 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let (batch, _) = run(&mut batcher, 0);
    batcher.admit(Time(1), request(4)).unwrap();
    batcher.finished(Time(MS), batch.id, false);
    batcher.retry(Time(MS), (1..=3).map(request));
    for ticket in 1..=3 {
        let (batch, _) = run(&mut batcher, ticket * 2 * MS);
        assert_eq!(tickets(&batch), [ticket]);
        assert!(matches!(batcher.next(Time(ticket * 2 * MS)), Next::WaitUntil(_)), "nothing runs beside it");
        batcher.finished(Time(ticket * 2 * MS + MS), batch.id, true);
    }
    assert_eq!(tickets(&run(&mut batcher, 8 * MS).0), [4]);
}

#[test]
fn a_report_from_an_engine_that_was_given_up_is_passed_over() {
    let mut batcher = Batcher::new(Settings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    let (batch, _) = run(&mut batcher, 0);
    batcher.finished(Time(MS), batch.id, false);
    batcher.finished(Time(2 * MS), batch.id, true);
    assert_eq!(batcher.estimate(1), None, "a failed batch teaches nothing");
    assert_eq!(batcher.running(), 0);
}

#[test]
fn batches_are_padded_to_the_next_preferred_size() {
    let preferred = vec![16, 4, 8];
    let mut batcher = Batcher::new(Settings { preferred, pad: true, ..Settings::default() });
    for ticket in 0..5 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!((batch.rows, batch.padded_rows), (5, 8));
}

#[test]
fn a_batch_is_cut_to_a_preferred_size_where_that_is_quicker() {
    for (time_of_16, rows) in [(1900, 8), (1100, 9)] {
        let mut batcher =
            Batcher::new(Settings { preferred: vec![1, 8, 16], pad: true, ..Settings::default() });
        for (size, micros) in [(1, 300), (8, 1000), (16, time_of_16)] {
            batcher.teach(Time(0), size, Duration::from_micros(micros));
        }
        for ticket in 0..9 {
            batcher.admit(Time(0), request(ticket)).unwrap();
        }
        let (batch, _) = run(&mut batcher, 0);
        assert_eq!(batch.rows, rows, "8 and 1 take 1300 us, 9 padded to 16 take {time_of_16} us");
    }
}

#[test]
fn a_latency_target_bounds_the_rows_of_a_batch() {
    let target = Duration::from_micros(500);
    let batcher = taught(Settings { latency_target: Some(target), ..Settings::default() });
    let rows = batcher.max_rows_within_target();
    assert!(batcher.estimate(rows).unwrap() <= target && rows > 5, "{rows} rows");
}

#[test]
fn a_crowd_that_has_left_is_soon_not_waited_for() {
    let mut batcher = taught(Settings::default());
    let (mut now, mut ticket) = (0, 0);
    for _ in 0..50 {
        for _ in 0..32 {
            now += 5 * US;
            ticket += 1;
            batcher.admit(Time(now), request(ticket)).unwrap();
        }
        let (batch, at) = run(&mut batcher, now);
        assert_eq!(batch.rows, 32);
        now = at + 794 * US;
        batcher.finished(Time(now), batch.id, true);
        now += 40 * US;
    }
    let mut waits = 0;
    for round in 0..50 {
        ticket += 1;
        batcher.admit(Time(now), request(ticket)).unwrap();
        batcher.quiet(Time(now));
        let (batch, at) = run(&mut batcher, now);
        assert!(at - now < 300 * US, "no wait is longer than what a shared batch saves");
        waits += usize::from(at > now);
        assert!(at == now || round < 10, "a wait in round {round}");
        now = at + 267 * US;
        batcher.finished(Time(now), batch.id, true);
        now += 40 * US;
    }
    assert!(waits > 0, "at first the crowd is expected back");
}

#[test]
fn settings_that_make_no_sense_are_mended() {
    let settings =
        Settings { max_rows: 0, lanes: 0, preferred: vec![9, 0, 9], queue_rows: 0, ..Settings::default() };
    let mut batcher = Batcher::new(settings);
    batcher.admit(Time(0), request(1)).unwrap();
    assert_eq!(run(&mut batcher, 0).0.rows, 1);
}
