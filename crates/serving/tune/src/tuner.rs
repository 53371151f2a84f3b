//! Carries out a search: starts servers, puts load on them, and reports.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cudock_base::text::format::duration;
use cudock_base::{ErrorKind, FileError, Report, UsageError, files};
use cudock_loadgen::results::text::{count, label};
use cudock_loadgen::{Load, LoadError, LoadSettings};
use cudock_project::{DeviceChoice, FILE_NAME, ProjectError, edit_serve};
use cudock_serve::{ModelSource, SettingsError, locate_models};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::options::TuneOptions;
use crate::report::{ReportInput, TuneReport, describe};
use crate::search::{Config, FINALISTS, Ladder, Measurement, Record, Search, SearchSettings, Trial};
use crate::serve_space::{ServeSpace, TuneSpaceError, TunedModel};
use crate::trial_server::{TrialError, TrialServer};

/// The default time of a search, of one measurement, and of the warm-up before it.
const TIME: Duration = Duration::from_secs(180);
const DURATION: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(300);
/// The first requests of a server have batch sizes that its engine has not seen.
const FIRST_WARM_UP: u32 = 3;
/// How long late responses are waited for.
const GRACE: Duration = Duration::from_secs(2);
/// The longest start of the current settings, which may build engines or download the runtime.
const FIRST_START: Duration = Duration::from_secs(600);
const MAX_CLIENTS: usize = 1024;
/// Rows that a server queues by default.
const QUEUE_ROWS: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    File(#[from] FileError),
    /// The current settings cannot be measured.
    #[error("cannot serve {}: {reason}", path.display())]
    Serve { path: PathBuf, reason: String },
    #[error(transparent)]
    Load(LoadError),
}

impl From<TuneSpaceError> for TuneError {
    fn from(error: TuneSpaceError) -> Self {
        match error {
            TuneSpaceError::Usage(error) => error.into(),
            TuneSpaceError::Settings(error) => error.into(),
        }
    }
}

impl Report for TuneError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(error) => error.kind(),
            Self::Settings(error) => error.kind(),
            Self::Project(error) => error.kind(),
            Self::File(error) => error.kind(),
            Self::Load(error) => error.kind(),
            Self::Serve { .. } => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Usage(error) => error.hints(),
            Self::Settings(error) => error.hints(),
            Self::Project(error) => error.hints(),
            Self::Load(error) => error.hints(),
            Self::File(_) => Vec::new(),
            Self::Serve { path, .. } => {
                vec![format!("`cudock serve {}` shows the whole log", path.display())]
            }
        }
    }
}

/// Searches for the best settings of a model. `serve` is the command that serves it with the settings on its standard input;
/// `progress` is called before each measurement.
pub fn tune(
    options: &TuneOptions<'_>,
    serve: &dyn Fn(DeviceChoice) -> Command,
    progress: &dyn Fn(&str),
) -> Result<TuneReport, TuneError> {
    let manifest = TunedManifest::open(options.path, options.is_written)?;
    let (source, file) = locate_models(options.path, None)?;
    if let ModelSource::Directory(directory) = &source {
        let message =
            format!("{} is a directory of models, and settings are those of one", directory.display());
        return Err(UsageError::new(message).hint("name a model file, or a project with a model").into());
    }
    let device = options.device.or(file.device).unwrap_or_default().resolve(cudock_host::has_gpu);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let queue_rows = file.queue_rows.unwrap_or(QUEUE_ROWS);
    let mut model = TunedModel { is_python: source.is_python(), options: file, processors };
    model.options.device = Some(device);
    let space = ServeSpace::new(&model, options.axes)?;
    let rows = options.requests.rows.iter().copied().max().unwrap_or(1).max(1);
    let warm_up = options.warm_up.unwrap_or(WARM_UP);
    let ladder = if options.clients.is_empty() {
        Ladder::up_to(MAX_CLIENTS.min(queue_rows / rows), options.target_p99.is_some())
    } else {
        Ladder::of(options.clients.to_vec())
    };
    let search = Search::new(
        space.space(),
        SearchSettings {
            budget: options.time.or((!options.is_exhaustive).then_some(TIME)),
            target_p99: options.target_p99,
            ladder,
            first_clients: space.busy_rows() / rows,
            rows,
            duration: options.duration.unwrap_or(DURATION),
            overhead: warm_up + Duration::from_millis(100),
            is_exhaustive: options.is_exhaustive,
        },
    );
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the program at once.
        let at_once = signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupted));
        let flag = at_once.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)));
        flag.map_err(|source| TuneError::Load(LoadError::Machine { what: "handle signals", source }))?;
    }
    let threads = options.threads.unwrap_or((processors / 4).clamp(1, 4));
    let mut tuner = Tuner {
        options,
        space: &space,
        manifest: &manifest,
        serve: &|| serve(device),
        interrupted: &interrupted,
        warm_up,
        threads,
        servers: Vec::new(),
    };
    let (search, elapsed) = tuner.run(search, progress)?;
    drop(tuner);
    let best = search.best();
    let changes = best.as_ref().map(|best| space.changes(&best.config)).unwrap_or_default();
    let edited = edit_serve(&manifest.path, &manifest.text, &changes)?;
    let is_changed = edited != manifest.original;
    if options.is_written && is_changed && !interrupted.load(Ordering::Relaxed) {
        manifest.write(&edited)?;
    }
    Ok(TuneReport::new(&ReportInput {
        options,
        device,
        elapsed,
        is_interrupted: interrupted.load(Ordering::Relaxed),
        search: &search,
        space: &space,
        file: &manifest.path,
        original: &manifest.original,
        edited: &edited,
        is_written: options.is_written && is_changed && !interrupted.load(Ordering::Relaxed),
    }))
}

