//! Entries of an archive become files.

use std::fs::File;
use std::io::{self, Write};

use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, chownat, linkat, makedev, mkdirat, mknodat, openat, renameat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::beneath::{kind, leads_to, split};
use super::error::{LayerError, shown};
use super::lower::Removal;
use super::meta::Meta;
use super::sparse;
use super::upper::{Own, Place, Upper, at, check_path, check_text};
use crate::layer::{Details, EntryKind, Header, Mark, TarReader, clean, mark, removes_nothing};

/// The name of what is put aside for a moment.
const ASIDE: &str = "aside";

/// A path of an archive as the root sees it, byte by byte.
pub(super) fn path_of(header: &Header, details: &mut Details) -> Vec<u8> {
    let Some(written) = details.path.take() else { return header.path.clone().into_bytes() };
    cleaned(&written)
}

/// Without empty parts. That it does not lead upwards has been seen to: it reads the same as text.
fn cleaned(written: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> =
        written.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    parts.join(&b'/')
}

/// What an entry takes away from lower layers, if that is what it is for. The second says to pass over it.
pub(super) fn removal(path: &[u8]) -> Result<(Option<Removal>, bool), LayerError> {
    let (parent, name) = split(path);
    match mark(name) {
        None => Ok((None, false)),
        Some(Mark::Ignored) => Ok((None, true)),
        Some(Mark::Opaque) => Ok((Some(Removal::Contents(parent.to_vec())), true)),
        Some(Mark::Removes(name)) => Ok((Some(Removal::Name(super::beneath::join(parent, name))), true)),
        Some(Mark::Nameless) => Err(removes_nothing(&shown(path)).into()),
    }
}

