//! Writes OCI layouts: a directory, or the same in a tar file.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cudock_base::{FileError, files, try_parallel};

use super::blob::BundleBlob;
use super::bundle::Bundle;
use super::document;
use super::error::WriteError;
use super::options::Written;
use super::tar::{BLOCK, FileContent, LayerEntry, padding};
use crate::kind::FileKind;
use crate::manifest::{Descriptor, Document, MAX_DOCUMENT, REF_NAME, REFERRERS};

const MARKER: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// Adds the image to a directory. `index.json`, which makes it visible, is replaced last.
pub(super) fn write(bundle: &Bundle, directory: &Path, name: Option<&str>) -> Result<Written, WriteError> {
    let failed = |path: &Path| FileError::at("write", path);
    let blobs = directory.join("blobs").join("sha256");
    fs::create_dir_all(&blobs).map_err(failed(&blobs))?;
    // Another process may be adding its own image.
    let lock = File::open(directory).map_err(failed(directory))?;
    files::lock(&lock, &|| {}).map_err(failed(directory))?;
    for directory in [directory, &blobs] {
        files::remove_leftovers(directory).map_err(failed(directory))?;
    }
    let known = read_index(&directory.join("index.json"))?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let sizes = try_parallel(&bundle.blobs, cores, |blob| write_blob(blob, directory))?;
    for stored in &bundle.documents {
        let path = blob_path(directory, &stored.descriptor)?;
        files::write_atomically(&path, &stored.bytes).map_err(failed(&path))?;
    }
    let marker = directory.join("oci-layout");
    files::write_atomically(&marker, MARKER).map_err(failed(&marker))?;
    let path = directory.join("index.json");
    let listing =
        Listing::new(bundle, name, known, |referrers| read_index(&blob_path(directory, referrers)?))?;
    if let Some((descriptor, bytes)) = &listing.referrers {
        let path = blob_path(directory, descriptor)?;
        files::write_atomically(&path, bytes).map_err(failed(&path))?;
    }
    files::write_atomically(&path, &listing.index()).map_err(failed(&path))?;
    let (sent, present) =
        sizes.into_iter().fold((0, 0), |sum, (sent, present)| (sum.0 + sent, sum.1 + present));
    Ok(Written { bytes_sent: sent, bytes_present: present, ..Written::default() })
}

/// The entries of an index; none if there is no such file.
fn read_index(path: &Path) -> Result<Vec<Descriptor>, WriteError> {
    let text = files::read_optional(path, MAX_DOCUMENT as u64).map_err(FileError::at("read", path))?;
    let Some(text) = text else { return Ok(Vec::new()) };
    Ok(Document::read(&path.display().to_string(), text.as_bytes())?.manifests.unwrap_or_default())
}

/// The future content of `index.json`. Referrers are in an index of their own, named by an
/// annotation: other tools read a layout without names only if it lists a single manifest.
struct Listing {
    entries: Vec<Descriptor>,
    /// The index of what refers to the image.
    referrers: Option<(Descriptor, Vec<u8>)>,
}

impl Listing {
    /// Adds an image to the entries of a layout, or referrers to an image that is there. `referrers_in` reads an index of
    /// referrers.
    fn new(
        bundle: &Bundle,
        name: Option<&str>,
        mut entries: Vec<Descriptor>,
        referrers_in: impl Fn(&Descriptor) -> Result<Vec<Descriptor>, WriteError>,
    ) -> Result<Self, WriteError> {
        let name_of = |descriptor: &Descriptor| descriptor.annotations.get(REF_NAME).cloned();
        let is_image = !bundle.is_referrer();
        let digest = if is_image { bundle.top.digest.clone() } else { bundle.subject()? };
        // The same image may have been signed since it was written.
        let mut listed = Vec::new();
        for entry in entries.iter().filter(|entry| entry.digest == digest) {
            if let Some(referrers) = entry.referrers() {
                listed.extend(referrers_in(&referrers)?);
            }
        }
        listed.extend(bundle.referrers.iter().cloned());
        let mut seen = HashSet::new();
        listed.retain(|referrer| seen.insert(referrer.digest.clone()));
        if is_image {
            entries.retain(|old| {
                let is_replaced = name.is_some() && name_of(old).as_deref() == name;
                // An image without a name takes the place of the image without a name, which nothing could select then.
                let is_nameless = name.is_none() && name_of(old).is_none() && old.artifact_type.is_none();
                !is_replaced && !is_nameless
            });
            let mut top = bundle.top.clone();
            top.annotations.extend(name.map(|name| (REF_NAME.to_owned(), name.to_owned())));
            entries.push(top);
        }
        let mut referrers = None;
        let mut subjects = entries.iter_mut().filter(|entry| entry.digest == digest).peekable();
        if subjects.peek().is_none() {
            return Err(WriteError::damaged(&digest, "index.json does not list it"));
        }
        if !listed.is_empty() {
            let bytes = document::index(&listed, &BTreeMap::new());
            let descriptor = Descriptor::of(document::INDEX, &bytes);
            for entry in subjects {
                entry.annotations.insert(REFERRERS.to_owned(), document::text(&descriptor));
            }
            referrers = Some((descriptor, bytes));
        }
        Ok(Self { entries, referrers })
    }

