//! The journal file: what is written is read, torn ends are cut off, damage is reported, one process writes.

use std::fs;
use std::path::Path;

use cudock_base::Usd;
use cudock_sweep::journal::parse;
use cudock_sweep::policy::{Bandit, EvaluationSchedule, Slack};
use cudock_sweep::{
    AttemptEnd, Comparison, Decision, Event, Goal, Journal, JournalError, Record, StopReason, SweepEnd,
    SweepLog, SweepPlan, TerminationPolicy, TrialHandle, TrialId,
};
use proptest::prelude::*;

use crate::support::{at, created, ended, plan, record, reported, started, text};

/// One event of each kind, with values that are hard to write.
fn records() -> Vec<Record> {
    let schedule = EvaluationSchedule { interval: 1, delay: 0 };
    let policy = Some(TerminationPolicy::Bandit(Bandit { slack: Slack::Factor(0.1 + 0.2), schedule }));
    let mut plan = SweepPlan { policy, ..plan(9) };
    plan.limits.dollars = "0.000000001".parse().ok();
    let decision = Decision {
        interval: 4,
        goal: Goal::Maximize,
        comparison: Comparison::Rung { value: None, cutoff: 1.0 / 3.0, trials: 3, reduction: 3 },
    };
    let trial = TrialId(0);
    let price_per_hour = Some(Usd::from_micros(3_673_000));
    let events = [
        Event::Created { plan: Box::new(plan), slots: 2, price_per_hour },
        Event::Proposed { trial, parameters: [("x \"\n\u{1f980}".to_owned(), text("\\"))].into() },
        Event::Starting { trial, attempt: 1, slot: 0 },
        Event::Started { trial, attempt: 1, handle: TrialHandle::Container { name: "sweep-0".to_owned() } },
        reported(0, 1, "score", 1, 0.1 + 0.2),
        reported(0, 1, "score", 2, 1e-310),
        reported(0, 1, "score", 3, f64::NEG_INFINITY),
        Event::Reported {
            trial,
            attempt: 1,
            metric: "loss".into(),
            interval: 1,
            step: Some(u64::MAX),
            value: f64::MAX,
        },
        Event::StopDecided { trial, attempt: 1, reason: StopReason::Policy(decision) },
        Event::Ended { trial, attempt: 1, end: AttemptEnd::Lost, ran: std::time::Duration::from_millis(5) },
        Event::Paused,
        Event::Resumed { slots: 1, price_per_hour },
        Event::TrialsAdded { count: 3 },
        Event::Canceled,
        Event::Finished { end: SweepEnd::Budget },
    ];
    (0..).zip(events).map(|(second, event)| record(second, event)).collect()
}

fn bytes() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    drop(Journal::create(&path, &records()).unwrap());
    fs::read(path).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let records = records();
    let mut journal = Journal::create(&path, &records[..1]).unwrap();
    for (index, record) in records.iter().enumerate().skip(1) {
        journal.append(std::slice::from_ref(record), index % 2 == 0).unwrap();
    }
    assert_eq!(Journal::read(&path).unwrap(), records);
    drop(journal);
    assert_eq!(Journal::open(&path).unwrap().1, records);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    for line in fs::read_to_string(&path).unwrap().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    let nan = reported(0, 1, "score", 4, f64::NAN);
    let mut journal = Journal::open(&path).unwrap().0;
    journal.append(&[record(20, nan)], true).unwrap();
    let last = Journal::read(&path).unwrap().pop().unwrap();
    assert!(matches!(last.event, Event::Reported { value, .. } if value.is_nan()));
}

#[test]
fn a_second_process_is_locked_out_and_may_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let log = SweepLog::create(&path, at(0), plan(3), 1, None).unwrap();
    assert!(matches!(SweepLog::open(&path), Err(JournalError::Locked { .. })));
    assert!(matches!(SweepLog::create(&path, at(0), plan(3), 1, None), Err(JournalError::Exists { .. })));
    assert_eq!(Journal::read(&path).unwrap().len(), 1);
    drop(log);
    assert!(SweepLog::open(&path).is_ok());
}