/// The `cudock.toml` that is edited.
struct TunedManifest {
    path: PathBuf,
    /// Its text now; empty if it does not exist.
    original: String,
    /// The text to which changes are applied: a new file also names the model.
    text: String,
}

impl TunedManifest {
    fn open(path: &Path, is_written: bool) -> Result<Self, TuneError> {
        let is_file = path.file_name().is_some_and(|name| name == FILE_NAME);
        let file = if is_file { path.to_owned() } else { path.join(FILE_NAME) };
        if file.is_file() {
            let text = files::read_text(&file)?;
            return Ok(Self { path: file, original: text.clone(), text });
        }
        // A model without a project gets a file next to it.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = path.with_file_name(FILE_NAME);
        if is_written && file.exists() {
            let directory = file.parent().unwrap_or(Path::new("."));
            return Err(UsageError::new(format!("{} exists, and belongs to a project", file.display()))
                .hint(format!("tune the project: `cudock bench --tune {}`", directory.display()))
                .into());
        }
        // JSON's strings are TOML's.
        let text = format!("[workload]\nmodel = {}\n", serde_json::Value::from(name));
        Ok(Self { path: file, original: String::new(), text })
    }

    fn write(&self, text: &str) -> Result<(), FileError> {
        let write = if self.path.exists() { files::rewrite_atomically } else { files::write_atomically };
        write(&self.path, text.as_bytes()).map_err(FileError::at("write", &self.path))
    }
}

struct Tuner<'t> {
    options: &'t TuneOptions<'t>,
    space: &'t ServeSpace,
    manifest: &'t TunedManifest,
    serve: &'t dyn Fn() -> Command,
    interrupted: &'t AtomicBool,
    warm_up: Duration,
    threads: usize,
    /// The servers that are up, each with its settings.
    servers: Vec<(Config, TrialServer)>,
}

