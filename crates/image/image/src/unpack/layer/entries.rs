//! Creates files from the entries of an archive.

use std::fs::File;
use std::io::{self, Write};

use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, chownat, linkat, mkdirat, mknodat, openat, renameat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;

use super::lower::Removal;
use super::meta::FileMeta;
use super::sparse;
use super::upper::{TargetDir, UpperEntry, UpperLayer, check_path, check_text};
use crate::kind::FileKind;
use crate::layer::{
    EntryDetails, EntryHeader, TarOnly, TarReader, Whiteout, clean, invalid_whiteout, parse_whiteout,
};
use crate::unpack::confined_path::{file_type, join_path, link_target, split_path, stat_entry};
use crate::unpack::error::{LayerError, printable};

/// The temporary name of a moved file.
const ASIDE: &str = "aside";

/// The raw path of an entry, relative to the root.
pub(in crate::unpack) fn path_of(header: &EntryHeader, details: &mut EntryDetails) -> Vec<u8> {
    let Some(written) = details.path.take() else { return header.path.clone().into_bytes() };
    cleaned(&written)
}

/// Removes empty components. `..` was rejected when the path was parsed as text.
fn cleaned(written: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> =
        written.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    parts.join(&b'/')
}

/// The path that a whiteout entry removes from lower layers, and whether to skip the entry.
pub(in crate::unpack) fn removal(path: &[u8]) -> Result<(Option<Removal>, bool), LayerError> {
    let (parent, name) = split_path(path);
    match parse_whiteout(name) {
        None => Ok((None, false)),
        Some(Whiteout::Ignored) => Ok((None, true)),
        Some(Whiteout::Opaque) => Ok((Some(Removal::Contents(parent.to_vec())), true)),
        Some(Whiteout::Removes(name)) => Ok((Some(Removal::Name(join_path(parent, name))), true)),
        Some(Whiteout::Invalid) => Err(invalid_whiteout(&printable(path)).into()),
    }
}

