//! The report of a search.

use std::path::Path;
use std::time::Duration;

use cudock_base::text::format::{count as count_of, duration};
use cudock_loadgen::results::plot::{Curve, throughput};
use cudock_loadgen::results::text::{count, milliseconds};
use cudock_project::DeviceChoice;
use schemars::JsonSchema;
use serde::Serialize;
use similar::TextDiff;

use crate::chart::{Point, terminal};
use crate::options::TuneOptions;
use crate::search::{Best, Config, Measurement, Rival, Search};
use crate::serve_space::{ServeSpace, SettingMap};

/// Combinations in the text.
const SHOWN: usize = 5;

#[derive(Debug, Serialize, JsonSchema)]
pub struct TuneReport {
    schema: u8,
    model: String,
    device: &'static str,
    target_p99_ms: Option<f64>,
    /// How long the search took.
    seconds: f64,
    /// Whether a signal ended it early.
    interrupted: bool,
    /// The settings that the search started from.
    current: Option<TunedRun>,
    best: Option<TunedRun>,
    /// Throughput of the best settings relative to the current ones.
    gain: Option<f64>,
    /// The half width of the confidence interval (95 %) of the gain, as a share of it, if there was a final of several rounds.
    gain_error: Option<f64>,
    /// Settings that were ahead in the final, but too little to replace the current ones.
    tied: Option<TiedRun>,
    /// Whether the best settings meet the target.
    target_met: bool,
    trials: Vec<TrialReport>,
    /// The `cudock.toml` that has or would get the best settings.
    file: String,
    /// The change to it, as a unified diff without names of files.
    diff: String,
    written: bool,
}

/// Settings with their throughput and latency at the load that suits them best.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct TunedRun {
    /// Settings of `[serve]` that differ from the defaults.
    settings: SettingMap,
    clients: usize,
    #[serde(flatten)]
    measured: Measurement,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct TiedRun {
    #[serde(flatten)]
    run: TunedRun,
    /// Throughput relative to the current settings, and the half width of its confidence interval as a share of it.
    gain: f64,
    gain_error: Option<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct TrialReport {
    settings: SettingMap,
    clients: usize,
    seconds: f64,
    /// Whether it was measured again beside the other finalists.
    #[serde(rename = "final")]
    is_final: bool,
    /// How long the server took to start, if it was started for this trial.
    start_seconds: Option<f64>,
    measured: Option<Measurement>,
    /// Why there is no measurement.
    error: Option<String>,
}

/// Inputs of a report.
pub(crate) struct ReportInput<'a> {
    pub(crate) options: &'a TuneOptions<'a>,
    pub(crate) device: DeviceChoice,
    pub(crate) elapsed: Duration,
    pub(crate) is_interrupted: bool,
    pub(crate) search: &'a Search,
    pub(crate) space: &'a ServeSpace,
    pub(crate) file: &'a Path,
    pub(crate) original: &'a str,
    pub(crate) edited: &'a str,
    pub(crate) is_written: bool,
}

impl TuneReport {
    pub(crate) fn new(input: &ReportInput<'_>) -> Self {
        let settings = |config: &Config| input.space.settings(config);
        let run = |best: Best| TunedRun {
            settings: settings(&best.config),
            clients: best.clients,
            measured: best.measured,
        };
        let (current, best) = (input.search.current().map(run), input.search.best().map(run));
        let (tied, rival): (Option<Rival>, Option<Rival>) = match input.search.rival() {
            Some(rival) if rival.is_tie => (Some(rival), None),
            rival => (None, rival),
        };
        let rate = |run: &Option<TunedRun>| run.as_ref().map(|run| run.measured.rows_per_second);
        let ratio =
            rate(&best).zip(rate(&current)).map(|(best, current)| best / current.max(f64::MIN_POSITIVE));
        let trials = input.search.records().iter().map(|record| TrialReport {
            settings: settings(&record.trial.config),
            clients: record.trial.clients,
            seconds: record.trial.duration.as_secs_f64(),
            is_final: record.trial.is_final,
            start_seconds: record.start.map(|start| start.as_secs_f64()),
            measured: record.outcome.as_ref().ok().copied(),
            error: record.outcome.as_ref().err().cloned(),
        });
        let name = input.file.display().to_string();
        let diff = TextDiff::from_lines(input.original, input.edited);
        let diff = diff.unified_diff().context_radius(1).to_string();
        Self {
            schema: 1,
            model: input.options.path.display().to_string(),
            device: match input.device {
                DeviceChoice::Cuda => "cuda",
                DeviceChoice::TensorRt => "tensorrt",
                DeviceChoice::Auto | DeviceChoice::Cpu => "cpu",
            },
            target_p99_ms: input.options.target_p99.map(|target| target.as_secs_f64() * 1e3),
            seconds: input.elapsed.as_secs_f64(),
            interrupted: input.is_interrupted,
            gain: rival.as_ref().map(|rival| rival.gain).or(ratio),
            gain_error: rival.and_then(|rival| rival.error),
            tied: tied.map(|tied| TiedRun { run: run(tied.best), gain: tied.gain, gain_error: tied.error }),
            target_met: best.as_ref().is_some_and(|best| best.measured.is_within(input.options.target_p99)),
            trials: trials.collect(),
            current,
            best,
            diff,
            file: name,
            written: input.is_written,
        }
    }

    /// Whether settings were found that meet the target.
    pub fn is_success(&self) -> bool {
        self.target_met
    }

    /// The change to `cudock.toml`; empty if there is none.
    pub fn diff(&self) -> &str {
        &self.diff
    }

