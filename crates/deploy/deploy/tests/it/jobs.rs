//! Jobs: exit code, output, bill, give-up, eviction, resume.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cudock_azure::{BlobContainer, Checkpoints, DeploymentState, Phase};
use cudock_base::Timestamp;
use cudock_deploy::{DeployError, Deployer, Journal, PhaseLimits, Resumed};

use crate::support::{
    Fault, Recorder, Script, ScriptedCloud, deployer, planned, planned_service, planned_spot,
};

const RUN: &str = "0123456789ab";

#[test]
fn a_job_ends_with_its_exit_code_its_output_and_its_bill() {
    for exit_code in [0, 1, 137] {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let cloud = ScriptedCloud::default();
        cloud.set_script(Script { pull: 30, work: 1000, exit_code });
        let recorder = Recorder::default();
        let ended = deployer(&cloud, &journal).up_attached(&[planned("train", RUN)], &recorder).unwrap();
        assert_eq!(ended.exit_code, exit_code);
        assert!(recorder.output.lock().unwrap().contains("loss 0.1"));
        assert_eq!(cloud.resources(), Vec::<String>::new());
        let record = journal.run(RUN).unwrap().unwrap();
        assert_eq!((record.state, record.exit_code), (DeploymentState::Gone, Some(exit_code)));
        // From the start of the container to its end by the service's clock, whenever that was seen.
        let (from, until) = (record.billed.from.unwrap(), record.billed.until.unwrap());
        assert_eq!(until.since(from), Duration::from_secs(1000));
    }
}

#[test]
fn phases_are_kept_with_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    deployer(&cloud, &journal).up_attached(&[planned("train", RUN)], &Recorder::default()).unwrap();
    let phases = journal.phases(RUN).unwrap();
    let names: Vec<Phase> = phases.iter().map(|entry| entry.phase).collect();
    assert_eq!(names, [Phase::Create, Phase::Pull, Phase::Work, Phase::Delete]);
    assert!(phases.iter().all(|entry| entry.ended.is_some_and(|end| end >= entry.began)));
    let billed: Vec<bool> = phases.iter().map(|entry| entry.is_billed).collect();
    assert!(!billed[1] && billed[2], "{billed:?}");
}

#[test]
fn a_phase_that_takes_too_long_is_given_up_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 100_000, work: 1, exit_code: 0 });
    let limit = Duration::from_secs(300);
    let limits = PhaseLimits { pull: limit, start: Duration::from_secs(1200) };
    let impatient = Deployer { limits, ..deployer(&cloud, &journal) };
    let error = impatient.up_attached(&[planned("train", RUN)], &Recorder::default()).unwrap_err();
    assert!(
        matches!(&error, DeployError::GaveUp { phase: Phase::Pull, limit: after, .. } if *after == limit),
        "{error}"
    );
    assert_eq!(cloud.resources(), Vec::<String>::new());
}

#[test]
fn a_placement_without_capacity_is_followed_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    // The first deployment's second step is the one that is billed.
    let cloud = ScriptedCloud::with_fault(1, Fault::NoCapacity);
    let recorder = Recorder::default();
    let placements = [planned("train", RUN), planned("train", "aaaaaaaaaaaa")];
    let ended = deployer(&cloud, &journal).up_attached(&placements, &recorder).unwrap();
    assert_eq!(ended.record.run_id, "aaaaaaaaaaaa");
    assert_eq!(recorder.next.lock().unwrap().len(), 1);
    assert_eq!(cloud.resources(), Vec::<String>::new());
    // Without another placement, the error is that of the cloud.
    let cloud = ScriptedCloud::with_fault(1, Fault::NoCapacity);
    let error =
        deployer(&cloud, &journal).up_attached(&[planned("other", "bbbbbbbbbbbb")], &recorder).unwrap_err();
    assert!(matches!(error, DeployError::Cloud { .. }), "{error}");
}

#[test]
fn an_evicted_job_begins_again_in_the_next_placement_and_its_lost_work_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.evict(RUN, 300);
    let recorder = Recorder::default();
    let placements = [planned_spot("train", RUN), planned_spot("train", "aaaaaaaaaaaa")];
    let ended = deployer(&cloud, &journal).up_attached(&placements, &recorder).unwrap();
    assert_eq!((ended.exit_code, ended.record.run_id.as_str()), (0, "aaaaaaaaaaaa"));
    assert_eq!(ended.record.replaces.as_deref(), Some(RUN));
    assert_eq!(ended.lost, Duration::from_secs(300));
    assert_eq!(journal.run(RUN).unwrap().unwrap().lost, Duration::from_secs(300));
    assert_eq!(*recorder.next.lock().unwrap(), ["`train` was evicted"]);
    assert_eq!(cloud.resources(), Vec::<String>::new());
    // Without another placement, the eviction is an error, and nothing stays.
    let cloud = ScriptedCloud::default();
    cloud.evict("bbbbbbbbbbbb", 300);
    let error = deployer(&cloud, &journal)
        .up_attached(&[planned_spot("other", "bbbbbbbbbbbb")], &recorder)
        .unwrap_err();
    assert!(matches!(error, DeployError::Evicted { .. }), "{error}");
    assert_eq!(cloud.resources(), Vec::<String>::new());
}