impl UpperLayer<'_> {
    /// Creates the file of an entry. The reader is positioned at its contents.
    pub(in crate::unpack) fn put(
        &mut self,
        header: &EntryHeader,
        mut details: EntryDetails,
        reader: &mut TarReader<'_>,
    ) -> Result<(), LayerError> {
        let path = path_of(header, &mut details);
        let (removal, pass) = removal(&path)?;
        if let Some(removal) = removal {
            self.removes(removal)?;
        }
        if pass {
            return Ok(());
        }
        let meta = FileMeta::from_entry(&path, header.mode, &mut details, &self.options, &mut self.counters)?;
        if path.is_empty() {
            // The root exists already; only a directory entry can describe it.
            if header.kind.is_directory() {
                self.describe_root(meta);
            }
            return Ok(());
        }
        self.counters.entries += 1;
        match &header.kind {
            FileKind::Other(TarOnly::HardLink(target)) => {
                clean(target)?;
                self.hard_link(&path, &cleaned(&details.link))
            }
            FileKind::Directory => self.directory(&path, meta),
            FileKind::Symlink(_) => self.symlink(&path, &details.link, &meta),
            FileKind::File(_) => self.file(&path, &meta, |_, file| contents(reader, file)),
            FileKind::Other(TarOnly::Special) => self.special(&path, &meta, &details, reader),
        }
    }

    fn describe_root(&mut self, meta: FileMeta) {
        if let Some(root) = self.directories.get_mut(b"".as_slice()) {
            root.meta = meta;
            self.root_is_described = true;
        }
    }

    fn directory(&mut self, path: &[u8], meta: FileMeta) -> Result<(), LayerError> {
        let (dir, name) = self.target_dir(path)?;
        let real = dir.entry_path(&name);
        if let Some(known) = self.directories.get_mut(&real) {
            known.meta = meta;
        } else {
            let mut replaces = self.skipped.remove(&real);
            let make = || mkdirat(&dir.handle, name.as_slice(), Mode::RWXU);
            if make().is_err() {
                replaces |= self.clear(&real)?;
                make().map_err(LayerError::write(path))?;
            }
            self.record_dir(&real, meta, replaces)?;
        }
        self.keep(path, dir);
        Ok(())
    }

    fn symlink(&mut self, path: &[u8], target: &[u8], meta: &FileMeta) -> Result<(), LayerError> {
        check_text(target)?;
        let (dir, name) = self.target_dir(path)?;
        self.create_entry(path, &dir, &name, |name| symlinkat(target, &dir.handle, name))?;
        self.set_metadata(path, &dir, &name, meta, false)?;
        self.keep(path, dir);
        Ok(())
    }

    /// Creates a file and fills it.
    pub(in crate::unpack) fn file(
        &mut self,
        path: &[u8],
        meta: &FileMeta,
        fill: impl FnOnce(&mut Self, &mut File) -> Result<u64, LayerError>,
    ) -> Result<(), LayerError> {
        let (dir, name) = self.target_dir(path)?;
        self.file_at(path, &dir, &name, meta, fill)?;
        self.keep(path, dir);
        Ok(())
    }

    fn file_at(
        &mut self,
        path: &[u8],
        dir: &TargetDir,
        name: &[u8],
        meta: &FileMeta,
        fill: impl FnOnce(&mut Self, &mut File) -> Result<u64, LayerError>,
    ) -> Result<(), LayerError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = |name: &[u8]| openat(&dir.handle, name, flags, Mode::RUSR | Mode::WUSR);
        let mut created = File::from(self.create_entry(path, dir, name, create)?);
        self.counters.bytes += fill(self, &mut created).map_err(|error| match error {
            LayerError::Write { source, .. } => LayerError::write(path)(source),
            other => other,
        })?;
        meta.apply(path, &created, &self.options, self.current_user, &mut self.counters)
            .map_err(LayerError::write(path))
    }

    /// Creates a file, after removing what this layer already has under that name.
    fn create_entry<T>(
        &mut self,
        path: &[u8],
        dir: &TargetDir,
        name: &[u8],
        make: impl Fn(&[u8]) -> Result<T, Errno>,
    ) -> Result<T, LayerError> {
        if !self.skipped.is_empty() {
            self.skipped.remove(&dir.entry_path(name));
        }
        let result = match make(name) {
            Err(Errno::EXIST) => {
                self.clear(&dir.entry_path(name))?;
                make(name)
            }
            other => other,
        };
        result.map_err(LayerError::write(path))
    }

    /// Sets owner, mode and times of a file that is not opened: symlinks, FIFOs and devices.
    fn set_metadata(
        &mut self,
        path: &[u8],
        dir: &TargetDir,
        name: &[u8],
        meta: &FileMeta,
        has_mode: bool,
    ) -> Result<(), LayerError> {
        if let Some((uid, gid)) = meta.owner(self.options.ownership, self.current_user) {
            let given = chownat(&dir.handle, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
            given.map_err(|error| LayerError::write(path)(meta.chown_error(error)))?;
        }
        if has_mode {
            // It is not a symlink, and no other user can replace it by one.
            let mode = Mode::from_raw_mode(meta.mode);
            chmodat(&dir.handle, name, mode, AtFlags::empty()).map_err(LayerError::write(path))?;
        }
        for (attribute, _) in &meta.xattrs {
            self.counters.skip_attribute(path, attribute);
        }
        utimensat(&dir.handle, name, &meta.times(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(LayerError::write(path))
    }

    fn special(
        &mut self,
        path: &[u8],
        meta: &FileMeta,
        details: &EntryDetails,
        reader: &mut TarReader<'_>,
    ) -> Result<(), LayerError> {
        match details.type_flag {
            b'0' | 0 | b'7' | b'S' => match &details.sparse_map {
                Some(map) => {
                    let limit = self.options.limits.unpacked;
                    self.file(path, meta, |_, file| sparse::fill(reader, file, map, limit))
                }
                // Sparse records of an unknown version: the stored bytes are the file, as in Go's reader.
                None => self.file(path, meta, |_, file| contents(reader, file)),
            },
            b'6' => self.fifo(path, meta),
            // Devices are skipped: a container gets its own `/dev`, nodes elsewhere only help an attacker, and character
            // device 0:0 would be an overlayfs whiteout.
            b'3' | b'4' => {
                let (dir, name) = self.target_dir(path)?;
                let real = dir.entry_path(&name);
                self.clear(&real)?;
                self.record_skipped(path, real)?;
                self.keep(path, dir);
                Ok(())
            }
            type_flag => {
                self.counters.skip_unknown(path, type_flag);
                Ok(())
            }
        }
    }

    fn fifo(&mut self, path: &[u8], meta: &FileMeta) -> Result<(), LayerError> {
        let (dir, name) = self.target_dir(path)?;
        let mode = Mode::RUSR | Mode::WUSR;
        self.create_entry(path, &dir, &name, |name| mknodat(&dir.handle, name, FileType::Fifo, mode, 0))?;
        self.set_metadata(path, &dir, &name, meta, true)?;
        self.keep(path, dir);
        Ok(())
    }

    fn hard_link(&mut self, path: &[u8], target: &[u8]) -> Result<(), LayerError> {
        let missing = || {
            let (path, target) = (printable(path), printable(target));
            LayerError::rejected(format!("`{path}` is a hard link to `{target}`, which does not exist"))
        };
        let (directory, target_name) = split_path(target);
        check_path(target)?;
        let source = join_path(&self.real_path(target, directory)?, target_name);
        if source.is_empty() || self.directories.contains_key(&source) {
            return Err(missing());
        }
        if self.skipped.contains(&source) {
            let (dir, name) = self.target_dir(path)?;
            let real = dir.entry_path(&name);
            if real != source {
                self.clear(&real)?;
                self.record_skipped(path, real)?;
            }
            return Ok(());
        }
        match self.own(&source)? {
            UpperEntry::Entry(_) => {}
            UpperEntry::HidesLower => return Err(missing()),
            UpperEntry::Nothing => self.copy_up(path, &source)?.then_some(()).ok_or_else(missing)?,
        }
        check_path(path)?;
        let (directory, name) = split_path(path);
        let link = join_path(&self.real_path(path, directory)?, name);
        if link == source { Ok(()) } else { self.link(path, &source, &link) }
    }

    /// Links a file of this layer to a second name. If one path contains the other, the file is moved aside first,
    /// because removing what is at the new name would remove the source.
    fn link(&mut self, path: &[u8], source: &[u8], link: &[u8]) -> Result<(), LayerError> {
        let io_error = LayerError::write::<Errno>(path);
        let related =
            |one: &[u8], other: &[u8]| one.strip_prefix(other).is_some_and(|rest| rest.starts_with(b"/"));
        let (directory, source_name) = split_path(source);
        let directory = self.root.dir(directory).map_err(LayerError::write(path))?;
        if related(source, link) || related(link, source) {
            linkat(&directory, source_name, &self.spare, ASIDE, AtFlags::empty()).map_err(io_error)?;
            let (dir, name) = self.target_dir(path)?;
            self.clear(&dir.entry_path(&name))?;
            renameat(&self.spare, ASIDE, &dir.handle, name.as_slice()).map_err(io_error)?;
            return Ok(());
        }
        let (dir, name) = self.target_dir(path)?;
        let linked = self.create_entry(path, &dir, &name, |name| {
            linkat(&directory, source_name, &dir.handle, name, AtFlags::empty())
        });
        match linked {
            // File systems limit the number of links; create a copy instead.
            Err(LayerError::Write { source: error, .. })
                if error.raw_os_error() == Some(Errno::MLINK.raw_os_error()) =>
            {
                let stat = stat_entry(&directory, source_name).map_err(LayerError::write(path))?;
                let stat = stat.ok_or_else(|| io_error(Errno::NOENT))?;
                self.copy(path, &directory, source_name, &stat, &dir, &name)?;
            }
            other => other?,
        }
        self.keep(path, dir);
        Ok(())
    }

    /// Copies a file of a lower layer into this one, under the same path; false if there is none.
    fn copy_up(&mut self, path: &[u8], source: &[u8]) -> Result<bool, LayerError> {
        let found = self.lower()?.find(source).map_err(LayerError::write(path))?;
        let Some(found) = found.filter(|found| file_type(&found.stat) != FileType::Directory) else {
            return Ok(false);
        };
        let (directory, name) = split_path(source);
        self.create_dirs(path, directory)?;
        let handle = self.root.dir(directory).map_err(LayerError::write(path))?;
        let dir = TargetDir { real: directory.to_vec(), handle };
        self.copy(path, &found.directory, name, &found.stat, &dir, name)?;
        Ok(true)
    }

    fn copy(
        &mut self,
        path: &[u8],
        from: impl AsFd,
        from_name: &[u8],
        stat: &rustix::fs::Stat,
        dir: &TargetDir,
        name: &[u8],
    ) -> Result<(), LayerError> {
        let from = from.as_fd();
        let ownership = self.options.ownership;
        let plain = FileMeta::from_file(stat, None::<rustix::fd::BorrowedFd<'_>>, ownership);
        let plain = plain.map_err(LayerError::write(path))?;
        match file_type(stat) {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = openat(from, from_name, flags, Mode::empty());
                let mut file = File::from(opened.map_err(LayerError::write(path))?);
                let meta =
                    FileMeta::from_file(stat, Some(&file), ownership).map_err(LayerError::write(path))?;
                self.file_at(path, dir, name, &meta, |_, to| {
                    io::copy(&mut file, to).map_err(LayerError::write(path))
                })
            }
            FileType::Symlink => {
                let target = link_target(from, from_name).map_err(LayerError::write(path))?;
                self.create_entry(path, dir, name, |name| symlinkat(target.as_slice(), &dir.handle, name))?;
                self.set_metadata(path, dir, name, &plain, false)
            }
            other => {
                let mode = Mode::RUSR | Mode::WUSR;
                self.create_entry(path, dir, name, |name| {
                    mknodat(&dir.handle, name, other, mode, stat.st_rdev)
                })?;
                self.set_metadata(path, dir, name, &plain, true)
            }
        }
    }

    fn record_skipped(&mut self, path: &[u8], real: Vec<u8>) -> Result<(), LayerError> {
        self.counters.skip_device(path);
        self.count_path(real.len())?;
        self.skipped.insert(real);
        Ok(())
    }

    /// Removes a file that was moved aside and not used.
    pub(in crate::unpack) fn clear_aside(&self) {
        let _ = unlinkat(&self.spare, ASIDE, AtFlags::empty());
    }
}

fn contents(reader: &mut TarReader<'_>, file: &mut File) -> Result<u64, LayerError> {
    let mut written = 0;
    loop {
        let chunk = reader.chunk().map_err(|error| LayerError::Tar(error.into()))?;
        if chunk.is_empty() {
            return Ok(written);
        }
        file.write_all(chunk).map_err(LayerError::write(b""))?;
        written += chunk.len() as u64;
    }
}