    /// The report as text, without the diff.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let Some(best) = &self.best else { return vec!["nothing was measured".to_owned()] };
        let run = |run: &TunedRun| {
            let (rate, latency) = (count(run.measured.rows_per_second), milliseconds(run.measured.p99_ms));
            format!("{rate} rows/s with {}, p99 {latency}", count_of(run.clients, "client"))
        };
        let mut lines = vec![format!("best: {}", describe(&best.settings)), run(best)];
        if let Some((current, gain)) = self.current.as_ref().zip(self.gain) {
            let error = |error: Option<f64>| {
                error.map_or_else(String::new, |error| format!(" (±{:.1} %)", error * 1e2))
            };
            lines.push(match self.tied.as_ref().filter(|tied| tied.gain > 1.0) {
                Some(TiedRun { run, gain, gain_error }) => format!(
                    "the current settings stay: {} was only {:.1} % faster{}",
                    describe(&run.settings),
                    (gain - 1.0) * 1e2,
                    error(*gain_error)
                ),
                None if current.settings == best.settings => {
                    "nothing better than the current settings was found".to_owned()
                }
                None => format!(
                    "{gain:.2} times the current settings{}: {}",
                    error(self.gain_error),
                    run(current)
                ),
            });
        }
        if let Some(target) = self.target_p99_ms.filter(|_| !self.target_met) {
            let kept_once =
                self.trials.iter().any(|trial| trial.measured.is_some_and(|run| run.p99_ms <= target));
            let target = milliseconds(target);
            lines.push(if kept_once {
                format!("missed: settings that once kept p99 within {target} did not when measured again")
            } else {
                format!("missed: no settings keep p99 within {target}")
            });
        }
        if best.settings.contains_key("precision") {
            lines.push("note: another precision changes results; check the accuracy of the model".to_owned());
        }
        let points: Vec<Point> = [(None, '·'), (self.current.as_ref(), 'o'), (Some(best), '*')]
            .into_iter()
            .flat_map(|(of, mark)| self.points(of).into_iter().map(move |(ms, rate)| (ms, rate, mark)))
            .collect();
        lines.extend(terminal(&points, "* best  o current  · others", width));
        lines.extend(self.table());
        let failed = self.trials.iter().filter(|trial| trial.error.is_some()).count();
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let ended = if self.interrupted { ", interrupted" } else { "" };
        lines.push(format!(
            "{} measured in {}{failed}{ended}",
            count_of(self.trials.len(), "trial"),
            duration(Duration::from_secs_f64(self.seconds))
        ));
        lines
    }

    /// The best combinations, each at its best load. Those that were longer in the final come first: the highest of many
    /// single measurements is too high.
    fn table(&self) -> Vec<String> {
        let is_within = |run: &Measurement| self.target_p99_ms.is_none_or(|target| run.p99_ms <= target);
        let mut ranked: Vec<(usize, &TrialReport, Measurement)> = Vec::new();
        for trial in &self.trials {
            let is_same = |other: &&TrialReport| {
                other.is_final && other.clients == trial.clients && other.settings == trial.settings
            };
            let finals: Vec<Measurement> =
                self.trials.iter().filter(is_same).filter_map(|other| other.measured).collect();
            if let Some(run) = Measurement::typical(&finals).or(trial.measured) {
                ranked.push((finals.len(), trial, run));
            }
        }
        let key = |(rounds, _, run): &(usize, &TrialReport, Measurement)| {
            (*rounds, is_within(run), run.rows_per_second)
        };
        ranked.sort_by(|one, other| key(other).partial_cmp(&key(one)).unwrap_or(std::cmp::Ordering::Equal));
        let mut rows: Vec<(&TrialReport, Measurement)> = Vec::new();
        for (_, trial, run) in ranked {
            if rows.len() < SHOWN && !rows.iter().any(|(other, _)| other.settings == trial.settings) {
                rows.push((trial, run));
            }
        }
        let mut lines = vec![format!("{:>10}{:>10}{:>9}  settings", "rows/s", "p99", "clients")];
        lines.extend(rows.iter().map(|(trial, run)| {
            let (rate, latency) = (count(run.rows_per_second), milliseconds(run.p99_ms));
            format!("{rate:>10}{latency:>10}{:>9}  {}", trial.clients, describe(&trial.settings))
        }));
        lines
    }

    /// Latency and throughput of all measurements, or of those with the settings of a run.
    fn points(&self, of: Option<&TunedRun>) -> Vec<(f64, f64)> {
        let meant = |trial: &&TrialReport| of.is_none_or(|run| run.settings == trial.settings);
        let runs = self.trials.iter().filter(meant).filter_map(|trial| trial.measured);
        let mut points: Vec<(f64, f64)> = runs.map(|run| (run.p99_ms, run.rows_per_second)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    }

    /// The chart of throughput against latency, as SVG.
    pub fn svg(&self) -> String {
        let curve = |label: &'static str, run: Option<&TunedRun>| {
            run.map(|run| Curve { label, points: self.points(Some(run)) })
        };
        let curves: Vec<Curve<'_>> =
            [curve("current", self.current.as_ref()), curve("best", self.best.as_ref())]
                .into_iter()
                .flatten()
                .collect();
        throughput(&self.model, &curves, &self.points(None), self.target_p99_ms)
    }
}

/// Settings in one line: `lanes = 2, max_batch = 64`.
pub(crate) fn describe(settings: &SettingMap) -> String {
    if settings.is_empty() {
        return "the defaults".to_owned();
    }
    let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    settings.join(", ")
}
