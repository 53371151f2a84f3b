//! `cudock lock`: every package of the project's image with its hash.

use std::sync::Arc;

use cudock_base::Environment;
use cudock_cli::LockArgs;
use cudock_facts::Facts;
use cudock_lock::{LockError, LockFile, LockReport, LockState, PackageFetcher, Upgrade};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line};
use crate::steps::progress::Lines;
use crate::steps::project::project;

fn upgrade(args: &LockArgs) -> Upgrade {
    match args.upgrade.as_slice() {
        [] => Upgrade::No,
        names if names.iter().any(String::is_empty) => Upgrade::All,
        names => Upgrade::Packages(names.to_vec()),
    }
}

pub(crate) fn run(facts: &Facts, args: &LockArgs, format: Format) -> Result<Outcome, Failure> {
    let project = project(&args.path)?;
    let report = if args.check {
        let path = cudock_lock::path_of(&project);
        let missing = || LockError::Missing { directory: project.directory.clone() };
        let Some(lock) = LockFile::read(&path)? else {
            output::status(missing().to_string());
            return Ok(Outcome::No);
        };
        let reasons = cudock_lock::stale_reasons(&project, facts, &lock)?;
        LockReport::checked(path, &lock, reasons)
    } else {
        let environment = Environment::of_process();
        let fetcher = PackageFetcher::new(&environment, Arc::new(Lines::default()))?;
        cudock_lock::lock(&project, facts, &environment, &fetcher, &upgrade(args))?
    };
    match format {
        Format::Json => output::report(&report),
        Format::Text => line(report.text().trim_end()),
    }
    Ok(if report.state == LockState::Stale { Outcome::No } else { Outcome::Yes })
}
