//! A full disk.

use std::path::Path;

use cudock_deploy::Journal;
use nix::mount::{MsFlags, mount, umount};

use crate::support::{Recorder, ScriptedCloud, deployer, planned, planned_service};

/// Runs a test on a small disk of its own.
#[track_caller]
fn on_small_disk(test: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let options = Some("size=256k,mode=700");
    if let Err(error) = mount(Some("none"), directory.path(), Some("tmpfs"), MsFlags::empty(), options) {
        cudock_testkit::missing("root", format_args!("cannot mount a tmpfs: {error}"));
        return;
    }
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(directory.path())));
    umount(directory.path()).unwrap();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Makes it as full as it gets.
fn fill(disk: &Path) {
    let mut filler = vec![0_u8; 1 << 20];
    while !filler.is_empty() && std::fs::write(disk.join("filler"), &filler).is_err() {
        filler.truncate(filler.len() / 2);
    }
    for number in 0..200 {
        let _ = std::fs::write(disk.join(format!("filler-{number}")), [0_u8; 4096]);
    }
}

#[test]
fn on_a_full_disk_nothing_is_started() {
    on_small_disk(|disk| {
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
    on_small_disk(|disk| {
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
