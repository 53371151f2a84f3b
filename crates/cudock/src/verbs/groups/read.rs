//! The file of a group: found, read, and everything wrong in it told at once.

use std::path::{Path, PathBuf};

use cudock_base::files::read_text;
use cudock_group::Reading;
use cudock_runtime::group::{self, Settings};

use crate::failure::Failure;
use crate::output::{BLUE, DIM, styled};

/// What `up` runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The file of a group.
    Group(PathBuf),
    /// A directory with a project.
    Project(PathBuf),
}

/// The names a group's file has in a directory.
const NAMES: [&str; 2] = ["group.yaml", "group.yml"];

/// What the words name: a file, or what is in a directory.
pub(super) fn source(directory: Option<&Path>, file: Option<&Path>) -> Result<Source, Failure> {
    if let Some(file) = file {
        return Ok(Source::Group(file.to_owned()));
    }
    let directory = directory.unwrap_or(Path::new("."));
    if directory.is_file() {
        return Err(Failure::input(format!("{} is a file, not a directory", directory.display()))
            .hint(format!("cudock up -f {}", directory.display())));
    }
    if directory.join("cudock.toml").is_file() {
        return Ok(Source::Project(directory.to_owned()));
    }
    match NAMES.iter().map(|name| directory.join(name)).find(|file| file.is_file()) {
        Some(file) => Ok(Source::Group(file)),
        None => {
            Err(Failure::input(format!("{} has neither a group.yaml nor a cudock.toml", directory.display()))
                .hint("cudock up -f FILE names the file of a group"))
        }
    }
}

/// Reads the file of a group.
pub(super) fn read(file: &Path) -> Result<(String, Reading), Failure> {
    let text = read_text(file)?;
    match cudock_group::read(&text) {
        Ok(reading) => Ok((text, reading)),
        Err(error) => {
            // One after another, as compilers print them; the last is the error of this command.
            let mut faults = error.faults().iter().map(|fault| {
                let place = format!("{}:{}:{}", file.display(), fault.span.line, fault.span.column);
                Failure::input(format!("{place}: {}", fault.problem)).hint(fault.hint())
            });
            let mut last = faults.next().unwrap_or_else(|| Failure::input(error.to_string()));
            for fault in faults {
                last.print();
                last = fault;
            }
            Err(last)
        }
    }
}

/// What is worth knowing about a good group.
pub(super) fn print_notes(file: &Path, reading: &Reading, settings: &Settings) {
    for note in group::flags::notes(file, reading, settings) {
        anstream::eprintln!("{}: {note}", styled(BLUE, "note"));
    }
    for port in &settings.network.publish {
        anstream::eprintln!("{} {port}", styled(DIM, "publishes"));
    }
}
