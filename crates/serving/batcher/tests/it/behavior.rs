//! The rules of the batcher, one at a time.

use std::time::Duration;

use cudock_batcher::{AdmissionError, Arrival, Batch, Batcher, BatcherSettings, LaneAction, Ticket, Time};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn request(ticket: u64) -> Arrival {
    Arrival { ticket: Ticket(ticket), rows: 1, bucket: 0, bytes: 100, priority: 0, deadline: None }
}

/// Asks until there is a batch; returns it and the time.
fn run(batcher: &mut Batcher, mut now: u64) -> (Batch, u64) {
    loop {
        match batcher.next_action(Time(now)) {
            LaneAction::Run(batch) => return (batch, now),
            LaneAction::WaitUntil(until) => now = until.0,
            LaneAction::Idle => panic!("nothing to run"),
        }
    }
}

fn tickets(batch: &Batch) -> Vec<u64> {
    batch.tickets.iter().map(|ticket| ticket.0).collect()
}

/// A batcher that knows that a batch takes 250 µs plus 17 µs per row.
fn trained(settings: BatcherSettings) -> Batcher {
    let mut batcher = Batcher::new(settings);
    for rows in [1, 2, 4, 8, 16, 32, 64, 128] {
        batcher.record_batch_time(Time(0), rows, Duration::from_micros(250 + 17 * rows as u64));
    }
    batcher
}

#[test]
fn a_request_to_an_idle_device_runs_once_the_reads_are_drained() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    batcher.admit(Time(10), request(1)).unwrap();
    assert!(matches!(batcher.next_action(Time(10)), LaneAction::WaitUntil(_)));
    batcher.admit(Time(20), request(2)).unwrap();
    batcher.on_reads_drained(Time(30));
    let LaneAction::Run(batch) = batcher.next_action(Time(30)) else { panic!("the reads are drained") };
    assert_eq!(tickets(&batch), [1, 2]);
    assert_eq!((batch.rows, batch.padded_rows), (2, 2));
}

#[test]
fn reads_that_never_drain_delay_a_batch_by_the_drain_timeout_only() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    assert_eq!(batcher.next_action(Time(0)), LaneAction::WaitUntil(Time(100 * US)));
    assert!(matches!(batcher.next_action(Time(100 * US)), LaneAction::Run(_)));
}

#[test]
fn on_shared_cores_a_batch_waits_for_reads_to_drain_up_to_max_wait() {
    let mut batcher = trained(BatcherSettings { shared_cores: true, ..BatcherSettings::default() });
    batcher.admit(Time(0), request(1)).unwrap();
    assert_eq!(batcher.next_action(Time(0)), LaneAction::WaitUntil(Time(2 * MS)));
    batcher.on_reads_drained(Time(5 * US));
    assert!(matches!(batcher.next_action(Time(5 * US)), LaneAction::Run(_)));
}

#[test]
fn while_the_only_lane_is_busy_nothing_runs() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    let (batch, now) = run(&mut batcher, 0);
    batcher.admit(Time(now), request(2)).unwrap();
    batcher.on_reads_drained(Time(now));
    assert_eq!(batcher.next_action(Time(now)), LaneAction::Idle);
    batcher.on_finished(Time(now + MS), batch.id, true);
    assert_eq!(tickets(&run(&mut batcher, now + MS).0), [2]);
}

#[test]
fn a_second_lane_is_filled_shortly_before_the_device_is_free() {
    let mut batcher = trained(BatcherSettings { lanes: 2, ..BatcherSettings::default() });
    for ticket in 0..32 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    run(&mut batcher, 0);
    batcher.admit(Time(100 * US), request(100)).unwrap();
    let LaneAction::WaitUntil(begin) = batcher.next_action(Time(100 * US)) else {
        panic!("794 us are not over")
    };
    assert!((700 * US..794 * US).contains(&begin.0), "{begin:?}");
    let (batch, _) = run(&mut batcher, begin.0);
    assert_eq!(tickets(&batch), [100]);
}

#[test]
fn a_second_lane_takes_a_full_batch_at_once() {
    let mut batcher = trained(BatcherSettings { lanes: 2, ..BatcherSettings::default() });
    for ticket in 0..64 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    assert_eq!(run(&mut batcher, 0).1, 0);
    assert_eq!(run(&mut batcher, 0).1, 0);
    assert_eq!(batcher.next_action(Time(0)), LaneAction::Idle, "both lanes are taken");
}

