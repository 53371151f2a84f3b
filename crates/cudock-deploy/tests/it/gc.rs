//! What is a leftover and what is not.

use cudock_azure::DeploymentState;
use cudock_deploy::{GcScope, Journal};

use crate::support::{OWNER, Recorder, SUBSCRIPTION, Script, ScriptedCloud, deployer, planned_service};

const RUN: &str = "0123456789ab";

fn scope(owner: &str, is_dry_run: bool) -> GcScope<'_> {
    GcScope { subscription: SUBSCRIPTION, owner, is_dry_run }
}

fn running_service(cloud: &ScriptedCloud, journal: &Journal) {
    cloud.set_script(Script { pull: 10, work: 1_000_000, exit_code: 0 });
    deployer(cloud, journal).up_detached(&[planned_service("api", RUN)], &Recorder::default()).unwrap();
}

#[test]
fn a_running_service_is_no_leftover_until_it_expires_by_the_clouds_clock() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    running_service(&cloud, &journal);
    assert!(deployer(&cloud, &journal).gc(&scope(OWNER, false)).unwrap().found.is_empty());
    assert!(!cloud.resources().is_empty());
    cloud.advance(7200);
    let report = deployer(&cloud, &journal).gc(&scope(OWNER, true)).unwrap();
    assert!(report.found.len() == 1 && !report.found[0].deleted, "{report:?}");
    assert!(!cloud.resources().is_empty());
    deployer(&cloud, &journal).gc(&scope(OWNER, false)).unwrap();
    assert_eq!(cloud.resources(), Vec::<String>::new());
}

#[test]
fn groups_that_the_journal_lost_are_found_by_their_tags() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let journal = Journal::open(first.path()).unwrap();
    let cloud = ScriptedCloud::default();
    running_service(&cloud, &journal);
    let lost = Journal::open(second.path()).unwrap();
    // Those of somebody else stay.
    assert!(deployer(&cloud, &lost).gc(&scope("eve@desktop", false)).unwrap().found.is_empty());
    assert!(!cloud.resources().is_empty());
    let report = deployer(&cloud, &lost).gc(&scope(OWNER, false)).unwrap();
    let found = &report.found[0];
    assert_eq!((found.run_id.as_str(), found.in_journal, found.deleted), (RUN, false, true), "{report:?}");
    assert_eq!(cloud.resources(), Vec::<String>::new());
}

#[test]
fn what_another_command_works_on_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    running_service(&cloud, &journal);
    journal.set_state(RUN, DeploymentState::Starting, None).unwrap();
    let lock = journal.lock(RUN).unwrap().unwrap();
    assert!(deployer(&cloud, &journal).gc(&scope(OWNER, false)).unwrap().found.is_empty());
    let busy = deployer(&cloud, &journal).down("api").unwrap_err();
    assert!(busy.to_string().contains("another command"), "{busy}");
    drop(lock);
    assert_eq!(deployer(&cloud, &journal).gc(&scope(OWNER, false)).unwrap().found.len(), 1);
}
