//! Reads the reports of one attempt from wherever its program writes them.

use cudock_sweep::MetricSource;

use super::follow::{FileFollower, MlflowFollower};
use super::lines::LineSplitter;
use super::protocol::{AttemptStart, MetricReport};
use crate::metrics::{LineMetric, LineParser};

/// Maximum number of reports of one metric in one attempt.
pub(crate) const MAX_REPORTS: u64 = 100_000;

/// The source of reports, with the parser of lines.
enum ReportSource {
    Output(LineParser, LineSplitter),
    File(LineParser, FileFollower),
    Mlflow(MlflowFollower),
}

/// Finds the reports, and numbers them.
pub(crate) struct ReportReader {
    source: ReportSource,
    reports: Reports,
}

struct Reports {
    objectives: Vec<String>,
    counts: Vec<u64>,
    pending: Vec<MetricReport>,
}

impl ReportReader {
    pub(crate) fn new(start: &AttemptStart) -> Self {
        let source = match &start.metrics {
            MetricSource::Stdout(format) => {
                ReportSource::Output(LineParser::new(&start.objectives, format), LineSplitter::default())
            }
            MetricSource::File { path, format } => ReportSource::File(
                LineParser::new(&start.objectives, format),
                FileFollower::new(start.directory.join(path)),
            ),
            MetricSource::Mlflow { path } => {
                ReportSource::Mlflow(MlflowFollower::new(start.directory.join(path), &start.objectives))
            }
        };
        let reports = Reports {
            objectives: start.objectives.clone(),
            counts: vec![0; start.objectives.len()],
            pending: Vec::new(),
        };
        Self { source, reports }
    }

    /// Reads bytes of output.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        if let ReportSource::Output(parser, lines) = &mut self.source {
            lines.feed(bytes, &mut |line| self.reports.add_all(parser.metrics(line)));
        }
    }

    /// Reads what was appended to files; returns whether that was all.
    pub(crate) fn read_files(&mut self) -> bool {
        match &mut self.source {
            ReportSource::Output(..) => true,
            ReportSource::File(parser, file) => {
                file.read(&mut |line| self.reports.add_all(parser.metrics(line)))
            }
            ReportSource::Mlflow(follower) => follower.read(&mut |metric| self.reports.add(&metric)),
        }
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
    }

    /// The reports since the last call.
    pub(crate) fn take(&mut self) -> Vec<MetricReport> {
        std::mem::take(&mut self.reports.pending)
    }

    /// A note about reports that were not used.
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
}
