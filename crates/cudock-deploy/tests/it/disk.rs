//! A full disk.

use cudock_deploy::Journal;
use nix::mount::{MsFlags, mount, umount};

use crate::support::{Recorder, ScriptedCloud, deployer, planned};

#[test]
fn on_a_full_disk_nothing_is_started() {
    let directory = tempfile::tempdir().unwrap();
    let options = Some("size=256k,mode=700");
    if let Err(error) = mount(Some("none"), directory.path(), Some("tmpfs"), MsFlags::empty(), options) {
        cudock_testkit::missing("root", format_args!("cannot mount a tmpfs: {error}"));
        return;
    }
    let journal = Journal::open(directory.path()).unwrap();
    let mut filler = vec![0_u8; 1 << 20];
    // The disk is as full as it gets.
    while !filler.is_empty() && std::fs::write(directory.path().join("filler"), &filler).is_err() {
        filler.truncate(filler.len() / 2);
    }
    for number in 0..200 {
        let _ = std::fs::write(directory.path().join(format!("filler-{number}")), [0_u8; 4096]);
    }
    let cloud = ScriptedCloud::default();
    let error = deployer(&cloud, &journal)
        .up_attached(&[planned("train", "0123456789ab")], &Recorder::default())
        .unwrap_err();
    let changes = cloud.changes();
    drop(journal);
    umount(directory.path()).unwrap();
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(changes, 0);
}
