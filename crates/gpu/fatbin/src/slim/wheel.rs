//! Slims the members of wheels and other zip files.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

use base64::Engine;
use sha2::{Digest, Sha256};

use super::job::{SlimJob, Slimmed, planned};
use super::write::{self, SlimError};
use crate::read::{Binary, is_candidate, read};

type Writer = zip::ZipWriter<io::BufWriter<FailOnce>>;

/// Slims a wheel or another zip file: members with GPU code are slimmed, all others are copied unchanged, and a wheel's
/// RECORD gets the new hashes. Without an output nothing is written. Returns whether anything was written.
pub(super) fn slim(
    input: &Path,
    bytes: &[u8],
    output: Option<&Path>,
    job: &SlimJob<'_>,
    report: &mut dyn FnMut(Slimmed),
) -> Result<bool, SlimError> {
    let Some(output) = output else {
        WheelMembers { input, bytes, job, report }.walk(None)?;
        return Ok(false);
    };
    let failed = |source| SlimError::Write { path: output.to_owned(), source };
    let temp = write::temp_path(output);
    let result = (|| {
        let file = FailOnce { file: File::create(&temp).map_err(failed)?, failed_at: None };
        let mut writer = zip::ZipWriter::new(io::BufWriter::new(file));
        WheelMembers { input, bytes, job, report }.walk(Some((&mut writer, output)))?;
        let buffer = writer.finish().map_err(|error| failed(io_error(error)))?;
        let file = buffer.into_inner().map_err(|error| failed(error.into_error()))?.file;
        file.sync_all().map_err(failed)?;
        fs::rename(&temp, output).map_err(failed)
    })();
    if result.is_err() {
        fs::remove_file(&temp).ok();
    }
    result.map(|()| true)
}

struct WheelMembers<'a> {
    input: &'a Path,
    bytes: &'a [u8],
    job: &'a SlimJob<'a>,
    report: &'a mut dyn FnMut(Slimmed),
}

impl WheelMembers<'_> {
    fn walk(&mut self, mut sink: Option<(&mut Writer, &Path)>) -> Result<(), SlimError> {
        let input = self.input;
        let unread = |error| SlimError::Read { path: input.to_owned(), source: io_error(error) };
        let mut archive = zip::ZipArchive::new(Cursor::new(self.bytes)).map_err(unread)?;
        let mut changed: Vec<(String, String)> = Vec::new();
        let mut record = None;
        for index in 0..archive.len() {
            let mut member = archive.by_index(index).map_err(unread)?;
            let name = member.name().map_err(unread)?.into_owned();
            if name.ends_with(".dist-info/RECORD") {
                record = Some((index, name));
                continue;
            }
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated)
                .large_file(member.size() > u64::from(u32::MAX))
                .unix_permissions(member.unix_mode().unwrap_or(0o644));
            let content = candidate(&mut member).map_err(|error| unread(error.into()))?;
            drop(member);
            let content = content.and_then(|bytes| self.slimmed(&name, &bytes, sink.is_some()));
            let Some((writer, output)) = &mut sink else { continue };
            let failed = |error| SlimError::Write { path: output.to_path_buf(), source: io_error(error) };
            if let Some(content) = content {
                writer.start_file(&name, options).map_err(failed)?;
                writer.write_all(&content).map_err(|error| failed(error.into()))?;
                changed.push((name, record_fields(&content)));
            } else {
                let member = archive.by_index_raw(index).map_err(unread)?;
                writer.raw_copy_file(member).map_err(failed)?;
            }
        }
        if let (Some((index, name)), Some((writer, output))) = (record, sink) {
            let failed = |error| SlimError::Write { path: output.to_owned(), source: io_error(error) };
            let mut text = String::new();
            let mut member = archive.by_index(index).map_err(unread)?;
            member.read_to_string(&mut text).map_err(|error| unread(error.into()))?;
            writer.start_file(&name, zip::write::SimpleFileOptions::default()).map_err(failed)?;
            let text = updated_record(&text, &changed);
            writer.write_all(text.as_bytes()).map_err(|error| failed(error.into()))?;
        }
        Ok(())
    }

    /// Reports a member with GPU code; returns its new content if it changes and is to be written.
    fn slimmed(&mut self, name: &str, bytes: &[u8], write: bool) -> Option<Vec<u8>> {
        let path = format!("{}!/{name}", self.input.display());
        let (slimmed, content) = slim_bytes(path, bytes, self.job, write)?;
        (self.report)(slimmed);
        content
    }
}

/// Slims a file in memory; none if it has no GPU code. The content is none if it does not change, or if it is not to be
/// written.
pub fn slim_bytes(
    path: String,
    bytes: &[u8],
    job: &SlimJob<'_>,
    write: bool,
) -> Option<(Slimmed, Option<Vec<u8>>)> {
    let binary = read(bytes).ok().filter(Binary::has_code)?;
    let mut slimmed = planned(path, bytes, &binary, job);
    let mut content = None;
    if write && !slimmed.plan.patches.is_empty() {
        let mut result = write::in_memory(bytes, &slimmed.plan, job.compact);
        if let (Err(error), true) = (&result, job.compact) {
            slimmed.warning = Some(error.to_string());
            result = write::in_memory(bytes, &slimmed.plan, false);
        }
        match result {
            Ok(bytes) => {
                slimmed.bytes_after = bytes.len() as u64;
                content = Some(bytes);
            }
            Err(error) => slimmed.warning = Some(error.to_string()),
        }
    }
    Some((slimmed, content))
}

/// The contents of a member that may have GPU code, judged by its first bytes.
fn candidate<R: Read>(member: &mut zip::read::ZipFile<'_, R>) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    member.by_ref().take(16).read_to_end(&mut bytes)?;
    if !is_candidate(&bytes) {
        return Ok(None);
    }
    let rest = member.size();
    member.by_ref().take(rest).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Keeps I/O errors, so that callers can distinguish a full disk from an invalid archive.
fn io_error(error: zip::result::ZipError) -> io::Error {
    match error {
        zip::result::ZipError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

/// A file that fails once and then pretends to work: a dropped `ZipWriter` writes the rest of the archive, and prints to
/// stderr if that fails.
struct FailOnce {
    file: File,
    /// The current position after a failure.
    failed_at: Option<u64>,
}

impl Write for FailOnce {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.failed_at {
            Some(at) => {
                *at += bytes.len() as u64;
                Ok(bytes.len())
            }
            None => match self.file.write(bytes) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    self.failed_at = Some(self.file.stream_position()?);
                    Err(error)
                }
                result => result,
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for FailOnce {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match (&mut self.failed_at, to) {
            (Some(at), SeekFrom::Start(to)) => {
                *at = to;
                Ok(to)
            }
            (Some(at), SeekFrom::Current(by) | SeekFrom::End(by)) => {
                *at = at.saturating_add_signed(by);
                Ok(*at)
            }
            (None, to) => self.file.seek(to),
        }
    }
}

/// `sha256=…,size`, as in RECORD.
fn record_fields(content: &[u8]) -> String {
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(content));
    format!("sha256={hash},{}", content.len())
}

/// RECORD with the new fields of changed members. Names with commas would be quoted, but libraries have none.
fn updated_record(record: &str, changed: &[(String, String)]) -> String {
    let line = |line: &str| {
        let name = line.split(',').next().unwrap_or_default();
        match changed.iter().find(|(known, _)| known == name) {
            Some((name, fields)) => format!("{name},{fields}\n"),
            None => format!("{line}\n"),
        }
    };
    record.lines().map(line).collect()
}
