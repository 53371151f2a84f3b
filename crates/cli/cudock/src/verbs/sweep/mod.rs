//! `cudock sweep`: hyperparameter sweeps on this machine and on Azure.

mod azure;

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use cudock_base::{Timestamp, files};
use cudock_cli::{SweepArgs, SweepCommand, SweepName};
use cudock_facts::Facts;
use cudock_sweep::{Sweep, TrialId};
use cudock_sweep_report as view;
use cudock_sweep_run::{DriveEnd, ProjectSweep, SweepDir, SweepError, SweepObserver, SweepRequest};

use self::azure::AzureEnd;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Csv, PlanFormat, line, note, redraws, status, warning, width};

/// Lines of the live table.
const LIVE_ROWS: usize = 20;

/// The shortest time between two tables.
const REDRAW: Duration = Duration::from_millis(200);

pub(crate) fn run(
    facts: impl FnOnce() -> Result<Facts, Failure>,
    args: &SweepArgs,
    format: PlanFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    match &args.local.command {
        None => start(facts, args, format, is_verbose),
        Some(SweepCommand::Show { sweep, html, optuna }) => {
            let project = open(sweep)?;
            let sweep = project.read()?;
            write(html.as_deref(), || view::html(&sweep, shown_at(&sweep)))?;
            write(optuna.as_deref(), || view::optuna_journal(&sweep, shown_at(&sweep)))?;
            Ok(print(&sweep, project.directory(), format, is_verbose))
        }
        Some(command) => {
            if !ask(command)? {
                warning("the running sweep has not answered yet; it will");
            }
            Ok(Outcome::Yes)
        }
    }
}

fn open(sweep: &SweepName) -> Result<ProjectSweep, SweepError> {
    ProjectSweep::open(&sweep.directory, sweep.name.as_deref())
}

/// Sends the command's request to the sweep; `show` has none. Returns false if it was not handled in time.
fn ask(command: &SweepCommand) -> Result<bool, SweepError> {
    match command {
        SweepCommand::Show { .. } => Ok(true),
        SweepCommand::Pause { sweep } => open(sweep)?.ask(SweepRequest::Pause),
        SweepCommand::Stop { sweep, trial: None } => open(sweep)?.ask(SweepRequest::Cancel),
        SweepCommand::Stop { sweep, trial: Some(trial) } => {
            open(sweep)?.ask(SweepRequest::Stop { trial: TrialId(*trial) })
        }
        SweepCommand::Add { sweep, count } => open(sweep)?.add(*count),
    }
}

/// The process of a worker.
pub(crate) fn run_worker(lock: &Path) -> Result<Outcome, Failure> {
    let worked = cudock_sweep_run::run_worker(lock);
    worked.map(|()| Outcome::Yes).map_err(|error| Failure::outside(format!("sweep worker failed: {error}")))
}

fn start(
    facts: impl FnOnce() -> Result<Facts, Failure>,
    args: &SweepArgs,
    format: PlanFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let sweep = open(&args.local.sweep)?;
    let setup = |error: std::io::Error| Failure::outside(format!("cannot set up the sweep: {error}"));
    let program = std::env::current_exe().map_err(setup)?;
    let observer = Printer { directory: sweep.directory(), drawn: Cell::new(None) };
    let end = if args.azure.on.is_some() {
        match azure::run(&facts()?, args, &sweep, &observer)? {
            AzureEnd::Trials(end) => end,
            AzureEnd::Other(outcome) => return Ok(outcome),
        }
    } else {
        let interrupted = cudock_sweep_run::watch_interrupts().map_err(setup)?;
        sweep.run(&args.local.flags, program, &observer, &interrupted)?
    };
    observer.erase();
    match end {
        DriveEnd::Interrupted => {
            status("interrupted; re-run the same command to resume");
            return Ok(Outcome::Program(130));
        }
        DriveEnd::Paused => note("the sweep is paused; `cudock sweep` resumes it"),
        DriveEnd::Finished(_) => {}
    }
    Ok(print(&sweep.read()?, sweep.directory(), format, is_verbose))
}

/// The time at which a sweep is shown: a sweep that does not run has no later one than that of its last event.
fn shown_at(sweep: &Sweep) -> Timestamp {
    if sweep.live().next().is_some() { Timestamp::now() } else { sweep.last_event() }
}

fn write(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    files::write_atomically(path, text().as_bytes())
        .map_err(|error| Failure::outside(format!("cannot write {}: {error}", path.display())))
}

/// Prints the report. Returns [`Outcome::No`] if the sweep has ended without any result.
fn print(sweep: &Sweep, directory: &SweepDir, format: PlanFormat, is_verbose: bool) -> Outcome {
    let now = shown_at(sweep);
    let logs = directory.failure_logs(sweep);
    match format {
        PlanFormat::Text => line(view::show(sweep, &logs, now, is_verbose)),
        PlanFormat::Json => output::json(&view::report(sweep, &logs, now)),
        PlanFormat::Other(Csv) => line(view::csv(sweep, now).trim_end()),
    }
    if sweep.end().is_some() && sweep.front().is_empty() { Outcome::No } else { Outcome::Yes }
}

/// Shows a running sweep: as a table that is drawn again, or a line for each trial that ends.
struct Printer<'a> {
    directory: &'a SweepDir,
    /// When the table was drawn, and its lines.
    drawn: Cell<Option<(Instant, usize)>>,
}

impl Printer<'_> {
    fn draw(&self, sweep: &Sweep, now: Timestamp) {
        if redraws() && self.drawn.get().is_none_or(|(at, _)| at.elapsed() >= REDRAW) {
            let lines = view::live(sweep, now, width(), LIVE_ROWS);
            self.erase();
            status(lines.join("\n"));
            self.drawn.set(Some((Instant::now(), lines.len())));
        }
    }

    /// Removes the table from the screen.
    fn erase(&self) {
        if let Some((_, lines)) = self.drawn.take() {
            output::redraw(&format!("\x1b[{lines}A\x1b[J"));
        }
    }
}

impl SweepObserver for Printer<'_> {
    fn recorded(&self, sweep: &Sweep, ended: &[TrialId], now: Timestamp) {
        if redraws() {
            return self.draw(sweep, now);
        }
        for trial in ended.iter().filter_map(|trial| sweep.trial(*trial)) {
            trial.ending(&sweep.plan().objectives).into_iter().for_each(status);
            let log = self.directory.failure_log(trial);
            log.iter().flat_map(view::log_end).for_each(status);
        }
    }

    fn tick(&self, sweep: &Sweep, now: Timestamp) {
        self.draw(sweep, now);
    }

    fn warning(&self, text: &str) {
        self.erase();
        warning(text);
    }
}
