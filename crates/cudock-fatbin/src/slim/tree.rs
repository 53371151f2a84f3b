//! Files, directories and wheels, slimmed.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Write};
use std::path::Path;

use base64::Engine;
use sha2::{Digest, Sha256};

use super::write::{self, SlimError};
use super::{Code, Plan, plan_and_tell};
use crate::read::{Binary, is_candidate, read};
use cudock_map::map;

/// What to do.
pub struct Job<'a> {
    /// How many targets there are.
    pub targets: usize,
    /// Whether a target, by its number, can load a piece of code.
    pub fits: &'a (dyn Fn(usize, Code) -> bool + Sync),
    /// How many other cards to tell about.
    pub cards: usize,
    /// Whether such a card, by its number, can load a piece of code.
    pub loads: &'a (dyn Fn(usize, Code) -> bool + Sync),
    /// Whether to make files smaller, too.
    pub compact: bool,
    /// Whether to write nothing and only tell.
    pub dry_run: bool,
}

/// What became of a file.
#[derive(Debug)]
pub struct Slimmed {
    /// Its path; inside a wheel, the wheel's path, `!/` and the member's name.
    pub path: String,
    /// Its length before.
    pub bytes_before: u64,
    /// Its length after.
    pub bytes_after: u64,
    /// Bytes after that are no hole.
    pub written: u64,
    /// What was removed.
    pub plan: Plan,
    /// Why it was left as it was.
    pub refused: Option<String>,
}

/// Slims `input` to `output`: a file to a file, a directory to a directory, a wheel to a wheel. `told` is called for
/// each file that holds GPU code.
pub fn slim(
    input: &Path,
    output: &Path,
    job: &Job<'_>,
    told: &mut dyn FnMut(Slimmed),
) -> Result<(), SlimError> {
    let wrong = |path: &Path, source| SlimError::Write { path: path.to_owned(), source };
    let kind = fs::symlink_metadata(input).map_err(|source| wrong(input, source))?.file_type();
    if kind.is_dir() {
        if !job.dry_run {
            fs::create_dir_all(output).map_err(|source| wrong(output, source))?;
        }
        let mut entries: Vec<_> =
            fs::read_dir(input).map_err(|source| wrong(input, source))?.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            slim(&entry.path(), &output.join(entry.file_name()), job, told)?;
        }
        return Ok(());
    }
    if kind.is_symlink() && output != input {
        return if job.dry_run {
            Ok(())
        } else {
            copy_link(input, output).map_err(|source| wrong(output, source))
        };
    }
    file(input, output, job, told)
}

fn copy_link(input: &Path, output: &Path) -> io::Result<()> {
    let target = fs::read_link(input)?;
    if fs::symlink_metadata(output).is_ok() {
        fs::remove_file(output)?;
    }
    std::os::unix::fs::symlink(target, output)
}

fn file(input: &Path, output: &Path, job: &Job<'_>, told: &mut dyn FnMut(Slimmed)) -> Result<(), SlimError> {
    let wrong = |source| SlimError::Write { path: input.to_owned(), source };
    let mut start = Vec::new();
    File::open(input).map_err(wrong)?.take(16).read_to_end(&mut start).map_err(wrong)?;
    let is_zip = start.starts_with(b"PK\x03\x04");
    if is_candidate(&start) || is_zip {
        let mode = fs::metadata(input).map_err(wrong)?.permissions();
        let bytes = map(input).map_err(|error| wrong(error.source))?;
        if is_zip {
            return wheel(input, &bytes, output, job, told);
        }
        if let Ok(binary) = read(&bytes)
            && !binary.modules.is_empty()
        {
            let mut slimmed = planned(input.display().to_string(), &bytes, &binary, job);
            let nothing = slimmed.plan.patches.is_empty();
            let in_place_already = nothing && input == output;
            if !job.dry_run && !in_place_already {
                let (length, written, refused) =
                    write_best(&bytes, &slimmed.plan, job.compact && !nothing, output, &mode)?;
                (slimmed.bytes_after, slimmed.written) = (length, written);
                slimmed.refused = slimmed.refused.or(refused);
            }
            told(slimmed);
            return Ok(());
        }
    }
    if !job.dry_run && input != output {
        fs::copy(input, output).map_err(|source| SlimError::Write { path: output.to_owned(), source })?;
    }
    Ok(())
}

/// Compacts if it may, zeroes where that cannot be, and copies what cannot be slimmed at all; with the reason.
fn write_best(
    bytes: &[u8],
    plan: &Plan,
    compact: bool,
    output: &Path,
    mode: &fs::Permissions,
) -> Result<(u64, u64, Option<String>), SlimError> {
    let untouched = Plan::untouched(plan);
    let ways = [(compact, plan), (false, plan), (false, &untouched)];
    let mut reason = None;
    for (compacted, plan) in ways.into_iter().skip(usize::from(!compact)) {
        match write::write_slim(bytes, plan, compacted, output, mode.clone()) {
            Ok((length, written)) => return Ok((length, written, reason)),
            Err(error @ SlimError::Write { .. }) => return Err(error),
            Err(error) => reason = Some(error.to_string()),
        }
    }
    Err(SlimError::Unproven)
}