    fn index(&self) -> Vec<u8> {
        document::index(&self.entries, &BTreeMap::new())
    }
}

fn blob_path(directory: &Path, descriptor: &Descriptor) -> Result<PathBuf, WriteError> {
    Ok(directory.join(member_name(descriptor)?))
}

fn member_name(descriptor: &Descriptor) -> Result<String, WriteError> {
    let digest: cudock_base::Digest =
        descriptor.digest.parse().map_err(|_| WriteError::damaged(&descriptor.digest, "not a digest"))?;
    Ok(format!("blobs/{}/{}", digest.algorithm().name(), digest.hex()))
}

/// Writes a blob unless it is there. Returns the bytes written, and the bytes that were there.
fn write_blob(blob: &BundleBlob, directory: &Path) -> Result<(u64, u64), WriteError> {
    let path = blob_path(directory, &blob.descriptor)?;
    let size = blob.descriptor.size;
    if path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == size) {
        return Ok((0, size));
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(FileError::at("write", parent))?;
    }
    let bytes = blob.verified()?;
    files::write_atomically(&path, &bytes).map_err(FileError::at("write", &path))?;
    Ok((size, 0))
}

/// Writes the layout as a tar file, which replaces an existing one when it is complete.
pub(super) fn write_archive(bundle: &Bundle, file: &Path, name: Option<&str>) -> Result<Written, WriteError> {
    if bundle.is_referrer() {
        let destination = file.display().to_string();
        let reason = "archives cannot be added to; copy the image to a layout (oci:DIR) or a registry first"
            .to_owned();
        return Err(WriteError::Unsupported { destination, reason });
    }
    let listing = Listing::new(bundle, name, Vec::new(), |_| Ok(Vec::new()))?;
    replace(file, |out| {
        let mut sent = 0;
        append(out, "oci-layout", MARKER)?;
        append(out, "index.json", &listing.index())?;
        for directory in ["blobs", "blobs/sha256"] {
            let entry = LayerEntry::new(directory, FileKind::Directory, 0o755);
            out.write_all(&entry.header(0)?).map_err(WriteFailed::Io)?;
        }
        for stored in &bundle.documents {
            append(out, &member_name(&stored.descriptor)?, &stored.bytes)?;
        }
        if let Some((descriptor, bytes)) = &listing.referrers {
            append(out, &member_name(descriptor)?, bytes)?;
        }
        for blob in &bundle.blobs {
            append(out, &member_name(&blob.descriptor)?, &blob.verified()?)?;
            sent += blob.descriptor.size;
        }
        Ok(Written { bytes_sent: sent, ..Written::default() })
    })
}

/// Why a file could not be written: its content is not available, or the file fails.
pub(super) enum WriteFailed {
    Io(io::Error),
    Content(WriteError),
}

impl From<WriteError> for WriteFailed {
    fn from(error: WriteError) -> Self {
        Self::Content(error)
    }
}

/// Appends a file to a tar file.
pub(super) fn append(out: &mut impl Write, name: &str, bytes: &[u8]) -> Result<(), WriteFailed> {
    let entry = LayerEntry::new(name, FileKind::File(FileContent::Bytes(Vec::new())), 0o644);
    let size = bytes.len() as u64;
    let header = entry.header(size)?;
    [header.as_slice(), bytes, padding(size)]
        .iter()
        .try_for_each(|part| out.write_all(part))
        .map_err(WriteFailed::Io)
}

/// Writes a tar file to a temporary name in its directory, and renames it when it is complete.
pub(super) fn replace<T>(
    file: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, WriteFailed>,
) -> Result<T, WriteError> {
    replace_file(file, |out| {
        let result = write(out)?;
        out.write_all(&[0; 2 * BLOCK]).map_err(WriteFailed::Io)?;
        Ok(result)
    })
}

/// Writes a file under a temporary name, and renames it when it is complete.
pub(super) fn replace_file<T>(
    file: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, WriteFailed>,
) -> Result<T, WriteError> {
    let temporary = files::temporary_path(file);
    let written = File::create_new(&temporary).map_err(WriteFailed::Io).and_then(|created| {
        let mut out = BufWriter::with_capacity(1 << 20, created);
        let result = write(&mut out)?;
        let finish = || {
            let created = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            created.sync_all()?;
            fs::rename(&temporary, file)
        };
        finish().map_err(WriteFailed::Io)?;
        Ok(result)
    });
    written.map_err(|error| {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
        match error {
            WriteFailed::Io(error) => FileError::at("write", file)(error).into(),
            WriteFailed::Content(error) => error,
        }
    })
}
