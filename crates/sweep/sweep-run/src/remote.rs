//! Shared by the runners of services: the command of a trial, and the metrics in its output.

use cudock_base::bug::Parts;
use cudock_sweep::{Assignment, Event, MetricSource, SweepPlan, TrialId};

use crate::command::with_parameters;
use crate::metrics::LineParser;

/// The command of a trial, with its parameters.
pub fn trial_words(plan: &SweepPlan, parameters: &Assignment) -> Vec<String> {
    with_parameters(plan, parameters)
}

/// Finds the metrics in the standard output of an attempt, of which more is read each time.
#[derive(Debug)]
pub struct OutputMetrics {
    parser: Option<LineParser>,
    names: Vec<String>,
    /// The reports of each objective so far.
    counts: Vec<u64>,
    /// The bytes that were read.
    read: usize,
}

impl OutputMetrics {
    pub fn new(plan: &SweepPlan) -> Self {
        let names: Vec<String> = plan.objectives.iter().map(|objective| objective.metric.clone()).collect();
        let parser = match &plan.metrics {
            MetricSource::Stdout(format) => Some(LineParser::new(&names, format)),
            MetricSource::File { .. } | MetricSource::Mlflow { .. } => None,
        };
        Self { parser, counts: vec![0; names.len()], names, read: 0 }
    }

    /// The reports in the part of the output that is new. A line without its end counts only in the last part.
    pub fn reports(&mut self, trial: TrialId, attempt: u32, output: &str, is_last: bool) -> Vec<Event> {
        let Some(parser) = &self.parser else { return Vec::new() };
        let rest = output.get(self.read..).unwrap_or_default();
        let complete = if is_last { rest.len() } else { rest.rfind('\n').map_or(0, |end| end + 1) };
        self.read += complete;
        let mut events = Vec::new();
        for line in rest.part(..complete).lines() {
            for found in parser.metrics(line) {
                let Some((count, name)) =
                    self.counts.get_mut(found.objective).zip(self.names.get(found.objective))
                else {
                    continue;
                };
                *count += 1;
                events.push(Event::Reported {
                    trial,
                    attempt,
                    metric: name.clone(),
                    interval: *count,
                    step: found.step,
                    value: found.value,
                });
            }
        }
        events
    }
}
