//! Disks that are soon full.

use std::fs::{self, File};
use std::path::Path;

use nix::mount::{MsFlags, mount, umount};

/// Runs a test on a disk of its own with this number of KiB.
#[track_caller]
pub fn on_small_disk(kibibytes: u64, test: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let options = format!("size={kibibytes}k,mode=700");
    let options = Some(options.as_str());
    if let Err(error) = mount(Some("none"), directory.path(), Some("tmpfs"), MsFlags::empty(), options) {
        crate::missing("root", format_args!("cannot mount a tmpfs: {error}"));
        return;
    }
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(directory.path())));
    umount(directory.path()).unwrap();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Fills a disk of [`on_small_disk`], and returns the file that takes all of its room.
pub fn fill(disk: &Path) -> File {
    let path = disk.join("filler");
    fs::write(&path, vec![0; 64 << 20]).unwrap_err();
    File::options().write(true).open(path).unwrap()
}