fn planned(path: String, bytes: &[u8], binary: &Binary, job: &Job<'_>) -> Slimmed {
    let refused = signed(bytes);
    // A signature covers every byte: such a file is left as it is.
    let plan = if refused.is_some() {
        Plan::default()
    } else {
        plan_and_tell(binary, bytes, job.targets, job.fits, job.cards, job.loads)
    };
    let length = bytes.len() as u64;
    let written = length - plan.patches.iter().map(|patch| patch.zeros).sum::<u64>().min(length);
    Slimmed { path, bytes_before: length, bytes_after: length, written, plan, refused }
}

/// Why a file must not be changed: it carries a signature over itself.
fn signed(bytes: &[u8]) -> Option<String> {
    let tail = bytes.get(bytes.len().saturating_sub(28)..).unwrap_or_default();
    tail.starts_with(b"~Module signature appended~")
        .then(|| "it is signed, and would not be valid any more".to_owned())
}

/// A wheel or another zip file: members with GPU code are slimmed, all others are copied as they are, and a wheel's
/// RECORD gets the new hashes.
fn wheel(
    input: &Path,
    bytes: &[u8],
    output: &Path,
    job: &Job<'_>,
    told: &mut dyn FnMut(Slimmed),
) -> Result<(), SlimError> {
    let wrong = |source: io::Error| SlimError::Write { path: output.to_owned(), source };
    let broken = |error: zip::result::ZipError| wrong(io::Error::new(io::ErrorKind::InvalidData, error));
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let beside = write::beside(output);
    let mut writer = None;
    if !job.dry_run {
        writer = Some(zip::ZipWriter::new(io::BufWriter::new(File::create(&beside).map_err(wrong)?)));
    }
    let result = (|| {
        let mut changed: Vec<(String, String)> = Vec::new();
        let mut record = None;
        for index in 0..archive.len() {
            let mut member = archive.by_index(index).map_err(broken)?;
            let name = member.name().map_err(broken)?.into_owned();
            if name.ends_with(".dist-info/RECORD") {
                record = Some(index);
                continue;
            }
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated)
                .large_file(member.size() > u64::from(u32::MAX))
                .unix_permissions(member.unix_mode().unwrap_or(0o644));
            let mut start = Vec::new();
            member.by_ref().take(16).read_to_end(&mut start).map_err(wrong)?;
            if is_candidate(&start) {
                let rest = member.size();
                member.by_ref().take(rest).read_to_end(&mut start).map_err(wrong)?;
                if let Ok(binary) = read(&start)
                    && !binary.modules.is_empty()
                {
                    let mut slimmed = planned(format!("{}!/{name}", input.display()), &start, &binary, job);
                    if !slimmed.plan.patches.is_empty()
                        && let Some(writer) = &mut writer
                    {
                        let mut content = write::in_memory(&start, &slimmed.plan, job.compact);
                        if let (Err(error), true) = (&content, job.compact) {
                            slimmed.refused = Some(error.to_string());
                            content = write::in_memory(&start, &slimmed.plan, false);
                        }
                        let content = content.unwrap_or_else(|error| {
                            slimmed.refused = Some(error.to_string());
                            start.clone()
                        });
                        slimmed.bytes_after = content.len() as u64;
                        writer.start_file(&name, options).map_err(broken)?;
                        writer.write_all(&content).map_err(wrong)?;
                        changed.push((name, record_fields(&content)));
                        told(slimmed);
                        continue;
                    }
                    told(slimmed);
                }
            }
            drop(member);
            if let Some(writer) = &mut writer {
                let member = archive.by_index_raw(index).map_err(broken)?;
                writer.raw_copy_file(member).map_err(broken)?;
            }
        }
        if let (Some(index), Some(writer)) = (record, &mut writer) {
            let mut text = String::new();
            let mut member = archive.by_index(index).map_err(broken)?;
            let name = member.name().map_err(broken)?.into_owned();
            member.read_to_string(&mut text).map_err(wrong)?;
            writer.start_file(&name, zip::write::SimpleFileOptions::default()).map_err(broken)?;
            writer.write_all(renewed(&text, &changed).as_bytes()).map_err(wrong)?;
        }
        if let Some(writer) = writer {
            writer
                .finish()
                .map_err(broken)?
                .into_inner()
                .map_err(|error| wrong(error.into_error()))?
                .sync_all()
                .map_err(wrong)?;
            fs::rename(&beside, output).map_err(wrong)?;
        }
        Ok(())
    })();
    if result.is_err() {
        fs::remove_file(&beside).ok();
    }
    result
}

/// `sha256=…,size`, as RECORD has it.
fn record_fields(content: &[u8]) -> String {
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(content));
    format!("sha256={hash},{}", content.len())
}

/// RECORD with the new fields of changed members. Names with commas are quoted there, and libraries have none.
fn renewed(record: &str, changed: &[(String, String)]) -> String {
    let line = |line: &str| {
        let name = line.split(',').next().unwrap_or_default();
        match changed.iter().find(|(known, _)| known == name) {
            Some((name, fields)) => format!("{name},{fields}\n"),
            None => format!("{line}\n"),
        }
    };
    record.lines().map(line).collect()
}
