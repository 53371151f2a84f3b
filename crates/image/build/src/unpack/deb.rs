//! Debian packages: what is in their data, without running anything of theirs.
//!
//! Maintainer scripts are not run; what an image needs of their work (certificates, the merged `/usr`, users) is generated.
//! Everything belongs to root. Device nodes and other special files are dropped, setuid and setgid bits are removed; both
//! with a note. A package that would write or link out of the image is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use cudock_image::{EntryHeader, FileKind, LayerLimits, TarOnly, read_tar};

use super::error::UnpackError;
use super::names::stays_inside;
use super::store::{Contents, Limits};
use super::{PackageList, PackedContent, PackedEntry, Scheme, check_path};

const SETUID_AND_SETGID: u32 = 0o6000;
/// Notes that are kept of one package.
const MAX_NOTES: usize = 100;

pub(super) fn read(bytes: &[u8], contents: &mut dyn Contents) -> Result<PackageList, UnpackError> {
    let data = cudock_lock::deb::open(bytes).map_err(|error| UnpackError::refused(error.to_string()))?;
    let limits = Limits::for_archive(bytes.len());
    let limits =
        LayerLimits { entries: limits.entries.into(), unpacked: limits.bytes, ..LayerLimits::default() };
    let mut reader = DebReader::default();
    // An error of ours, which passes through the tar reader as an I/O error.
    let mut own = None;
    let read = read_tar(Box::new(data), limits, &mut |header, content| {
        reader.entry(header, content, contents).map_err(|error| {
            own = Some(error);
            io::Error::other("refused")
        })
    });
    match (own, read) {
        (Some(error), _) => Err(error),
        (None, Err(reason)) => Err(UnpackError::Refused(reason)),
        (None, Ok(())) => Ok(reader.list),
    }
}

#[derive(Default)]
struct DebReader {
    list: PackageList,
    /// Files by path, for hard links to them.
    files: BTreeMap<String, PackedContent>,
    links: BTreeSet<String>,
}

impl DebReader {
    fn entry(
        &mut self,
        header: &EntryHeader,
        content: &mut cudock_image::Content<'_, '_>,
        contents: &mut dyn Contents,
    ) -> Result<(), UnpackError> {
        let path = header.path.as_str();
        if path.is_empty() {
            // The root itself.
            return Ok(());
        }
        check_path(path).map_err(UnpackError::Refused)?;
        if let Some(link) = parents(path).find(|parent| self.links.contains(*parent)) {
            return Err(UnpackError::refused(format!("`{path}` leads through the link `{link}`")));
        }
        let kind = match &header.kind {
            FileKind::Directory => FileKind::Directory,
            FileKind::Symlink(target) if target.is_empty() || target.contains('\0') => {
                return Err(UnpackError::refused(format!("`{path}` is a link without a valid target")));
            }
            FileKind::Symlink(target) if stays_inside(path, target) => {
                self.links.insert(path.to_owned());
                FileKind::Symlink(target.clone())
            }
            FileKind::Symlink(target) => {
                let reason = format!("`{path}` is a link to `{target}`, which leads out of the image");
                return Err(UnpackError::Refused(reason));
            }
            FileKind::Other(TarOnly::HardLink(target)) => FileKind::File(self.linked(path, target)?),
            FileKind::Other(TarOnly::Special) => {
                self.note(format!("{path}: dropped, not a regular file"));
                return Ok(());
            }
            FileKind::File(_) => {
                let index = contents.begin()?;
                let mut size = 0_u64;
                let mut own = None;
                let passed = content.each_chunk(|chunk| {
                    size += chunk.len() as u64;
                    contents.write(chunk).map_err(|error| {
                        own = Some(error);
                        io::Error::other("not written")
                    })
                });
                if let Some(error) = own {
                    return Err(error);
                }
                passed.map_err(|error| UnpackError::refused(format!("`{path}`: {error}")))?;
                contents.end()?;
                FileKind::File(PackedContent { index, size })
            }
        };
        if header.mode & SETUID_AND_SETGID != 0 && header.kind.is_file() {
            self.note(format!("{path}: setuid and setgid bits removed"));
        }
        if let FileKind::File(content) = kind {
            self.files.insert(path.to_owned(), content);
        }
        let mode = header.mode & !SETUID_AND_SETGID & 0o7777;
        self.list.entries.push(PackedEntry { scheme: Scheme::Root, path: path.to_owned(), mode, kind });
        Ok(())
    }

    /// A hard link has the content of an earlier file of the same package.
    fn linked(&self, path: &str, target: &str) -> Result<PackedContent, UnpackError> {
        let target = target.strip_prefix("./").unwrap_or(target);
        self.files.get(target).copied().ok_or_else(|| {
            let target = cudock_base::text::escape(target, 80);
            UnpackError::refused(format!(
                "`{path}` is a hard link to `{target}`, which is not in the package"
            ))
        })
    }

    fn note(&mut self, note: String) {
        if self.list.notes.len() < MAX_NOTES {
            self.list.notes.push(note);
        }
    }
}

/// The directories above a path.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}