#[test]
fn only_the_work_after_the_last_checkpoint_is_lost() {
    let url = format!("https://lab.blob.core.windows.net/runs?{}=x", "sig");
    let storage = Some(BlobContainer::parse("CUDOCK_CHECKPOINTS", &url).unwrap());
    let checkpoints = Some(Checkpoints { directory: "/checkpoints".to_owned(), storage });
    let spot = |run| {
        let mut planned = planned_spot("train", run);
        planned.spec.checkpoints.clone_from(&checkpoints);
        planned
    };
    let kept = "<Last-Modified>Thu, 01 May 2031 12:03:20 GMT</Last-Modified>";
    let earlier = "<Last-Modified>Wed, 30 Apr 2031 12:03:20 GMT</Last-Modified>";
    for (blobs, has_kept) in
        [(Some(kept), true), (Some(earlier), false), (Some("<Blobs/>"), false), (None, false)]
    {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let cloud = ScriptedCloud::default();
        cloud.evict(RUN, 300);
        *cloud.blobs.lock().unwrap() = blobs.map(str::to_owned);
        let placements = [spot(RUN), spot("aaaaaaaaaaaa")];
        let ended = deployer(&cloud, &journal).up_attached(&placements, &Recorder::default()).unwrap();
        let billed = journal.run(RUN).unwrap().unwrap().billed;
        let since = if has_kept { Timestamp::parse("2031-05-01T12:03:20Z") } else { billed.from };
        assert_eq!(ended.lost, billed.until.unwrap().since(since.unwrap()), "{blobs:?}");
        assert_eq!(ended.lost < Duration::from_secs(300), has_kept, "{blobs:?}");
    }
}

#[test]
fn a_job_whose_command_died_is_resumed() {
    for (request, fault) in [(0, Fault::KilledAfter), (1, Fault::KilledBefore), (1, Fault::KilledAfter)] {
        let directory = tempfile::tempdir().unwrap();
        let cloud = ScriptedCloud::with_fault(request, fault);
        let died = catch_unwind(AssertUnwindSafe(|| {
            let journal = Journal::open(directory.path()).unwrap();
            deployer(&cloud, &journal).up_attached(&[planned("train", RUN)], &Recorder::default()).map(|_| ())
        }));
        assert!(died.is_err());
        let journal = Journal::open(directory.path()).unwrap();
        let recorder = Recorder::default();
        let resumed = deployer(&cloud, &journal).resume("train", &recorder).unwrap();
        let Resumed::Ended(ended) = resumed else { panic!("{resumed:?}") };
        assert_eq!(ended.exit_code, 0, "{request} {fault:?}");
        assert!(recorder.output.lock().unwrap().contains("loss 0.1"));
        assert_eq!(cloud.resources(), Vec::<String>::new());
    }
}

#[test]
fn a_detached_service_stays_until_it_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    cloud.set_script(Script { pull: 10, work: 1_000_000, exit_code: 0 });
    let recorder = Recorder::default();
    let record = deployer(&cloud, &journal).up_detached(&[planned_service("api", RUN)], &recorder).unwrap();
    assert_eq!(record.state, DeploymentState::Running);
    assert_eq!(*recorder.running.lock().unwrap(), ["api"]);
    assert!(!cloud.resources().is_empty());
    let before = cloud.resources();
    cloud.advance(500);
    let deleted = deployer(&cloud, &journal).down("api").unwrap();
    assert!(!before.is_empty() && cloud.resources().is_empty());
    assert_eq!(deleted.state, DeploymentState::Gone);
    // The deletion ends the bill, as the activity log has it.
    assert!(deleted.billed.until.unwrap().since(deleted.billed.from.unwrap()) >= Duration::from_secs(500));
}

#[test]
fn a_job_that_is_deleted_meanwhile_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    let deployer = deployer(&cloud, &journal);
    let deleting = Deployer {
        on_progress: &|progress| {
            if progress.phase == Phase::Work {
                cloud.delete_groups();
            }
        },
        ..deployer
    };
    let error = deleting.up_attached(&[planned("train", RUN)], &Recorder::default()).unwrap_err();
    assert!(matches!(error, DeployError::Vanished { .. }), "{error}");
    assert_eq!(journal.run(RUN).unwrap().unwrap().state, DeploymentState::Gone);
}

#[test]
fn a_name_that_is_unknown_has_a_suggestion() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let cloud = ScriptedCloud::default();
    deployer(&cloud, &journal).up_attached(&[planned("train", RUN)], &Recorder::default()).unwrap();
    let unknown = deployer(&cloud, &journal).down("tran").unwrap_err();
    assert!(matches!(&unknown, DeployError::Unknown { near, .. } if *near == ["train"]), "{unknown}");
}
