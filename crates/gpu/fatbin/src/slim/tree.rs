//! Slims files, directories and wheels.
//!
//! The input is analyzed before anything is written, so that a target without any code stops the run early. A directory is
//! written to a temporary directory and renamed when it is complete.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use cudock_mmap::map;

use super::job::{SlimJob, Slimmed, planned};
use super::write::{self, SlimError, temp_path};
use super::{SlimPlan, wheel};
use crate::read::{is_candidate, read};

/// Where to write results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlimOutput<'a> {
    /// Write nothing, only report.
    DryRun,
    InPlace,
    /// Write a new file or directory.
    To(&'a Path),
}

/// Slims `input` to `output`: a file to a file, a directory to a directory, a wheel to a wheel. `report` is called for each
/// file with GPU code, and for each file that is not a regular file and could not be copied.
///
/// Symlinks in a directory stay symlinks, and hard links stay hard links.
pub fn slim(
    input: &Path,
    output: SlimOutput<'_>,
    job: &SlimJob<'_>,
    report: &mut dyn FnMut(Slimmed),
) -> Result<(), SlimError> {
    // A named symlink stands for its target.
    let is_link = fs::symlink_metadata(input).map_err(read_error(input))?.is_symlink();
    let real = if is_link { input.canonicalize().map_err(read_error(input))? } else { input.into() };
    let mut planned = Vec::new();
    let report_planned = &mut |file| planned.push(file);
    let mut survey = TreeWalker { job, report: report_planned, names: HashMap::new(), done: HashMap::new() };
    survey.entry(&real, &Sink::None)?;
    let names = survey.names;
    let has_code = planned.iter().any(|file: &Slimmed| file.plan.before > 0);
    for (index, target) in job.targets.iter().enumerate() {
        let loadable = |file: &Slimmed| file.plan.loadable.get(index).is_some_and(|modules| *modules > 0);
        if has_code && !planned.iter().any(loadable) {
            return Err(SlimError::NoCode { target: *target });
        }
    }
    let mut walk = TreeWalker { job, report, names, done: HashMap::new() };
    match output {
        SlimOutput::DryRun => planned.into_iter().for_each(walk.report),
        SlimOutput::InPlace => walk.entry(&real, &Sink::InPlace)?,
        SlimOutput::To(output) if real.is_dir() => walk.write_directory(&real, output)?,
        SlimOutput::To(output) => walk.entry(&real, &Sink::To(output.to_owned()))?,
    }
    Ok(())
}

fn read_error(path: &Path) -> impl FnOnce(io::Error) -> SlimError {
    |source| SlimError::Read { path: path.to_owned(), source }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> SlimError {
    |source| SlimError::Write { path: path.to_owned(), source }
}

/// Where to write the result of one file.
enum Sink {
    None,
    InPlace,
    To(PathBuf),
}

impl Sink {
    fn path<'a>(&'a self, input: &'a Path) -> Option<&'a Path> {
        match self {
            Sink::None => None,
            Sink::InPlace => Some(input),
            Sink::To(path) => Some(path),
        }
    }

    fn child(&self, name: &std::ffi::OsStr) -> Sink {
        match self {
            Sink::None => Sink::None,
            Sink::InPlace => Sink::InPlace,
            Sink::To(path) => Sink::To(path.join(name)),
        }
    }
}

/// The device and inode of a file with several hard links.
type FileId = (u64, u64);

struct TreeWalker<'a> {
    job: &'a SlimJob<'a>,
    report: &'a mut dyn FnMut(Slimmed),
    /// The number of names in the input of each file with several hard links.
    names: HashMap<FileId, u64>,
    /// The path of the result of such a file.
    done: HashMap<FileId, PathBuf>,
}

