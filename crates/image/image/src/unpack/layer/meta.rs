//! File metadata: owner, mode, time and extended attributes, from an archive or a lower layer.

use std::io;

use rustix::fd::AsFd;
use rustix::fs::{
    Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr,
    futimens,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::layer::{EntryDetails, Time};
use crate::unpack::counters::UnpackCounters;
use crate::unpack::error::LayerError;
use crate::unpack::options::{Ownership, StoreOptions};

/// Limits of Linux for extended attributes.
const MAX_XATTR_NAME: usize = 255;
const MAX_XATTR: usize = 64 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::unpack) struct FileMeta {
    pub(in crate::unpack) mode: u32,
    pub(in crate::unpack) uid: u32,
    pub(in crate::unpack) gid: u32,
    pub(in crate::unpack) mtime: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::unpack) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl FileMeta {
    /// The metadata of a directory without an entry.
    pub(in crate::unpack) fn default_dir() -> Self {
        Self { mode: 0o755, ..Self::default() }
    }

    /// Metadata of an entry. Dropped attributes are counted.
    pub(in crate::unpack) fn from_entry(
        path: &[u8],
        mode: u32,
        details: &mut EntryDetails,
        options: &StoreOptions,
        counters: &mut UnpackCounters,
    ) -> Result<Self, LayerError> {
        // The kernel takes -1 for `unchanged`.
        let owner = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
        let (Some(uid), Some(gid)) = (owner(details.uid), owner(details.gid)) else {
            let (uid, gid) = (details.uid, details.gid);
            let printable = crate::unpack::error::printable(path);
            return Err(LayerError::rejected(format!("`{printable}` has an invalid owner {uid}:{gid}")));
        };
        let mut xattrs = std::mem::take(&mut details.xattrs);
        xattrs.retain(|(name, value)| {
            let is_kept = is_kept(name, options.ownership) && value.len() <= MAX_XATTR;
            if !is_kept {
                counters.skip_attribute(path, name);
            }
            is_kept
        });
        Ok(Self { mode: mode & 0o7777, uid, gid, mtime: details.mtime, xattrs })
    }

    /// Metadata of a file in a lower layer.
    pub(in crate::unpack) fn from_file(
        stat: &Stat,
        file: Option<impl AsFd>,
        ownership: Ownership,
    ) -> io::Result<Self> {
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let mtime = Time { seconds: stat.st_mtime, nanos };
        let xattrs = file.map_or(Ok(Vec::new()), |file| attributes(file, ownership))?;
        Ok(Self { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid, mtime, xattrs })
    }

    /// Access and modification time, which are the same.
    pub(in crate::unpack) fn times(&self) -> Timestamps {
        let time = Timespec { tv_sec: self.mtime.seconds, tv_nsec: self.mtime.nanos.into() };
        Timestamps { last_access: time, last_modification: time }
    }

    /// The owner to set, if it differs from ours.
    pub(in crate::unpack) fn owner(
        &self,
        ownership: Ownership,
        current_user: (u32, u32),
    ) -> Option<(Option<Uid>, Option<Gid>)> {
        let theirs = ownership == Ownership::Keep && (self.uid, self.gid) != current_user;
        theirs.then(|| (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid))))
    }

    /// Sets owner, mode, attributes and times, in this order: chown clears privileges, and every change affects the
    /// times.
    pub(in crate::unpack) fn apply(
        &self,
        path: &[u8],
        file: impl AsFd,
        options: &StoreOptions,
        current_user: (u32, u32),
        counters: &mut UnpackCounters,
    ) -> io::Result<()> {
        let file = file.as_fd();
        if let Some((uid, gid)) = self.owner(options.ownership, current_user) {
            fchown(file, uid, gid).map_err(|error| self.chown_error(error))?;
        }
        fchmod(file, Mode::from_raw_mode(self.mode))?;
        for (name, value) in &self.xattrs {
            match fsetxattr(file, name.as_slice(), value, XattrFlags::empty()) {
                Ok(()) => {}
                // Not every file system supports attributes, and some need privileges. Engines ignore these errors, too.
                Err(Errno::NOTSUP | Errno::PERM | Errno::TOOBIG | Errno::NOSPC | Errno::INVAL) => {
                    counters.skip_attribute(path, name);
                }
                Err(error) => return Err(error.into()),
            }
        }
        futimens(file, &self.times())?;
        Ok(())
    }

    pub(in crate::unpack) fn chown_error(&self, error: Errno) -> io::Error {
        if error == Errno::INVAL {
            let message = format!("owner {}:{} is not mapped into this user namespace", self.uid, self.gid);
            return io::Error::new(io::ErrorKind::InvalidInput, message);
        }
        error.into()
    }
}

/// Whether a file may have this attribute. Attributes of overlayfs are rejected, because they could expose files that
/// other layers hide or redirect to other files. Labels of security modules belong to the host.
fn is_kept(name: &[u8], ownership: Ownership) -> bool {
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
    for name in names.split(|byte| *byte == 0).filter(|name| is_kept(name, ownership)) {
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
    fn overlayfs_attributes_in_an_archive_are_ignored() {
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
            assert!(!is_kept(name.as_bytes(), Ownership::Keep), "{name:?}");
        }
        assert!(
            is_kept(b"user.mime_type", Ownership::CurrentUser)
                && is_kept(b"user.overlayx", Ownership::CurrentUser)
        );
        assert!(is_kept(b"security.capability", Ownership::Keep));
        assert!(!is_kept(b"security.capability", Ownership::CurrentUser));
    }
}