impl Upper<'_> {
    /// Makes of an entry what it says. The reader stands before its contents.
    pub(super) fn put(
        &mut self,
        header: &Header,
        mut details: Details,
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
        let meta = Meta::of_entry(&path, header.mode, &mut details, &self.options, &mut self.tally)?;
        if path.is_empty() {
            // The root is there already; only a folder can say something of it.
            if header.kind == EntryKind::Directory {
                self.describe_root(meta);
            }
            return Ok(());
        }
        self.tally.entries += 1;
        match header.kind {
            EntryKind::HardLink => {
                clean(&header.link)?;
                self.hard_link(&path, &cleaned(&details.link))
            }
            EntryKind::Directory => self.folder(&path, meta),
            EntryKind::Symlink => self.symlink(&path, &details.link, &meta),
            EntryKind::File => self.file(&path, &meta, |_, file| contents(reader, file)),
            EntryKind::Special => self.special(&path, &meta, &details, reader),
        }
    }

    fn describe_root(&mut self, meta: Meta) {
        if let Some(root) = self.folders.get_mut(b"".as_slice()) {
            root.meta = meta;
            self.root_is_described = true;
        }
    }

    fn folder(&mut self, path: &[u8], meta: Meta) -> Result<(), LayerError> {
        let (place, name) = self.place(path)?;
        let real = at(&place, &name);
        if let Some(known) = self.folders.get_mut(&real) {
            known.meta = meta;
        } else {
            let mut replaces = self.left_out.remove(&real);
            let make = || mkdirat(&place.handle, name.as_slice(), Mode::RWXU);
            if make().is_err() {
                replaces |= self.clear(&real)?;
                make().map_err(|error| LayerError::at(path)(error.into()))?;
            }
            self.note_folder(&real, meta, replaces)?;
        }
        self.keep(path, place);
        Ok(())
    }

    fn symlink(&mut self, path: &[u8], target: &[u8], meta: &Meta) -> Result<(), LayerError> {
        check_text(target)?;
        let (place, name) = self.place(path)?;
        self.made(path, &place, &name, |name| symlinkat(target, &place.handle, name))?;
        self.dress_unopened(path, &place, &name, meta, false)?;
        self.keep(path, place);
        Ok(())
    }

    /// A new file, filled by `fill`.
    pub(super) fn file(
        &mut self,
        path: &[u8],
        meta: &Meta,
        fill: impl FnOnce(&mut Self, &mut File) -> Result<u64, LayerError>,
    ) -> Result<(), LayerError> {
        let (place, name) = self.place(path)?;
        self.file_at(path, &place, &name, meta, fill)?;
        self.keep(path, place);
        Ok(())
    }

    fn file_at(
        &mut self,
        path: &[u8],
        place: &Place,
        name: &[u8],
        meta: &Meta,
        fill: impl FnOnce(&mut Self, &mut File) -> Result<u64, LayerError>,
    ) -> Result<(), LayerError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = |name: &[u8]| openat(&place.handle, name, flags, Mode::RUSR | Mode::WUSR);
        let mut created = File::from(self.made(path, place, name, create)?);
        self.tally.bytes += fill(self, &mut created).map_err(|error| match error {
            LayerError::Write { source, .. } => LayerError::at(path)(source),
            other => other,
        })?;
        meta.apply(path, &created, &self.options, self.ours, &mut self.tally).map_err(LayerError::at(path))
    }

    /// Makes something under a name, after what this layer has there already is gone.
    fn made<T>(
        &mut self,
        path: &[u8],
        place: &Place,
        name: &[u8],
        make: impl Fn(&[u8]) -> Result<T, Errno>,
    ) -> Result<T, LayerError> {
        if !self.left_out.is_empty() {
            self.left_out.remove(&at(place, name));
        }
        let result = match make(name) {
            Err(Errno::EXIST) => {
                self.clear(&at(place, name))?;
                make(name)
            }
            other => other,
        };
        result.map_err(|error| LayerError::at(path)(error.into()))
    }

    /// Owner, mode and times of what is not opened: links, pipes and devices.
    fn dress_unopened(
        &mut self,
        path: &[u8],
        place: &Place,
        name: &[u8],
        meta: &Meta,
        has_mode: bool,
    ) -> Result<(), LayerError> {
        let wrong = |error: Errno| LayerError::at(path)(error.into());
        if let Some((uid, gid)) = meta.owner(self.options.ownership, self.ours) {
            let given = chownat(&place.handle, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
            given.map_err(|error| LayerError::at(path)(meta.not_given(error)))?;
        }
        if has_mode {
            // It is no link, and nobody but us can put one there.
            chmodat(&place.handle, name, Mode::from_raw_mode(meta.mode), AtFlags::empty()).map_err(wrong)?;
        }
        for (attribute, _) in &meta.xattrs {
            self.tally.left_out_attribute(path, attribute);
        }
        utimensat(&place.handle, name, &meta.times(), AtFlags::SYMLINK_NOFOLLOW).map_err(wrong)
    }

    fn special(
        &mut self,
        path: &[u8],
        meta: &Meta,
        details: &Details,
        reader: &mut TarReader<'_>,
    ) -> Result<(), LayerError> {
        match details.letter {
            b'0' | 0 | b'7' | b'S' => match &details.holes {
                Some(holes) => {
                    let most = self.options.limits.unpacked;
                    self.file(path, meta, |_, file| sparse::fill(reader, file, holes, most))
                }
                // Records of holes that nobody can read: its bytes are the file, as Go's reader has it.
                None => self.file(path, meta, |_, file| contents(reader, file)),
            },
            b'6' => self.node(path, FileType::Fifo, 0, meta),
            b'3' | b'4' => self.device(path, meta, details),
            letter => {
                self.tally.left_out_unknown(path, letter);
                Ok(())
            }
        }
    }

    fn device(&mut self, path: &[u8], meta: &Meta, details: &Details) -> Result<(), LayerError> {
        let number = |number: u64| u32::try_from(number).ok();
        let numbers = number(details.device.0).zip(number(details.device.1));
        let kind = if details.letter == b'3' { FileType::CharacterDevice } else { FileType::BlockDevice };
        match numbers {
            // Character device 0:0 is how overlayfs writes a removed name: it is none of an archive's.
            Some((major, minor)) if self.options.devices && (major, minor) != (0, 0) => {
                self.node(path, kind, makedev(major, minor), meta)
            }
            _ => {
                let (place, name) = self.place(path)?;
                let real = at(&place, &name);
                self.clear(&real)?;
                self.note_left_out(path, real)?;
                self.keep(path, place);
                Ok(())
            }
        }
    }

    fn node(&mut self, path: &[u8], kind: FileType, device: u64, meta: &Meta) -> Result<(), LayerError> {
        let (place, name) = self.place(path)?;
        let mode = Mode::RUSR | Mode::WUSR;
        self.made(path, &place, &name, |name| mknodat(&place.handle, name, kind, mode, device))?;
        self.dress_unopened(path, &place, &name, meta, true)?;
        self.keep(path, place);
        Ok(())
    }

    fn hard_link(&mut self, path: &[u8], target: &[u8]) -> Result<(), LayerError> {
        let missing = || {
            let (path, target) = (shown(path), shown(target));
            LayerError::refused(format!("`{path}` is a hard link to `{target}`, which is not there"))
        };
        let (folder, target_name) = split(target);
        check_path(target)?;
        let source = super::beneath::join(&self.real(target, folder)?, target_name);
        if source.is_empty() || self.folders.contains_key(&source) {
            return Err(missing());
        }
        if self.left_out.contains(&source) {
            let (place, name) = self.place(path)?;
            let real = at(&place, &name);
            if real != source {
                self.clear(&real)?;
                self.note_left_out(path, real)?;
            }
            return Ok(());
        }
        match self.own(&source)? {
            Own::Entry(_) => {}
            Own::HidesBelow => return Err(missing()),
            Own::Nothing => self.copy_up(path, &source)?.then_some(()).ok_or_else(missing)?,
        }
        let link = {
            let (folder, name) = split(path);
            check_path(path)?;
            super::beneath::join(&self.real(path, folder)?, name)
        };
        if link == source {
            return Ok(());
        }
        self.link(path, &source, &link)
    }

    /// Gives a file of this layer a second name. It is put aside first, since making way for the new name may take
    /// the old one.
    fn link(&mut self, path: &[u8], source: &[u8], link: &[u8]) -> Result<(), LayerError> {
        let wrong = |error: Errno| LayerError::at(path)(error.into());
        let related =
            |one: &[u8], other: &[u8]| one.strip_prefix(other).is_some_and(|rest| rest.starts_with(b"/"));
        let (folder, source_name) = split(source);
        let folder = self.root.folder(folder).map_err(LayerError::at(path))?;
        if related(source, link) || related(link, source) {
            linkat(&folder, source_name, &self.spare, ASIDE, AtFlags::empty()).map_err(wrong)?;
            let (place, name) = self.place(path)?;
            self.clear(&at(&place, &name))?;
            renameat(&self.spare, ASIDE, &place.handle, name.as_slice()).map_err(wrong)?;
            return Ok(());
        }
        let (place, name) = self.place(path)?;
        let linked = self.made(path, &place, &name, |name| {
            linkat(&folder, source_name, &place.handle, name, AtFlags::empty())
        });
        match linked {
            // File systems count names in 16 bits; the next is a file of its own.
            Err(LayerError::Write { source: error, .. })
                if error.raw_os_error() == Some(Errno::MLINK.raw_os_error()) =>
            {
                let stat = super::beneath::entry(&folder, source_name).map_err(LayerError::at(path))?;
                let stat = stat.ok_or_else(|| wrong(Errno::NOENT))?;
                self.copy(path, &folder, source_name, &stat, &place, &name)?;
            }
            other => other?,
        }
        self.keep(path, place);
        Ok(())
    }

    /// Brings a file of a lower layer into this one, under its own path; false if there is none.
    fn copy_up(&mut self, path: &[u8], source: &[u8]) -> Result<bool, LayerError> {
        let found = self.lower()?.find(source).map_err(LayerError::at(path))?;
        let Some(found) = found.filter(|found| kind(&found.stat) != FileType::Directory) else {
            return Ok(false);
        };
        let (folder, name) = split(source);
        self.make_folders(path, folder)?;
        let handle = self.root.folder(folder).map_err(LayerError::at(path))?;
        let place = Place { real: folder.to_vec(), handle };
        self.copy(path, &found.folder, name, &found.stat, &place, name)?;
        Ok(true)
    }

    fn copy(
        &mut self,
        path: &[u8],
        from: impl AsFd,
        from_name: &[u8],
        stat: &rustix::fs::Stat,
        place: &Place,
        name: &[u8],
    ) -> Result<(), LayerError> {
        let from = from.as_fd();
        let ownership = self.options.ownership;
        let plain = Meta::of_file(stat, None::<rustix::fd::BorrowedFd<'_>>, ownership);
        let plain = plain.map_err(LayerError::at(path))?;
        match kind(stat) {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = openat(from, from_name, flags, Mode::empty());
                let mut file = File::from(opened.map_err(|error| LayerError::at(path)(error.into()))?);
                let meta = Meta::of_file(stat, Some(&file), ownership).map_err(LayerError::at(path))?;
                self.file_at(path, place, name, &meta, |_, to| {
                    io::copy(&mut file, to).map_err(LayerError::at(path))
                })
            }
            FileType::Symlink => {
                let target = leads_to(from, from_name).map_err(LayerError::at(path))?;
                self.made(path, place, name, |name| symlinkat(target.as_slice(), &place.handle, name))?;
                self.dress_unopened(path, place, name, &plain, false)
            }
            other => {
                let mode = Mode::RUSR | Mode::WUSR;
                self.made(path, place, name, |name| mknodat(&place.handle, name, other, mode, stat.st_rdev))?;
                self.dress_unopened(path, place, name, &plain, true)
            }
        }
    }

    fn note_left_out(&mut self, path: &[u8], real: Vec<u8>) -> Result<(), LayerError> {
        self.tally.left_out_device(path);
        self.remember(real.len())?;
        self.left_out.insert(real);
        Ok(())
    }

    /// Whatever was put aside and not taken away again.
    pub(super) fn clear_aside(&self) {
        let _ = unlinkat(&self.spare, ASIDE, AtFlags::empty());
    }
}

/// The contents of an entry, as large as they come.
fn contents(reader: &mut TarReader<'_>, file: &mut File) -> Result<u64, LayerError> {
    let mut written = 0;
    loop {
        let chunk = reader.chunk().map_err(|error| LayerError::Tar(error.into()))?;
        if chunk.is_empty() {
            return Ok(written);
        }
        file.write_all(chunk).map_err(LayerError::at(b""))?;
        written += chunk.len() as u64;
    }
}
