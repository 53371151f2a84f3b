//! Runs and resumes the sweep of a project on this machine, and carries out requests of commands.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cudock_base::text::error_chain;
use cudock_base::{ErrorKind, FileError, Report, Timestamp, UsageError, Usd};
use cudock_project::{Project, ProjectError, SweepFlags};
use cudock_sweep::{Event, Journal, JournalError, Sweep, SweepLog, SweepPlan};

use crate::drive::{DriveEnd, DriveError, SweepDriver, SweepObserver};
use crate::flags::{self, assign_gpus};
use crate::layout::SweepDir;
use crate::local::gpus::{local_gpus, slots};
use crate::local::local_runner::{LocalError, LocalOptions, LocalRunner};
use crate::requests::{SweepRequest, ask};

/// How long a lock may outlive the process that took it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Why a sweep cannot be run or changed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Report for SweepError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Project(error) => error.kind(),
            Self::Usage(error) => error.kind(),
            Self::Journal(error) => error.kind(),
            Self::Local(_) => ErrorKind::Outside,
            Self::File(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Project(error) => error.hints(),
            Self::Usage(error) => error.hints(),
            Self::Journal(JournalError::NoPrice) => {
                vec!["--price USD is the price of this machine for an hour".to_owned()]
            }
            Self::Journal(error) => error.hints(),
            Self::Local(_) | Self::File(_) => Vec::new(),
        }
    }

    fn excerpt(&self) -> Option<cudock_base::Excerpt<'_>> {
        match self {
            Self::Project(error) => error.excerpt(),
            _ => None,
        }
    }
}

impl From<DriveError<LocalError>> for SweepError {
    fn from(error: DriveError<LocalError>) -> Self {
        match error {
            DriveError::Journal(error) => Self::Journal(error),
            DriveError::Runner(error) => Self::Local(error),
        }
    }
}

/// A project and the name of its sweep.
#[derive(Debug)]
pub struct ProjectSweep {
    project: Project,
    directory: SweepDir,
    name: String,
}

