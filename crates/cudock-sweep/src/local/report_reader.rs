//! Reads the reports of one attempt from wherever its program writes them.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::follow::{FileFollower, MlflowFollower};
use super::layout::TrialDir;
use super::lines::LineSplitter;
use super::metrics::{LineMetric, LineParser};
use super::protocol::{AttemptStart, MetricReport};
use crate::config::MetricSource;

/// Most reports of one metric in one attempt.
pub(crate) const MAX_REPORTS: u64 = 100_000;

/// Where reports come from, with the parser of lines.
enum ReportSource {
    Output(LineParser, LineSplitter),
    File(LineParser, FileFollower),
    Mlflow(MlflowFollower),
}

/// Finds the reports, numbers them, and writes them to the attempt's file before anybody sees them.
pub(crate) struct ReportReader {
    source: ReportSource,
    reports: Reports,
}

struct Reports {
    objectives: Vec<String>,
    counts: Vec<u64>,
    path: PathBuf,
    file: Option<File>,
    pending: Vec<MetricReport>,
    /// How many of the pending ones are in the file.
    written: usize,
}

impl ReportReader {
    pub(crate) fn new(start: &AttemptStart) -> Result<Self, regex::Error> {
        let source = match &start.metrics {
            MetricSource::Stdout(format) => {
                ReportSource::Output(LineParser::new(&start.objectives, format)?, LineSplitter::default())
            }
            MetricSource::File { path, format } => ReportSource::File(
                LineParser::new(&start.objectives, format)?,
                FileFollower::new(start.directory.join(path)),
            ),
            MetricSource::Mlflow { path } => {
                ReportSource::Mlflow(MlflowFollower::new(start.directory.join(path), &start.objectives))
            }
        };
        let reports = Reports {
            objectives: start.objectives.clone(),
            counts: vec![0; start.objectives.len()],
            path: TrialDir::at(&start.directory).metrics(start.attempt),
            file: None,
            pending: Vec::new(),
            written: 0,
        };
        Ok(Self { source, reports })
    }

    /// Reads bytes of output.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        if let ReportSource::Output(parser, lines) = &mut self.source {
            lines.feed(bytes, &mut |line| self.reports.add_all(parser.metrics(line)));
        }
        self.reports.write();
    }

    /// Reads what was appended to files; returns whether that was all.
    pub(crate) fn read_files(&mut self) -> bool {
        let is_complete = match &mut self.source {
            ReportSource::Output(..) => true,
            ReportSource::File(parser, file) => {
                file.read(&mut |line| self.reports.add_all(parser.metrics(line)))
            }
            ReportSource::Mlflow(follower) => follower.read(&mut |metric| self.reports.add(&metric)),
        };
        self.reports.write();
        is_complete
    }

    /// Reads what is left after the program has ended.
    pub(crate) fn finish(&mut self) {
        while !self.read_files() && !self.reports.is_full() {}
        let reports = &mut self.reports;
        match &mut self.source {
            ReportSource::Output(parser, lines) => {
                lines.finish(&mut |line| reports.add_all(parser.metrics(line)));
            }
            ReportSource::File(parser, file) => {
                file.finish(&mut |line| reports.add_all(parser.metrics(line)));
            }
            ReportSource::Mlflow(_) => {}
        }
        self.reports.write();
    }

    /// The reports since the last call.
    pub(crate) fn take(&mut self) -> Vec<MetricReport> {
        self.reports.written = 0;
        std::mem::take(&mut self.reports.pending)
    }

    /// What to say about reports that were not used.
    pub(crate) fn note(&self) -> Option<String> {
        let full = self.reports.counts.iter().position(|count| *count > MAX_REPORTS)?;
        let name = self.reports.objectives.get(full)?;
        Some(format!("metric `{name}` was reported more than {MAX_REPORTS} times; later reports are ignored"))
    }
}

impl Reports {
    fn add_all(&mut self, metrics: Vec<LineMetric>) {
        for metric in metrics {
            self.add(&metric);
        }
    }

    fn add(&mut self, metric: &LineMetric) {
        let Some((count, name)) =
            self.counts.get_mut(metric.objective).zip(self.objectives.get(metric.objective))
        else {
            return;
        };
        *count += 1;
        if *count <= MAX_REPORTS {
            let (interval, metric_name) = (*count, name.clone());
            self.pending.push(MetricReport {
                metric: metric_name,
                interval,
                step: metric.step,
                value: metric.value,
            });
        }
    }

    fn is_full(&self) -> bool {
        self.counts.iter().all(|count| *count > MAX_REPORTS)
    }

    /// Appends to the file what is pending. If that fails, the sweep still gets the reports, unless it is killed.
    fn write(&mut self) {
        let unwritten = self.pending.get(self.written..).unwrap_or_default();
        if unwritten.is_empty() {
            return;
        }
        if self.file.is_none() {
            self.file = File::create(&self.path).ok();
        }
        let mut text = Vec::new();
        for report in unwritten {
            if serde_json::to_writer(&mut text, report).is_ok() {
                text.push(b'\n');
            }
        }
        if let Some(file) = &mut self.file {
            let _ = file.write_all(&text);
        }
        self.written = self.pending.len();
    }
}