impl Tuner<'_> {
    fn run(&mut self, mut search: Search, progress: &dyn Fn(&str)) -> Result<(Search, Duration), TuneError> {
        let begin = Instant::now();
        while let Some(trial) = search.next_trial().filter(|_| !self.interrupted.load(Ordering::Relaxed)) {
            progress(&self.describe(&search, &trial, begin.elapsed()));
            let left = search.settings().budget.map(|budget| budget.saturating_sub(begin.elapsed()));
            let is_first = search.records().is_empty();
            let limit = left.filter(|_| !is_first).unwrap_or(FIRST_START);
            let (outcome, start) = self.measure(&trial, limit);
            let outcome = match outcome {
                Ok(measured) => Ok(measured),
                Err(_) if self.interrupted.load(Ordering::Relaxed) => break,
                Err(error) if is_first => return Err(self.fatal(error)),
                Err(error) => Err(error.to_string()),
            };
            search.record(Record { trial, outcome, start, elapsed: begin.elapsed() });
        }
        Ok((search, begin.elapsed()))
    }

    fn fatal(&self, error: TrialError) -> TuneError {
        match error {
            TrialError::Load(error) => TuneError::Load(error),
            error => TuneError::Serve { path: self.options.path.to_owned(), reason: error.to_string() },
        }
    }

    fn describe(&self, search: &Search, trial: &Trial, elapsed: Duration) -> String {
        let settings = describe(&self.space.settings(&trial.config));
        let time = match search.settings().budget {
            Some(budget) => format!("{} of {}", duration(elapsed), duration(budget)),
            None => duration(elapsed),
        };
        let best = search.best().map_or_else(String::new, |best| {
            format!("; best so far {} rows/s", count(best.measured.rows_per_second))
        });
        format!("{time}: {settings}, {}{best} …", label(Load::Closed { clients: trial.clients }))
    }

    /// Measures a trial; also returns how long a start took.
    fn measure(
        &mut self,
        trial: &Trial,
        limit: Duration,
    ) -> (Result<Measurement, TrialError>, Option<Duration>) {
        let is_up = self
            .servers
            .iter_mut()
            .position(|(config, server)| *config == trial.config && server.is_running());
        let start = match is_up {
            Some(_) => None,
            None => match self.start(trial, limit) {
                Ok(start) => Some(start),
                Err(error) => return (Err(error), None),
            },
        };
        (self.load(trial, start.is_some()), start)
    }

    /// Starts the server of a trial, in place of others except in a final; returns how long that took.
    fn start(&mut self, trial: &Trial, limit: Duration) -> Result<Duration, TrialError> {
        let begin = Instant::now();
        let keep = if trial.is_final { FINALISTS - 1 } else { 0 };
        let ended = self.servers.len().saturating_sub(keep);
        self.servers.drain(..ended);
        let mut changes = self.space.changes(&trial.config);
        // Load beyond the limit of one client is the purpose here.
        changes.push(("rate_limit", None));
        let text = edit_serve(&self.manifest.path, &self.manifest.text, &changes)
            .map_err(|error| TrialError::Failed(error.to_string()))?;
        let attempt =
            || TrialServer::start((self.serve)(), &text, &self.options.requests, limit, self.interrupted);
        let server = match attempt() {
            // Several servers may need more memory than the device has.
            Err(TrialError::Failed(_)) if !self.servers.is_empty() => {
                self.servers.clear();
                attempt()?
            }
            server => server?,
        };
        self.servers.push((trial.config.clone(), server));
        Ok(begin.elapsed())
    }

    fn load(&self, trial: &Trial, is_fresh: bool) -> Result<Measurement, TrialError> {
        let server = self.servers.iter().find(|(config, _)| *config == trial.config);
        let Some((_, server)) = server else {
            return Err(TrialError::Failed("the server is gone".to_owned()));
        };
        let load = Load::Closed { clients: trial.clients };
        let settings = LoadSettings {
            warm_up: if is_fresh { self.warm_up * FIRST_WARM_UP } else { self.warm_up },
            duration: trial.duration,
            grace: GRACE,
            threads: self.threads,
            check_every: 0,
            seed: self.options.requests.seed,
            ..LoadSettings::new(server.requests.address, load)
        };
        Ok(Measurement::of(&cudock_loadgen::run(&settings, &server.requests.requests)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_project_gets_a_file_that_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let model = directory.join("a \"b\".onnx");
        let manifest = TunedManifest::open(&model, true).unwrap();
        assert_eq!(manifest.text, "[workload]\nmodel = \"a \\\"b\\\".onnx\"\n");
        let edited = edit_serve(&manifest.path, &manifest.text, &[("lanes", Some("2".to_owned()))]).unwrap();
        manifest.write(&edited).unwrap();
        let project = cudock_project::Project::open(directory).unwrap();
        assert_eq!((project.model(), project.manifest.serve.lanes), (Some(model.clone()), Some(2)));
        let again = TunedManifest::open(&model, true).err().unwrap();
        assert!(again.hints()[0].contains("--tune"), "{again}");
        assert_eq!(TunedManifest::open(directory, true).unwrap().text, edited);
    }
}