impl ProjectSweep {
    /// Opens a project: a directory, or a file of the same format. The sweep has the given name, or that of the project.
    pub fn open(path: &Path, name: Option<&str>) -> Result<Self, SweepError> {
        let project = if path.is_dir() { Project::open(path)? } else { Project::read(path)? };
        let name = name.map_or_else(|| project.name(), str::to_owned);
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(UsageError::new(format!("invalid name of a sweep: `{name}`")).into());
        }
        let directory = SweepDir::of(&project.directory, &name);
        Ok(Self { project, directory, name })
    }

    pub fn directory(&self) -> &SweepDir {
        &self.directory
    }

    /// The sweep as recorded in its journal, whether it is running or not.
    pub fn read(&self) -> Result<Sweep, SweepError> {
        self.check_exists()?;
        let records = Journal::read(&self.directory.journal())?;
        Ok(Sweep::replay(&records).map_err(JournalError::from)?)
    }

    fn check_exists(&self) -> Result<(), SweepError> {
        if self.directory.journal().exists() {
            return Ok(());
        }
        Err(UsageError::new(format!("no sweep `{}` in {}", self.name, self.project.directory.display()))
            .hint("`cudock sweep` starts it")
            .into())
    }

    /// Sends a request to the process that runs the sweep, or if there is none, applies it to the
    /// journal. Returns whether it was carried out.
    pub fn ask(&self, request: SweepRequest) -> Result<bool, SweepError> {
        // An error is for the command that sends the request, not for the process that runs the
        // sweep.
        request.event(&self.read()?)?;
        match SweepLog::open(&self.directory.journal()) {
            Ok(mut log) => {
                if let Some(event) = request.event(log.sweep())? {
                    log.record(Timestamp::now().max(log.sweep().last_event()), vec![event])?;
                }
                Ok(true)
            }
            Err(JournalError::Locked { .. }) => Ok(ask(&self.directory, request)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Raises the number of trials by some.
    pub fn add(&self, count: u32) -> Result<bool, SweepError> {
        let limit = self.read()?.trial_limit().ok_or_else(|| {
            UsageError::new("the sweep has no limit of trials to raise: time or money ends it")
        })?;
        self.ask(SweepRequest::Raise { trials: limit + u64::from(count) })
    }

    /// Runs the sweep, or resumes it if it exists. `program` is this program, which also runs workers and containers.
    pub fn run(
        &self,
        flags: &SweepFlags,
        program: PathBuf,
        observer: &dyn SweepObserver,
        interrupted: &AtomicBool,
    ) -> Result<DriveEnd, SweepError> {
        let journal = self.directory.journal();
        if !journal.exists() {
            let mut plan = self.project.sweep_plan()?;
            plan.name.clone_from(&self.name);
            flags::apply(flags, &mut plan);
            let stated = self.project.manifest.sweep.as_ref().and_then(|sweep| sweep.gpus_per_trial);
            if stated.or(flags.gpus_per_trial).is_none() && local_gpus().is_empty() {
                assign_gpus(&mut plan, 0);
            }
            plan.check()?;
            check_machines(&plan)?;
            self.directory.create()?;
            let (runner, slots) = self.runner(plan.clone(), flags, program)?;
            let log =
                SweepLog::create(&journal, Timestamp::now(), plan, slots, flags::slot_price(flags, slots))?;
            return Ok(SweepDriver::new(log, runner, &self.directory, observer, interrupted).run()?);
        }
        let mut log = open_journal(&journal)?;
        let mut plan = log.sweep().plan().clone();
        self.check_unchanged(&plan, observer);
        flags::check_resumed(flags, &plan)?;
        check_machines(&plan)?;
        if let Some(trials) = flags.trials {
            let raise = SweepRequest::Raise { trials: u64::from(trials) }.event(log.sweep())?;
            log.record(Timestamp::now().max(log.sweep().last_event()), raise.into_iter().collect())?;
        }
        if let Some(end) = log.sweep().end() {
            return Ok(DriveEnd::Finished(end));
        }
        flags::apply_resources(flags, &mut plan);
        let (runner, slots) = self.runner(plan, flags, program)?;
        let price_per_hour = flags::slot_price(flags, slots).or(log.sweep().price_per_hour());
        let mut driver = SweepDriver::new(log, runner, &self.directory, observer, interrupted);
        driver.resume(Event::Resumed { slots, price_per_hour })?;
        Ok(driver.run()?)
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    /// The plan of the sweep: the one that it began with, or if it has not begun, that of the file
    /// and the flags.
    pub fn plan(&self, flags: &SweepFlags) -> Result<SweepPlan, SweepError> {
        if self.directory.journal().exists() {
            return Ok(self.read()?.plan().clone());
        }
        let mut plan = self.project.sweep_plan()?;
        plan.name.clone_from(&self.name);
        flags::apply(flags, &mut plan);
        plan.check()?;
        Ok(plan)
    }

    /// The journal for a runner that is not of this machine, and the event to resume with if the sweep exists.
    pub fn log(
        &self,
        plan: SweepPlan,
        slots: u32,
        price_per_hour: Option<Usd>,
    ) -> Result<(SweepLog, Option<Event>), SweepError> {
        let journal = self.directory.journal();
        if journal.exists() {
            return Ok((SweepLog::open(&journal)?, Some(Event::Resumed { slots, price_per_hour })));
        }
        self.directory.create()?;
        Ok((SweepLog::create(&journal, Timestamp::now(), plan, slots, price_per_hour)?, None))
    }

    fn runner(
        &self,
        plan: SweepPlan,
        flags: &SweepFlags,
        program: PathBuf,
    ) -> Result<(LocalRunner, u32), SweepError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let gpus = slots(&plan, &local_gpus(), cores)?;
        let count = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
        let working_directory = self.project.directory.canonicalize();
        let working_directory = working_directory.map_err(FileError::at("open", &self.project.directory))?;
        let options = LocalOptions {
            plan,
            directory: self.directory.clone(),
            working_directory,
            program,
            grace: flags::grace(flags),
        };
        Ok((LocalRunner::new(options, gpus)?, count))
    }

    /// Says so if `cudock.toml` now describes another sweep than the one that is resumed.
    fn check_unchanged(&self, plan: &SweepPlan, observer: &dyn SweepObserver) {
        let is_same = match self.project.sweep_plan() {
            Ok(now) => {
                now.space == plan.space && now.command == plan.command && now.objectives == plan.objectives
            }
            Err(error) => {
                observer.warning(&error_chain(&error));
                false
            }
        };
        if !is_same {
            observer.warning(&format!(
                "cudock.toml has changed since the sweep `{}` began; it continues with its original settings (--name NAME starts a new sweep)",
                plan.name
            ));
        }
    }
}

/// Refuses a sweep that chooses machines: this is one.
fn check_machines(plan: &SweepPlan) -> Result<(), UsageError> {
    let Some(name) = &plan.machine else { return Ok(()) };
    Err(UsageError::new(format!("parameter `{name}` chooses sizes of Azure, and this machine has one"))
        .hint("--on batch or --on ml runs each trial on the size that it chooses"))
}

/// Opens a journal that no other process uses. A process that was killed while it started another may have left its lock
/// to that one, for the moment until it is another program.
fn open_journal(path: &Path) -> Result<SweepLog, JournalError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match SweepLog::open(path) {
            Err(JournalError::Locked { .. }) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
            opened => return opened,
        }
    }
}
