//! A full disk.

use cudock_deploy::Journal;
use cudock_testkit::disk::{fill, on_small_disk};

use crate::support::{Recorder, ScriptedCloud, deployer, planned, planned_service};

#[test]
fn on_a_full_disk_nothing_is_started() {
    on_small_disk(256, |disk| {
        let journal = Journal::open(disk).unwrap();
        fill(disk);
        let cloud = ScriptedCloud::default();
        let job = planned("train", "0123456789ab");
        let error = deployer(&cloud, &journal).up_attached(&[job], &Recorder::default()).unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
        assert_eq!(cloud.changes(), 0);
    });
}

#[test]
fn on_a_full_disk_what_exists_is_deleted() {
    on_small_disk(256, |disk| {
        let journal = Journal::open(disk).unwrap();
        let cloud = ScriptedCloud::default();
        let service = planned_service("api", "0123456789ab");
        deployer(&cloud, &journal).up_detached(&[service], &Recorder::default()).unwrap();
        fill(disk);
        let error = deployer(&cloud, &journal).down("api").unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
        assert_eq!(cloud.resources(), Vec::<String>::new());
    });
}
