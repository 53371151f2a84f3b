//! `cudock lock`: every package of the project's image with its hash.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use cudock_base::Environment;
use cudock_facts::Facts;
use cudock_lock::{LockError, LockFile, LockReport, LockState, PackageFetcher, Upgrade};
use cudock_project::{FILE_NAME, Project};

use super::containers::reports;
use super::progress::Lines;
use crate::failure::{Failure, Outcome};
use crate::output::{Format, line};

/// Write cudock.lock: every wheel and Debian package of the image with its hash
///
/// Versions of Python packages are chosen by uv. Indexes and mirrors are those of pip, uv and apt. See docs/lock.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock lock
  cudock lock --upgrade
  cudock lock --upgrade torch
  cudock lock --check")]
pub(crate) struct LockArgs {
    /// Project directory or cudock.toml
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,

    /// Choose the newest versions, of all packages or of these
    #[arg(long, value_name = "PACKAGE", num_args = 0..=1, default_missing_value = "", conflicts_with = "check")]
    pub(crate) upgrade: Vec<String>,

    /// Write nothing, and exit with 1 if the lock is missing or out of date
    #[arg(long)]
    pub(crate) check: bool,
}

impl LockArgs {
    fn upgrade(&self) -> Upgrade {
        match self.upgrade.as_slice() {
            [] => Upgrade::No,
            names if names.iter().any(String::is_empty) => Upgrade::All,
            names => Upgrade::Packages(names.to_vec()),
        }
    }
}

pub(super) fn run(facts: &Facts, args: &LockArgs, format: Format) -> Result<Outcome, Failure> {
    let project = project(&args.path)?;
    let report = if args.check {
        let path = cudock_lock::path_of(&project);
        let missing = || LockError::Missing { directory: project.directory.clone() };
        let Some(lock) = LockFile::read(&path)? else {
            crate::output::status(missing().to_string());
            return Ok(Outcome::No);
        };
        let reasons = cudock_lock::stale_reasons(&project, facts, &lock)?;
        LockReport::checked(path, &lock, reasons)
    } else {
        let environment = Environment::of_process();
        let fetcher = PackageFetcher::new(&environment, Arc::new(Lines::default()))?;
        cudock_lock::lock(&project, facts, &environment, &fetcher, &args.upgrade())?
    };
    match format {
        Format::Json => reports::print(&report),
        Format::Text => line(report.text().trim_end()),
    }
    Ok(if report.state == LockState::Stale { Outcome::No } else { Outcome::Yes })
}

/// The project of a directory or file.
pub(super) fn project(path: &Path) -> Result<Project, Failure> {
    let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
    Ok(Project::read(&file)?)
}