#[test]
fn a_request_with_more_rows_than_a_batch_runs_alone() {
    let mut batcher = Batcher::new(BatcherSettings { max_rows: 8, ..BatcherSettings::default() });
    batcher.admit(Time(0), Arrival { rows: 20, ..request(1) }).unwrap();
    batcher.admit(Time(0), request(2)).unwrap();
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!((tickets(&batch), batch.rows), (vec![1], 20));
}

#[test]
fn only_requests_of_one_bucket_share_a_batch_and_the_oldest_selects_it() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    for (ticket, bucket) in [(1, 7), (2, 8), (3, 7), (4, 8), (5, 8)] {
        batcher.admit(Time(ticket), Arrival { bucket, ..request(ticket) }).unwrap();
    }
    let (first, now) = run(&mut batcher, 10);
    assert_eq!((first.bucket, tickets(&first)), (7, vec![1, 3]));
    batcher.on_finished(Time(now + MS), first.id, true);
    let (second, _) = run(&mut batcher, now + MS);
    assert_eq!((second.bucket, tickets(&second)), (8, vec![2, 4, 5]));
}

#[test]
fn urgent_requests_run_first_and_equal_ones_keep_their_order() {
    let mut batcher = Batcher::new(BatcherSettings { max_rows: 2, ..BatcherSettings::default() });
    for (ticket, priority) in [(1, 1), (2, 0), (3, 1), (4, 0)] {
        batcher.admit(Time(ticket), Arrival { priority, ..request(ticket) }).unwrap();
    }
    let (batch, now) = run(&mut batcher, 10);
    assert_eq!(tickets(&batch), [2, 4]);
    batcher.on_finished(Time(now + MS), batch.id, true);
    assert_eq!(tickets(&run(&mut batcher, now + MS).0), [1, 3]);
}

#[test]
fn low_priority_requests_do_not_starve() {
    let max_queue_time = Duration::from_millis(50);
    let mut batcher =
        Batcher::new(BatcherSettings { max_rows: 1, max_queue_time, ..BatcherSettings::default() });
    batcher.admit(Time(0), Arrival { priority: 1, ..request(0) }).unwrap();
    let mut now = 0;
    for ticket in 1..1000 {
        batcher.admit(Time(now), request(ticket)).unwrap();
        batcher.on_reads_drained(Time(now));
        let (batch, at) = run(&mut batcher, now);
        if tickets(&batch) == [0] {
            assert!(at >= 50 * MS, "one level counts as the longest queue time");
            return;
        }
        now = at + MS;
        batcher.on_finished(Time(now), batch.id, true);
    }
    panic!("a request was overtaken 1,000 times");
}

#[test]
fn requests_do_not_run_after_their_deadline() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    let (batch, _) = run(&mut batcher, 0);
    batcher.admit(Time(MS), Arrival { deadline: Some(Time(3 * MS)), ..request(2) }).unwrap();
    batcher.admit(Time(MS), request(3)).unwrap();
    batcher.on_finished(Time(4 * MS), batch.id, true);
    let (batch, _) = run(&mut batcher, 4 * MS);
    assert_eq!(tickets(&batch), [3]);
    let mut expired = Vec::new();
    batcher.take_expired(Time(4 * MS), &mut expired);
    assert_eq!(expired, [Ticket(2)]);
}

#[test]
fn a_deadline_that_cannot_be_met_is_rejected_at_admission() {
    let mut batcher = trained(BatcherSettings::default());
    let in_time = |micros| Arrival { deadline: Some(Time(micros * US)), ..request(micros) };
    assert_eq!(batcher.admit(Time(0), in_time(0)), Err(AdmissionError::DeadlineUnreachable));
    assert_eq!(
        batcher.admit(Time(0), in_time(200)),
        Err(AdmissionError::DeadlineUnreachable),
        "a batch of one takes 267 us"
    );
    batcher.admit(Time(0), in_time(400)).unwrap();
    batcher.on_reads_drained(Time(0));
    run(&mut batcher, 0);
    assert_eq!(
        batcher.admit(Time(0), in_time(500)),
        Err(AdmissionError::DeadlineUnreachable),
        "the running batch takes 267 us"
    );
    batcher.admit(Time(0), in_time(600)).unwrap();
}

