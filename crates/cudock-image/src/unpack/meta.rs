//! Whose a file is, who may use it, how old it is: from an archive, or from a file of a lower layer.

use std::io;

use rustix::fd::AsFd;
use rustix::fs::{
    Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr,
    futimens,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::LayerError;
use super::options::{Ownership, StoreOptions};
use super::tally::Tally;
use crate::layer::{Details, Time};

/// Linux takes no name of an attribute that is longer, and no value.
const MAX_XATTR_NAME: usize = 255;
const MAX_XATTR: usize = 64 << 10;

/// What is kept of a file beside its contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mtime: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Meta {
    /// What a folder has that no entry describes.
    pub(super) fn of_unnamed_folder() -> Self {
        Self { mode: 0o755, ..Self::default() }
    }

    /// What an entry says; attributes that are not kept are counted.
    pub(super) fn of_entry(
        path: &[u8],
        mode: u32,
        details: &mut Details,
        options: &StoreOptions,
        tally: &mut Tally,
    ) -> Result<Self, LayerError> {
        // All ones means `leave it as it is` to the kernel.
        let owner = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
        let (Some(uid), Some(gid)) = (owner(details.uid), owner(details.gid)) else {
            let (uid, gid) = (details.uid, details.gid);
            let shown = super::error::shown(path);
            return Err(LayerError::refused(format!(
                "`{shown}` belongs to {uid}:{gid}, which nobody can be"
            )));
        };
        let mut xattrs = std::mem::take(&mut details.xattrs);
        xattrs.retain(|(name, value)| {
            let keeps = keeps(name, options.ownership) && value.len() <= MAX_XATTR;
            if !keeps {
                tally.left_out_attribute(path, name);
            }
            keeps
        });
        Ok(Self { mode: mode & 0o7777, uid, gid, mtime: details.mtime, xattrs })
    }

    /// What a file of a lower layer has.
    pub(super) fn of_file(stat: &Stat, file: Option<impl AsFd>, ownership: Ownership) -> io::Result<Self> {
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let mtime = Time { seconds: stat.st_mtime, nanos };
        let xattrs = file.map_or(Ok(Vec::new()), |file| attributes(file, ownership))?;
        Ok(Self { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid, mtime, xattrs })
    }

    /// Both times, as calls take them. The time of the last access is that of the last change.
    pub(super) fn times(&self) -> Timestamps {
        let time = Timespec { tv_sec: self.mtime.seconds, tv_nsec: self.mtime.nanos.into() };
        Timestamps { last_access: time, last_modification: time }
    }

    /// The owner to give a file to, where that changes anything.
    pub(super) fn owner(&self, ownership: Ownership, ours: (u32, u32)) -> Option<(Option<Uid>, Option<Gid>)> {
        let theirs = ownership == Ownership::Keep && (self.uid, self.gid) != ours;
        theirs.then(|| (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid))))
    }

    /// Gives a file or folder its owner, mode, attributes and times, in the order in which none undoes another:
    /// a new owner takes privileges away, and all of it changes times.
    pub(super) fn apply(
        &self,
        path: &[u8],
        file: impl AsFd,
        options: &StoreOptions,
        ours: (u32, u32),
        tally: &mut Tally,
    ) -> io::Result<()> {
        let file = file.as_fd();
        if let Some((uid, gid)) = self.owner(options.ownership, ours) {
            fchown(file, uid, gid).map_err(|error| self.not_given(error))?;
        }
        fchmod(file, Mode::from_raw_mode(self.mode))?;
        for (name, value) in &self.xattrs {
            match fsetxattr(file, name.as_slice(), value, XattrFlags::empty()) {
                Ok(()) => {}
                // Not every file system has attributes, and not everyone may set each; a file without is better
                // than none, as engines have it.
                Err(Errno::NOTSUP | Errno::PERM | Errno::TOOBIG | Errno::NOSPC | Errno::INVAL) => {
                    tally.left_out_attribute(path, name);
                }
                Err(error) => return Err(error.into()),
            }
        }
        futimens(file, &self.times())?;
        Ok(())
    }

    pub(super) fn not_given(&self, error: Errno) -> io::Error {
        if error == Errno::INVAL {
            let message = format!("owner {}:{} is not mapped into this user namespace", self.uid, self.gid);
            return io::Error::new(io::ErrorKind::InvalidInput, message);
        }
        error.into()
    }
}

/// Attributes that a file may bring along. Never those that overlayfs reads: an archive that set them could uncover
/// what other layers hide, or lead to files of others. Labels of security modules are the host's business.
fn keeps(name: &[u8], ownership: Ownership) -> bool {
    if name.len() > MAX_XATTR_NAME || name.contains(&0) {
        return false;
    }
    if name == b"security.capability" {
        return ownership == Ownership::Keep;
    }
    name.starts_with(b"user.") && name.len() > b"user.".len() && !name.starts_with(b"user.overlay.")
}

fn attributes(file: impl AsFd, ownership: Ownership) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let file = file.as_fd();
    let mut names = vec![0; MAX_XATTR];
    let length = match flistxattr(file, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    names.truncate(length);
    let mut kept = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| keeps(name, ownership)) {
        let mut value = vec![0; MAX_XATTR];
        let length = fgetxattr(file, name, value.as_mut_slice())?;
        value.truncate(length);
        kept.push((name.to_vec(), value));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_overlayfs_reads_are_never_taken_from_an_archive() {
        for name in [
            "trusted.overlay.opaque",
            "trusted.overlay.redirect",
            "user.overlay.opaque",
            "user.overlay.whiteout",
            "trusted.other",
            "security.selinux",
            "security.ima",
            "system.posix_acl_access",
            "user.",
            "user.a\0b",
            "",
        ] {
            assert!(!keeps(name.as_bytes(), Ownership::Keep), "{name:?}");
        }
        assert!(keeps(b"user.mime_type", Ownership::Ours) && keeps(b"user.overlayx", Ownership::Ours));
        assert!(keeps(b"security.capability", Ownership::Keep));
        assert!(!keeps(b"security.capability", Ownership::Ours));
    }
}
