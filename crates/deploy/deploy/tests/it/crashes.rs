//! The command dies, fails or is interrupted at every request in turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudock_azure::DeploymentState;
use cudock_deploy::{DeployError, GcScope, Journal, StepRole, StepState};

use crate::support::{Fault, OWN, Recorder, SUBSCRIPTION, ScriptedCloud, deployer, planned};

const RUN: &str = "0123456789ab";

fn scope() -> GcScope<'static> {
    GcScope { subscription: SUBSCRIPTION, owner: &OWN, runs: &[], is_dry_run: false }
}

/// The number of requests that change something in a whole job.
fn requests() -> usize {
    let planned = planned("train", RUN);
    planned.deployment.steps.len() + planned.deployment.cleanup.len()
}

#[test]
fn every_request_is_in_the_journal_before_it_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    let other = Arc::new(Journal::open(directory.path()).unwrap());
    let checked = Arc::clone(&other);
    *cloud.before.lock().unwrap() = Some(Box::new(move |step| {
        let record = checked.run(RUN).unwrap().expect("the deployment is in the journal");
        assert!(!checked.cleanup(&record.run_id).unwrap().is_empty());
        let role = if step.call.method == "DELETE" { StepRole::Cleanup } else { StepRole::Create };
        let entry = checked.steps(RUN, role).unwrap().into_iter().find(|entry| entry.step.id == step.id);
        assert_eq!(entry.unwrap().state, StepState::Intended, "{}", step.id);
    }));
    let ended =
        deployer(&cloud, &journal).up_attached(&[planned("train", RUN)], &Recorder::default()).unwrap();
    assert_eq!(ended.exit_code, 0);
    assert_eq!(cloud.changes(), requests());
}

#[test]
fn after_a_crash_at_any_request_gc_leaves_nothing_behind() {
    for fault in [Fault::KilledBefore, Fault::KilledAfter] {
        for request in 0..requests() {
            let directory = tempfile::tempdir().unwrap();
            let cloud = ScriptedCloud::with_fault(request, fault);
            let died = catch_unwind(AssertUnwindSafe(|| {
                let journal = Journal::open(directory.path()).unwrap();
                deployer(&cloud, &journal)
                    .up_attached(&[planned("train", RUN)], &Recorder::default())
                    .map(|_| ())
            }));
            assert!(died.is_err(), "{fault:?} {request}");
            let journal = Journal::open(directory.path()).unwrap();
            assert_eq!(journal.existing().unwrap().len(), 1, "{fault:?} {request}");
            assert!(!journal.cleanup(RUN).unwrap().is_empty());
            let report = deployer(&cloud, &journal).gc(&scope()).unwrap();
            assert!(!report.has_failed() && report.found.len() == 1, "{fault:?} {request}: {report:?}");
            assert_eq!(cloud.resources(), Vec::<String>::new(), "{fault:?} {request}");
            assert!(journal.existing().unwrap().is_empty(), "{fault:?} {request}");
            // There is nothing left for another one.
            assert!(deployer(&cloud, &journal).gc(&scope()).unwrap().found.is_empty());
        }
    }
}

#[test]
fn a_request_that_fails_deletes_what_was_created() {
    let planned = planned("train", RUN);
    for request in 0..planned.deployment.steps.len() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let cloud = ScriptedCloud::with_fault(request, Fault::Refused);
        let error = deployer(&cloud, &journal)
            .up_attached(std::slice::from_ref(&planned), &Recorder::default())
            .unwrap_err();
        assert!(matches!(error, DeployError::Cloud { .. }), "{error}");
        assert_eq!(cloud.resources(), Vec::<String>::new(), "{request}");
        assert_eq!(journal.run(RUN).unwrap().unwrap().state, DeploymentState::Gone);
    }
}

#[test]
fn an_interrupt_deletes_what_was_created() {
    let planned = planned("train", RUN);
    for request in 0..planned.deployment.steps.len() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let cloud = ScriptedCloud::with_fault(request, Fault::Interrupted);
        let error = deployer(&cloud, &journal)
            .up_attached(std::slice::from_ref(&planned), &Recorder::default())
            .unwrap_err();
        assert!(matches!(error, DeployError::Interrupted), "{error}");
        assert_eq!(cloud.resources(), Vec::<String>::new(), "{request}");
        assert_eq!(journal.run(RUN).unwrap().unwrap().state, DeploymentState::Gone);
    }
}

#[test]
fn a_deletion_that_fails_is_reported_and_repeated() {
    let planned = planned("train", RUN);
    let first_deletion = planned.deployment.steps.len();
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::with_fault(first_deletion, Fault::Refused);
    let error = deployer(&cloud, &journal).up_attached(&[planned], &Recorder::default()).unwrap_err();
    assert!(error.to_string().contains("cannot delete"), "{error}");
    assert_eq!(journal.run(RUN).unwrap().unwrap().state, DeploymentState::Deleting);
    assert!(!cloud.resources().is_empty());
    // The part that makes the cloud delete the rest by itself stays.
    assert!(cloud.resources().iter().any(|id| id.ends_with("-reaper")));
    deployer(&cloud, &journal).down("train").unwrap();
    assert_eq!(cloud.resources(), Vec::<String>::new());
    assert_eq!(journal.run(RUN).unwrap().unwrap().state, DeploymentState::Gone);
}
