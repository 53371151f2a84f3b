//! What is a leftover and what is not.

use cudock_azure::DeploymentState;
use cudock_deploy::{GcScope, Journal, Owner};

use crate::support::{
    OWN, OWNER, Recorder, STATE, SUBSCRIPTION, Script, ScriptedCloud, deployer, owner, planned_service,
};

const RUN: &str = "0123456789ab";

fn scope(owner: &Owner, is_dry_run: bool) -> GcScope<'_> {
    GcScope { subscription: SUBSCRIPTION, owner, runs: &[], is_dry_run }
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
    assert!(deployer(&cloud, &journal).gc(&scope(&OWN, false)).unwrap().found.is_empty());
    assert!(!cloud.resources().is_empty());
    cloud.advance(7200);
    let report = deployer(&cloud, &journal).gc(&scope(&OWN, true)).unwrap();
    assert!(report.found.len() == 1 && !report.found[0].deleted, "{report:?}");
    assert!(!cloud.resources().is_empty());
    deployer(&cloud, &journal).gc(&scope(&OWN, false)).unwrap();
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
    let eve = owner("eve@desktop", STATE);
    assert!(deployer(&cloud, &lost).gc(&scope(&eve, false)).unwrap().found.is_empty());
    assert!(!cloud.resources().is_empty());
    let report = deployer(&cloud, &lost).gc(&scope(&OWN, false)).unwrap();
    let found = &report.found[0];
    assert_eq!((found.run_id.as_str(), found.in_journal, found.deleted), (RUN, false, true), "{report:?}");
    assert_eq!(cloud.resources(), Vec::<String>::new());
}

#[test]
fn what_another_state_directory_made_is_listed_and_stays_until_it_is_named_or_expires() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let another = owner(OWNER, "000000000000");
    let named = [RUN.to_owned()];
    for ends in ["named", "expired"] {
        let journal = Journal::open(&first.path().join(ends)).unwrap();
        let cloud = ScriptedCloud::default();
        running_service(&cloud, &journal);
        let other = Journal::open(&second.path().join(ends)).unwrap();
        for is_dry_run in [true, false] {
            let report = deployer(&cloud, &other).gc(&scope(&another, is_dry_run)).unwrap();
            let found = &report.found[0];
            assert!(found.kept && !found.deleted && !report.has_failed(), "{report:?}");
            assert!(found.reason.contains("another state directory of ada@laptop"), "{report:?}");
            assert!(cudock_deploy::text::gc(&report)[0].contains(&format!("cudock gc --run {RUN}")));
        }
        assert!(!cloud.resources().is_empty());
        let runs = if ends == "named" { &named[..] } else { &[] };
        if ends == "expired" {
            cloud.advance(7200);
        }
        let report = deployer(&cloud, &other).gc(&GcScope { runs, ..scope(&another, false) }).unwrap();
        assert!(report.found[0].deleted && !report.found[0].kept, "{ends}: {report:?}");
        assert_eq!(cloud.resources(), Vec::<String>::new(), "{ends}");
    }
}

#[test]
fn only_a_run_that_exists_and_that_the_journal_does_not_know_can_be_named() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    running_service(&cloud, &journal);
    for (run, expected) in [
        (RUN, "the journal knows run"),
        ("ffffffffffff", "no run `ffffffffffff`"),
        ("prod", "is not a run id"),
    ] {
        let runs = [run.to_owned()];
        let error =
            deployer(&cloud, &journal).gc(&GcScope { runs: &runs, ..scope(&OWN, false) }).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(!cloud.resources().is_empty());
}

#[test]
fn what_another_command_works_on_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    running_service(&cloud, &journal);
    journal.set_state(RUN, DeploymentState::Starting, None).unwrap();
    let lock = journal.lock(RUN).unwrap().unwrap();
    assert!(deployer(&cloud, &journal).gc(&scope(&OWN, false)).unwrap().found.is_empty());
    let busy = deployer(&cloud, &journal).down("api").unwrap_err();
    assert!(busy.to_string().contains("another command"), "{busy}");
    drop(lock);
    assert_eq!(deployer(&cloud, &journal).gc(&scope(&OWN, false)).unwrap().found.len(), 1);
}