#[test]
fn a_journal_goes_on_after_its_torn_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut log = SweepLog::create(&path, at(0), plan(3), 1, None).unwrap();
    let start = log.sweep().next(at(1)).remove(0);
    log.record(at(1), start.events()).unwrap();
    log.record(at(2), vec![started(0, 1)]).unwrap();
    drop(log);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let mut log = SweepLog::open(&path).unwrap();
    let (_, attempt) = log.sweep().live().next().unwrap();
    assert_eq!(attempt.handle, None);
    log.record(at(3), vec![started(0, 1), reported(0, 1, "score", 1, 0.5), ended(0, 1, 0, 1)]).unwrap();
    drop(log);
    let log = SweepLog::open(&path).unwrap();
    assert_eq!(log.sweep().best().unwrap().result, Some(vec![0.5]));
}

#[test]
fn only_what_a_crash_of_the_machine_must_not_take_is_synced_at_once() {
    let trial = TrialId(0);
    for event in [
        Event::Starting { trial, attempt: 1, slot: 0 },
        Event::StopDecided { trial, attempt: 1, reason: StopReason::User },
    ] {
        assert!(event.needs_sync(true) && !event.needs_sync(false), "{event:?}");
    }
    for event in [started(0, 1), reported(0, 1, "score", 1, 0.5), ended(0, 1, 0, 1)] {
        assert!(!event.needs_sync(true), "{event:?}");
    }
    for event in [Event::Paused, Event::Canceled, Event::TrialsAdded { count: 1 }] {
        assert!(event.needs_sync(false), "{event:?}");
    }
}

#[test]
fn an_event_that_does_not_fit_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut log = SweepLog::create(&path, at(0), plan(3), 1, None).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(log.record(at(1), vec![ended(0, 1, 0, 1)]), Err(JournalError::Event(_))));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_version_and_other_files_are_refused() {
    let path = Path::new("journal");
    let text = String::from_utf8(bytes()).unwrap();
    let line = |record: &str| {
        let (length, checksum) = (record.len(), crc32fast::hash(record.as_bytes()));
        format!("{{\"length\":{length:>8},\"crc32\":\"{checksum:08x}\",\"record\":{record}}}\n")
    };
    let newer = line("{\"journal\":\"cudock-sweep\",\"version\":2}");
    let error = parse(path, newer.as_bytes()).unwrap_err();
    assert!(matches!(error, JournalError::TooNew { version: 2, supported: 1, .. }), "{error}");
    for (other, expected) in [
        (String::new(), "damaged at byte 0: it has no header"),
        ("[workload]\n".to_owned(), "damaged at byte 0: it has no header"),
        (line("{\"journal\":\"other\",\"version\":1}"), "damaged at byte 0: not the journal of a sweep"),
        (text.clone() + &line("{\"at\":5,\"event\":\"unknown\"}"), "unknown variant `unknown`"),
        (text.replacen("\"slot\":0", "\"slot\":1", 1), "a line has a wrong length or checksum"),
    ] {
        let error = parse(path, other.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn a_limit_of_dollars_needs_a_price() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut plan = plan(3);
    plan.limits.dollars = Some(Usd::from_cents(100));
    let error = SweepLog::create(&path, at(0), plan, 1, None).unwrap_err();
    assert!(matches!(error, JournalError::NoPrice), "{error}");
    assert!(!path.exists());
}

proptest! {
    #[test]
    fn a_truncated_journal_is_a_prefix(cut in any::<prop::sample::Index>()) {
        let (bytes, records) = (bytes(), records());
        let cut = cut.index(bytes.len() + 1);
        match parse(Path::new("journal"), &bytes[..cut]) {
            Ok(parsed) => {
                prop_assert_eq!(&parsed.records[..], &records[..parsed.records.len()]);
                prop_assert!(parsed.length <= cut);
                let whole_lines = bytes[..cut].split(|byte| *byte == b'\n').count() - 1;
                prop_assert_eq!(parsed.records.len() + 1, whole_lines);
            }
            Err(error) => prop_assert!(!bytes[..cut].contains(&b'\n'), "{}", error),
        }
    }

    #[test]
    fn changed_bytes_are_cut_off_or_reported_but_never_believed(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let (mut bytes, records) = (bytes(), records());
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        if let Ok(parsed) = parse(Path::new("journal"), &bytes) {
            prop_assert_eq!(&parsed.records[..], &records[..parsed.records.len()]);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(Path::new("journal"), &bytes);
    }
}

#[test]
fn a_created_event_makes_a_sweep() {
    assert!(cudock_sweep::Sweep::replay(&[record(0, created(plan(1), 1))]).is_ok());
    assert!(cudock_sweep::Sweep::replay(&[record(0, Event::Paused)]).is_err());
    assert!(cudock_sweep::Sweep::replay(&[]).is_err());
}