#[test]
fn stale_measurements_reject_nothing() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    batcher.record_batch_time(Time(0), 1, Duration::from_secs(1));
    let soon = |now: u64, ticket| Arrival { deadline: Some(Time(now + 100 * MS)), ..request(ticket) };
    assert_eq!(batcher.admit(Time(MS), soon(MS, 1)), Err(AdmissionError::DeadlineUnreachable));
    let later = 5_000 * MS;
    batcher.admit(Time(later), soon(later, 2)).unwrap();
    batcher.on_reads_drained(Time(later));
    assert_eq!(tickets(&run(&mut batcher, later).0), [2]);
}

#[test]
fn a_canceled_request_does_not_run() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    for ticket in 1..=3 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    assert!(batcher.cancel(Ticket(2)));
    assert!(!batcher.cancel(Ticket(2)), "it was canceled already");
    assert_eq!((batcher.queued_requests(), batcher.queued_rows()), (2, 2));
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!(tickets(&batch), [1, 3]);
    assert!(!batcher.cancel(Ticket(1)), "it is running");
}

#[test]
fn a_full_queue_reports_when_it_will_be_empty() {
    let mut batcher = trained(BatcherSettings { max_queued_rows: 320, ..BatcherSettings::default() });
    for ticket in 0..320 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let Err(AdmissionError::QueueFull { retry_after }) = batcher.admit(Time(0), request(1000)) else {
        panic!("320 rows are queued")
    };
    let expected = Duration::from_micros(10 * 794);
    assert!(retry_after > expected * 9 / 10 && retry_after < expected * 11 / 10, "{retry_after:?}");
}

#[test]
fn the_queue_is_bounded_by_bytes() {
    let mut batcher = Batcher::new(BatcherSettings { max_queued_bytes: 250, ..BatcherSettings::default() });
    batcher.admit(Time(0), request(1)).unwrap();
    batcher.admit(Time(0), request(2)).unwrap();
    assert!(matches!(batcher.admit(Time(0), request(3)), Err(AdmissionError::QueueFull { .. })));
}

#[test]
fn requests_without_rows_count_toward_the_limit() {
    let mut batcher = Batcher::new(BatcherSettings { max_queued_rows: 2, ..BatcherSettings::default() });
    for ticket in 1..=2 {
        batcher.admit(Time(0), Arrival { rows: 0, bytes: 0, ..request(ticket) }).unwrap();
    }
    let third = batcher.admit(Time(0), Arrival { rows: 0, bytes: 0, ..request(3) });
    assert!(matches!(third, Err(AdmissionError::QueueFull { .. })));
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!((tickets(&batch), batch.rows), (vec![1, 2], 0));
}

#[test]
fn requests_that_would_wait_too_long_are_rejected_before_the_queue_is_full() {
    let mut batcher =
        trained(BatcherSettings { max_queue_time: Duration::from_millis(5), ..BatcherSettings::default() });
    let admitted = (0..4000).filter(|&ticket| batcher.admit(Time(0), request(ticket)).is_ok()).count();
    assert!((180..230).contains(&admitted), "5 ms are six batches of 32, and {admitted} were admitted");
}

#[test]
fn a_hanging_engine_makes_the_expected_wait_grow() {
    let mut batcher =
        trained(BatcherSettings { max_queue_time: Duration::from_millis(100), ..BatcherSettings::default() });
    batcher.admit(Time(0), request(1)).unwrap();
    run(&mut batcher, 0);
    batcher.admit(Time(50 * MS), request(2)).unwrap();
    assert!(matches!(batcher.admit(Time(500 * MS), request(3)), Err(AdmissionError::QueueFull { .. })));
}

