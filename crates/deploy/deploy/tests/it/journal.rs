//! The journal with several users.

use std::thread;

use cudock_azure::DeploymentState;
use cudock_deploy::{Journal, JournalError, NewDeployment};

use crate::support::{beginning, planned};

fn begin(journal: &Journal, name: &str, run_id: &str) -> Result<(), JournalError> {
    let planned = planned(name, run_id);
    journal.begin(&NewDeployment {
        deployment: &planned.deployment,
        spec: &planned.spec,
        is_attached: true,
        created: beginning(),
        replaces: None,
    })
}

#[test]
fn of_two_commands_with_the_same_name_one_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let results: Vec<Result<(), JournalError>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let path = directory.path();
                scope.spawn(move || {
                    let journal = Journal::open(path)?;
                    begin(&journal, "train", &format!("{number:012x}"))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert!(
        results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .all(|error| matches!(error, JournalError::NameTaken { .. }))
    );
}

#[test]
fn many_commands_write_at_once_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let path = directory.path();
            scope.spawn(move || {
                let journal = Journal::open(path).unwrap();
                for entry in 0..5 {
                    let id = format!("{:012x}", number * 100 + entry);
                    begin(&journal, &id, &id).unwrap();
                }
            });
        }
    });
    assert_eq!(Journal::open(directory.path()).unwrap().all().unwrap().len(), 40);
}

#[test]
fn a_name_is_free_again_when_its_deployment_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    begin(&journal, "train", "aaaaaaaaaaaa").unwrap();
    assert!(matches!(begin(&journal, "train", "bbbbbbbbbbbb"), Err(JournalError::NameTaken { .. })));
    journal.set_state("aaaaaaaaaaaa", DeploymentState::Gone, None).unwrap();
    begin(&journal, "train", "bbbbbbbbbbbb").unwrap();
    assert_eq!(journal.find("train").unwrap().unwrap().run_id, "bbbbbbbbbbbb");
    assert_eq!(journal.find("aaaaaaaaaaaa").unwrap().unwrap().state, DeploymentState::Gone);
}

#[test]
fn a_journal_that_was_cut_off_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    for number in 0..50 {
        let id = format!("{number:012x}");
        begin(&journal, &id, &id).unwrap();
    }
    drop(journal);
    let file = directory.path().join("deployments.db");
    let bytes = std::fs::read(&file).unwrap();
    let _ = std::fs::remove_file(directory.path().join("deployments.db-wal"));
    for (case, damaged) in [
        (
            "overwritten",
            bytes.iter().enumerate().map(|(at, byte)| if at < 4096 { *byte } else { 0x55 }).collect(),
        ),
        ("no header", vec![0x55; bytes.len()]),
    ] {
        let damaged: Vec<u8> = damaged;
        std::fs::write(&file, damaged).unwrap();
        let error = Journal::open(directory.path()).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{case}: {error}");
    }
}