impl TreeWalker<'_> {
    /// Writes a directory to a temporary path first: the output is complete or does not exist.
    fn write_directory(&mut self, input: &Path, output: &Path) -> Result<(), SlimError> {
        // If the path does not exist yet, its existing ancestor decides.
        let output_at = std::path::absolute(output).map_err(write_error(output))?;
        let above = output_at.ancestors().skip(1).find_map(|path| path.canonicalize().ok());
        let whole = input.canonicalize().map_err(read_error(input))?;
        if above.is_some_and(|above| above.starts_with(&whole)) {
            return Err(SlimError::OutputInside { path: output.to_owned() });
        }
        match fs::read_dir(output).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(SlimError::OutputNotEmpty { path: output.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(write_error(output)(error)),
        }
        if let Some(parent) = output.parent() {
            fs::create_dir_all(parent).map_err(write_error(parent))?;
        }
        let staging = temp_path(output);
        let result = self
            .entry(input, &Sink::To(staging.clone()))
            .and_then(|()| fs::rename(&staging, output).map_err(write_error(output)));
        if result.is_err() {
            fs::remove_dir_all(&staging).ok();
        }
        result
    }

    fn entry(&mut self, input: &Path, sink: &Sink) -> Result<(), SlimError> {
        let metadata = fs::symlink_metadata(input).map_err(read_error(input))?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            return self.directory(input, sink, metadata.permissions());
        }
        if kind.is_symlink() {
            return match sink {
                Sink::To(output) => copy_link(input, output).map_err(write_error(output)),
                Sink::None | Sink::InPlace => Ok(()),
            };
        }
        if !kind.is_file() {
            if matches!(sink, Sink::To(_)) {
                (self.report)(skipped(input, kind));
            }
            return Ok(());
        }
        let id = id(&metadata);
        // A file whose first name was already replaced may have a single name left.
        if metadata.nlink() < 2 && !self.names.contains_key(&id) {
            return self.file(input, sink, &metadata).map(drop);
        }
        match (sink, self.done.get(&id)) {
            (Sink::None, _) => {
                let names = self.names.entry(id).or_default();
                *names += 1;
                if *names > 1 {
                    return Ok(());
                }
            }
            (_, Some(first)) => {
                let output = sink.path(input).unwrap_or(input);
                return link_again(first, output).map_err(write_error(output));
            }
            (_, None) => {}
        }
        let written = self.file(input, sink, &metadata)?;
        if let (true, Some(output)) = (written, sink.path(input)) {
            self.done.insert(id, output.to_owned());
        }
        Ok(())
    }

    fn directory(&mut self, input: &Path, sink: &Sink, mode: fs::Permissions) -> Result<(), SlimError> {
        if let Sink::To(output) = sink {
            fs::create_dir(output).map_err(write_error(output))?;
        }
        let entries = fs::read_dir(input).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(read_error(input))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            self.entry(&entry.path(), &sink.child(&entry.file_name()))?;
        }
        if let Sink::To(output) = sink {
            fs::set_permissions(output, mode).map_err(write_error(output))?;
        }
        Ok(())
    }

    /// Slims a regular file; returns whether anything was written.
    fn file(&mut self, input: &Path, sink: &Sink, metadata: &fs::Metadata) -> Result<bool, SlimError> {
        let mut start = Vec::new();
        let read_start = File::open(input).and_then(|file| file.take(16).read_to_end(&mut start));
        read_start.map_err(read_error(input))?;
        let is_zip = start.starts_with(b"PK\x03\x04");
        let output = sink.path(input);
        if is_candidate(&start) || is_zip {
            let bytes = map(input).map_err(|error| read_error(input)(error.source))?;
            if is_zip {
                return wheel::slim(input, &bytes, output, self.job, self.report);
            }
            if let Ok(binary) = read(&bytes)
                && binary.has_code()
            {
                let mut slimmed = planned(input.display().to_string(), &bytes, &binary, self.job);
                let nothing = slimmed.plan.patches.is_empty();
                let output = output.filter(|_| !(nothing && matches!(sink, Sink::InPlace)));
                if let Some(output) = output {
                    let (compact, mode) = (self.job.compact && !nothing, metadata.permissions());
                    let (length, written, warning) =
                        write_best(&bytes, &slimmed.plan, compact, output, &mode)?;
                    (slimmed.bytes_after, slimmed.written) = (length, written);
                    slimmed.warning = slimmed.warning.or(warning).or_else(|| self.split_from(metadata, sink));
                }
                (self.report)(slimmed);
                return Ok(output.is_some());
            }
        }
        match sink {
            Sink::To(output) => write::copy_file(input, output).map(|()| true),
            Sink::None | Sink::InPlace => Ok(false),
        }
    }

    /// A warning if a replaced file has hard links outside of the input, which keep the old content.
    fn split_from(&self, metadata: &fs::Metadata, sink: &Sink) -> Option<String> {
        let inside = self.names.get(&id(metadata)).copied().unwrap_or(1);
        let outside = metadata.nlink().saturating_sub(inside);
        (outside > 0 && matches!(sink, Sink::InPlace))
            .then(|| format!("{outside} hard link(s) to this file outside of the input keep the old content"))
    }
}

fn id(metadata: &fs::Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// The report of a file that cannot be copied.
fn skipped(input: &Path, kind: fs::FileType) -> Slimmed {
    let what = if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Slimmed {
        path: input.display().to_string(),
        bytes_before: 0,
        bytes_after: 0,
        written: 0,
        plan: SlimPlan::default(),
        warning: Some(format!("not copied: {what}, not a regular file")),
    }
}

fn copy_link(input: &Path, output: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(input)?, output)
}

/// Makes `output` a hard link to a file that was already written.
fn link_again(first: &Path, output: &Path) -> io::Result<()> {
    let temp = temp_path(output);
    fs::hard_link(first, &temp)?;
    fs::rename(&temp, output).inspect_err(|_| drop(fs::remove_file(&temp)))
}

/// Compacts the file if requested, else only zeroes code, else copies it; returns the reason.
fn write_best(
    bytes: &[u8],
    plan: &SlimPlan,
    compact: bool,
    output: &Path,
    mode: &fs::Permissions,
) -> Result<(u64, u64, Option<String>), SlimError> {
    let unchanged = SlimPlan::unchanged(plan);
    let attempts = [(compact, plan), (false, plan), (false, &unchanged)];
    let mut reason = None;
    for (compacted, plan) in attempts.into_iter().skip(usize::from(!compact)) {
        match write::write_slim(bytes, plan, compacted, output, mode.clone()) {
            Ok((length, written)) => return Ok((length, written, reason)),
            Err(error @ SlimError::Write { .. }) => return Err(error),
            Err(error) => reason = Some(error.to_string()),
        }
    }
    Err(SlimError::VerificationFailed)
}