#[test]
fn requests_of_a_dead_engine_run_first_and_isolated() {
    let mut batcher = trained(BatcherSettings { lanes: 2, ..BatcherSettings::default() });
    for ticket in 1..=3 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let (batch, _) = run(&mut batcher, 0);
    batcher.admit(Time(1), request(4)).unwrap();
    batcher.on_finished(Time(MS), batch.id, false);
    for ticket in 1..=3 {
        batcher.retry_alone(Time(MS), request(ticket));
    }
    for ticket in 1..=3 {
        let (batch, _) = run(&mut batcher, ticket * 2 * MS);
        assert_eq!(tickets(&batch), [ticket]);
        assert!(
            matches!(batcher.next_action(Time(ticket * 2 * MS)), LaneAction::WaitUntil(_)),
            "nothing runs at the same time"
        );
        batcher.on_finished(Time(ticket * 2 * MS + MS), batch.id, true);
    }
    assert_eq!(tickets(&run(&mut batcher, 8 * MS).0), [4]);
}

#[test]
fn requests_that_run_again_together_run_first_and_without_others() {
    let mut batcher = trained(BatcherSettings::default());
    for ticket in 1..=3 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let (batch, _) = run(&mut batcher, 0);
    batcher.admit(Time(1), request(4)).unwrap();
    batcher.on_finished(Time(MS), batch.id, false);
    for ticket in 1..=3 {
        batcher.retry_together(Time(0), Arrival { bucket: 9, ..request(ticket) });
    }
    let (again, _) = run(&mut batcher, 2 * MS);
    assert_eq!(tickets(&again), [1, 2, 3]);
    batcher.on_finished(Time(3 * MS), again.id, true);
    assert_eq!(tickets(&run(&mut batcher, 4 * MS).0), [4]);
}

#[test]
fn a_report_from_an_abandoned_engine_is_ignored() {
    let mut batcher = Batcher::new(BatcherSettings::default());
    batcher.admit(Time(0), request(1)).unwrap();
    let (batch, _) = run(&mut batcher, 0);
    batcher.on_finished(Time(MS), batch.id, false);
    batcher.on_finished(Time(2 * MS), batch.id, true);
    assert_eq!(batcher.estimate(1), None, "a failed batch teaches nothing");
    batcher.admit(Time(2 * MS), request(2)).unwrap();
    assert_eq!(tickets(&run(&mut batcher, 2 * MS).0), [2], "the lane is free");
}

#[test]
fn batches_are_padded_to_the_next_preferred_size() {
    let preferred_rows = vec![16, 4, 8];
    let mut batcher =
        Batcher::new(BatcherSettings { preferred_rows, pad: true, ..BatcherSettings::default() });
    for ticket in 0..5 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    let (batch, _) = run(&mut batcher, 0);
    assert_eq!((batch.rows, batch.padded_rows), (5, 8));
}

