//! Copies the image's files at the mount points into empty volumes, as docker does.
//!
//! A start can be interrupted at any moment. So the files are copied to a directory next to the
//! volume's, which gets its final name once it is complete; then they are moved. The next start
//! removes incomplete directories, and continues moving complete ones. The volume's own directory
//! stays the same, since a container that runs already may have mounted it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, RenameFlags, fstat, renameat_with};
use rustix::io::Errno;

use crate::container::config::MountConfig;
use crate::error::{OnError, RuntimeError};
use crate::files::in_root::InRoot;
use crate::files::remove::remove_tree;
use crate::files::tree::{CopyOptions, TreeCopy};

const FILLING: &str = "filling";
const FILLED: &str = "filled";

/// How long another container may take to fill a volume until we look again.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Fills the volumes of a container whose root is mounted. Fails with [`io::ErrorKind::Interrupted`] as soon as `interrupted`.
pub(crate) fn fill(
    rootfs: &Path,
    mounts: &[MountConfig],
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<(), RuntimeError> {
    for mount in mounts {
        if let MountConfig::Volume { source, target, copy, .. } = mount
            && let Some(volume) = source.parent()
        {
            let image = copy.then_some((rootfs, target.as_path()));
            fill_one(volume, source, image, interrupted).on("cannot fill the volume", source)?;
        }
    }
    Ok(())
}

/// Removes what an interrupted start has copied, unless a start is copying it now.
pub(crate) fn remove_unfinished(volume: &Path) {
    let locked = File::open(volume).is_ok_and(|directory| directory.try_lock().is_err());
    if !locked {
        // The next start reports the error if it cannot be removed.
        let _ = remove_tree(&volume.join(FILLING));
    }
}

fn fill_one(
    volume: &Path,
    data: &Path,
    image: Option<(&Path, &Path)>,
    interrupted: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let _lock = lock(volume, interrupted)?;
    let (filling, filled) = (volume.join(FILLING), volume.join(FILLED));
    remove_tree(&filling)?;
    if !filled.exists() {
        let is_empty = fs::read_dir(data)?.next().is_none();
        let Some(original) = image.filter(|_| is_empty).and_then(directory_in) else {
            return Ok(());
        };
        if let Err(error) = copy(&original, &filling, interrupted) {
            // On a full disk it must not stay full. The first error is the one to report.
            let _ = remove_tree(&filling);
            return Err(error);
        }
        fs::rename(&filling, &filled)?;
    }
    move_entries(&filled, data)
}

/// Two containers that start at once must not both fill it.
fn lock(volume: &Path, interrupted: &mut dyn FnMut() -> bool) -> io::Result<File> {
    let directory = File::open(volume)?;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) if interrupted() => return Err(io::ErrorKind::Interrupted.into()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// A directory of the image.
fn directory_in((rootfs, path): (&Path, &Path)) -> Option<OwnedFd> {
    let found = InRoot::open(rootfs).ok()?.open_path(path).ok()?;
    let kind = FileType::from_raw_mode(fstat(&found).ok()?.st_mode);
    (kind == FileType::Directory).then_some(found)
}

fn copy(original: &OwnedFd, to: &Path, interrupted: &mut dyn FnMut() -> bool) -> io::Result<()> {
    fs::create_dir(to)?;
    let made = File::open(to)?;
    let mut copy = TreeCopy::new(CopyOptions { owners: true, special_bits: true }, interrupted);
    copy.contents(original.as_fd(), made.as_fd())?;
    copy.attributes(&fstat(original)?, made.as_fd())
}

/// Moves all entries into the volume, with the attributes of their directory, which is removed at the end.
fn move_entries(filled: &Path, data: &Path) -> io::Result<()> {
    let attributes = fstat(File::open(filled)?)?;
    let entries: Vec<_> = fs::read_dir(filled)?.collect::<io::Result<_>>()?;
    for entry in entries {
        match renameat_with(CWD, entry.path(), CWD, data.join(entry.file_name()), RenameFlags::NOREPLACE) {
            Ok(()) => {}
            // A container that runs already has made one of this name.
            Err(Errno::EXIST) => remove_tree(&entry.path())?,
            Err(error) => return Err(error.into()),
        }
    }
    let mut never = || false;
    let copy = TreeCopy::new(CopyOptions { owners: true, special_bits: true }, &mut never);
    copy.attributes(&attributes, File::open(data)?.as_fd())?;
    remove_tree(filled)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// An image with a directory of a few files, and an empty volume.
    struct Case {
        directory: tempfile::TempDir,
    }

    impl Case {
        fn new() -> Self {
            let case = Self { directory: tempfile::tempdir().unwrap() };
            fs::create_dir_all(case.at("rootfs/srv/sub")).unwrap();
            for number in 0..5 {
                fs::write(case.at(&format!("rootfs/srv/{number}")), number.to_string()).unwrap();
            }
            fs::set_permissions(case.at("rootfs/srv"), fs::Permissions::from_mode(0o1755)).unwrap();
            fs::create_dir_all(case.at("volume/data")).unwrap();
            case
        }

        fn at(&self, path: &str) -> std::path::PathBuf {
            self.directory.path().join(path)
        }

        fn fill(&self, copy: bool, interrupted: &mut dyn FnMut() -> bool) -> Result<(), RuntimeError> {
            let mount = MountConfig::Volume {
                name: "volume".to_owned(),
                source: self.at("volume/data"),
                target: "/srv".into(),
                read_only: false,
                copy,
            };
            fill(&self.at("rootfs"), &[mount], interrupted)
        }

        fn names(&self, path: &str) -> Vec<String> {
            let entries = fs::read_dir(self.at(path)).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    const WHOLE: [&str; 6] = ["0", "1", "2", "3", "4", "sub"];

    #[test]
    fn a_fill_that_is_interrupted_anywhere_leaves_nothing_and_the_next_one_is_whole() {
        for moment in 0.. {
            let case = Case::new();
            let mut looks = 0;
            let outcome = case.fill(true, &mut || {
                looks += 1;
                looks > moment
            });
            if outcome.is_ok() {
                assert!(moment > 5, "it was never interrupted");
                return;
            }
            assert!(
                matches!(outcome, Err(RuntimeError::File { source, .. }) if source.kind() == io::ErrorKind::Interrupted)
            );
            assert_eq!(case.names("volume"), ["data"], "after {moment} looks");
            assert_eq!(case.names("volume/data"), [""; 0]);
            case.fill(true, &mut || false).unwrap();
            assert_eq!(case.names("volume/data"), WHOLE);
        }
    }

    #[test]
    fn what_a_killed_start_left_is_removed_or_completed() {
        // Killed while it copied.
        let case = Case::new();
        fs::create_dir(case.at("volume/filling")).unwrap();
        fs::write(case.at("volume/filling/0"), "half").unwrap();
        case.fill(true, &mut || false).unwrap();
        assert_eq!(
            (case.names("volume"), case.names("volume/data")),
            (vec!["data".to_owned()], WHOLE.map(str::to_owned).to_vec())
        );
        assert_eq!(fs::read_to_string(case.at("volume/data/0")).unwrap(), "0");
        let mode = case.at("volume/data").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1755);

        // Killed while it moved. A container that runs already has written a file, and the next start does not fill volumes.
        let case = Case::new();
        fs::create_dir(case.at("volume/filled")).unwrap();
        for name in ["3", "4"] {
            fs::write(case.at("volume/filled").join(name), "of the image").unwrap();
        }
        for name in ["0", "4"] {
            fs::write(case.at("volume/data").join(name), "there").unwrap();
        }
        case.fill(false, &mut || false).unwrap();
        assert_eq!(
            (case.names("volume"), case.names("volume/data")),
            (vec!["data".to_owned()], ["0", "3", "4"].map(str::to_owned).to_vec())
        );
        assert_eq!(fs::read_to_string(case.at("volume/data/4")).unwrap(), "there");
    }

    #[test]
    fn a_volume_with_files_is_used_as_it_is() {
        let case = Case::new();
        fs::write(case.at("volume/data/own"), "").unwrap();
        case.fill(true, &mut || panic!("nothing is copied")).unwrap();
        assert_eq!(case.names("volume/data"), ["own"]);
        let case = Case::new();
        case.fill(false, &mut || panic!("nothing is copied")).unwrap();
        assert_eq!(case.names("volume/data"), [""; 0]);
    }

    #[test]
    fn what_a_start_is_copying_now_is_not_removed() {
        let case = Case::new();
        fs::create_dir(case.at("volume/filling")).unwrap();
        let held = lock(&case.at("volume"), &mut || false).unwrap();
        remove_unfinished(&case.at("volume"));
        assert!(case.at("volume/filling").exists());
        drop(held);
        remove_unfinished(&case.at("volume"));
        assert!(!case.at("volume/filling").exists());
    }
}