#[test]
fn a_batch_is_cut_to_a_preferred_size_if_that_is_faster() {
    for (time_of_16, rows) in [(1900, 8), (1100, 9)] {
        let mut batcher = Batcher::new(BatcherSettings {
            preferred_rows: vec![1, 8, 16],
            pad: true,
            ..BatcherSettings::default()
        });
        for (size, micros) in [(1, 300), (8, 1000), (16, time_of_16)] {
            batcher.record_batch_time(Time(0), size, Duration::from_micros(micros));
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
    let mut batcher =
        Batcher::new(BatcherSettings { latency_target: Some(target), ..BatcherSettings::default() });
    for ticket in 0..32 {
        batcher.admit(Time(0), request(ticket)).unwrap();
    }
    for rows in [1, 32] {
        batcher.record_batch_time(Time(0), rows, Duration::from_micros(250 + 17 * rows as u64));
    }
    let (batch, _) = run(&mut batcher, 0);
    assert!(batcher.estimate(batch.rows).unwrap() <= target && batch.rows > 5, "{} rows", batch.rows);
}

#[test]
fn clients_that_have_left_are_soon_no_longer_waited_for() {
    let mut batcher = trained(BatcherSettings::default());
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
        batcher.on_finished(Time(now), batch.id, true);
        now += 40 * US;
    }
    let mut waits = 0;
    for round in 0..50 {
        ticket += 1;
        batcher.admit(Time(now), request(ticket)).unwrap();
        batcher.on_reads_drained(Time(now));
        let (batch, at) = run(&mut batcher, now);
        assert!(at - now < 300 * US, "no wait is longer than what a shared batch saves");
        waits += usize::from(at > now);
        assert!(at == now || round < 10, "a wait in round {round}");
        now = at + 267 * US;
        batcher.on_finished(Time(now), batch.id, true);
        now += 40 * US;
    }
    assert!(waits > 0, "at first the clients are expected back");
}

#[test]
fn invalid_settings_are_corrected() {
    let settings = BatcherSettings {
        max_rows: 0,
        lanes: 0,
        preferred_rows: vec![9, 0, 9],
        max_queued_rows: 0,
        ..BatcherSettings::default()
    };
    let mut batcher = Batcher::new(settings);
    batcher.admit(Time(0), request(1)).unwrap();
    assert_eq!(run(&mut batcher, 0).0.rows, 1);
}

#[test]
fn a_bucket_that_does_not_fit_into_memory_gets_smaller_batches_and_others_do_not() {
    let mut batcher = Batcher::new(BatcherSettings { max_rows: 32, lanes: 4, ..BatcherSettings::default() });
    assert!(batcher.limit_rows(7, 8) && !batcher.limit_rows(7, 8) && !batcher.limit_rows(7, 16));
    assert_eq!(
        (batcher.row_limit(7), batcher.row_limit(8), batcher.lowest_row_limit()),
        (Some(8), None, Some(8))
    );
    for ticket in 0..12 {
        batcher.admit(Time(ticket), Arrival { bucket: 7, ..request(ticket) }).unwrap();
    }
    for ticket in 12..24 {
        batcher.admit(Time(ticket), Arrival { bucket: 8, ..request(ticket) }).unwrap();
    }
    let mut now = 30;
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let (batch, at) = run(&mut batcher, now);
        now = at;
        sizes.push((batch.bucket, batch.rows));
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [(7, 4), (7, 8), (8, 12)]);
}

#[test]
fn a_limited_bucket_uses_the_next_smaller_preferred_size() {
    let settings = BatcherSettings {
        max_rows: 32,
        preferred_rows: vec![1, 8, 32],
        pad: true,
        ..BatcherSettings::default()
    };
    let mut batcher = trained(settings);
    let part = batcher.part_rows(32);
    assert_eq!((part, batcher.part_rows(8), batcher.part_rows(1)), (8, 1, 1));
    assert!(batcher.limit_rows(0, part));
    for ticket in 0..12 {
        batcher.admit(Time(ticket), request(ticket)).unwrap();
    }
    let (batch, now) = run(&mut batcher, 20);
    assert_eq!((batch.rows, batch.padded_rows), (8, 8));
    batcher.on_finished(Time(now + MS), batch.id, true);
    let (batch, _) = run(&mut batcher, now + MS);
    assert_eq!((batch.rows, batch.padded_rows), (4, 8), "padding stays within the limit");
    assert_eq!((batcher.padded_within(5, 8), batcher.padded_within(5, 6)), (8, 5));
}

#[test]
fn a_full_batch_of_a_limited_bucket_does_not_wait() {
    let mut batcher = trained(BatcherSettings { shared_cores: true, ..BatcherSettings::default() });
    batcher.limit_rows(0, 2);
    batcher.admit(Time(0), request(1)).unwrap();
    assert!(matches!(batcher.next_action(Time(0)), LaneAction::WaitUntil(_)));
    batcher.admit(Time(0), request(2)).unwrap();
    assert!(matches!(batcher.next_action(Time(0)), LaneAction::Run(batch) if batch.rows == 2));
}

#[test]
fn after_a_crash_batches_have_one_request_and_twice_as_many_every_two_seconds() {
    const SECOND: u64 = 1_000 * MS;
    let settings = BatcherSettings { max_queue_time: Duration::MAX, ..BatcherSettings::default() };
    let mut batcher = Batcher::new(settings);
    (0..100).for_each(|ticket| batcher.admit(Time(0), request(ticket)).unwrap());
    batcher.be_careful(Time(SECOND));
    let sizes = [1, 3, 5, 7, 9, 11].map(|second| {
        let now = Time(second * SECOND);
        let LaneAction::Run(batch) = batcher.next_action(now) else { panic!("it waits") };
        batcher.on_finished(now, batch.id, true);
        batch.tickets.len()
    });
    assert_eq!(sizes, [1, 2, 4, 8, 16, 32]);
}
