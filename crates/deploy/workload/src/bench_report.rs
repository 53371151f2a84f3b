//! The capacity of one replica, from a report of `cudock bench --format json`.

use std::time::Duration;

use cudock_base::{Rate, UsageError};
use serde::Deserialize;

use crate::builder::WorkloadBuilder;
use crate::inputs::InputFile;

/// The parts of a report that contain the throughput. Runs against a server count requests; runs of
/// an engine without a server count rows.
#[derive(Deserialize)]
struct BenchReport {
    runs: Vec<BenchRun>,
    search: Option<Search>,
    device: Option<Device>,
}

#[derive(Deserialize)]
struct BenchRun {
    goodput_per_second: Option<f64>,
    rows_per_second: Option<f64>,
    with_json_rows_per_second: Option<f64>,
}

#[derive(Deserialize)]
struct Search {
    target_p99_ms: f64,
    rate: Option<f64>,
}

#[derive(Deserialize)]
struct Device {
    name: String,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) rate: Rate,
    pub(crate) how: String,
    /// The GPU it was measured on, as the driver names it.
    pub(crate) device: Option<String>,
}

pub(crate) fn parse(text: &[u8]) -> Result<Measured, String> {
    let report: BenchReport =
        serde_json::from_slice(text).map_err(|error| format!("not a report of `cudock bench`: {error}"))?;
    let device = report.device.map(|device| device.name);
    let (rate, how) = match &report.search {
        Some(Search { target_p99_ms, rate: Some(rate) }) => {
            (*rate, format!("the highest rate with a p99 of {target_p99_ms} ms"))
        }
        Some(Search { target_p99_ms, rate: None }) => {
            return Err(format!("no rate reached a p99 of {target_p99_ms} ms: the instance is too slow"));
        }
        None => best(&report.runs),
    };
    match Rate::nearest(rate, Duration::from_secs(1)) {
        Some(rate) if !rate.is_zero() => Ok(Measured { rate, how, device }),
        _ => Err("it has no answered requests".to_owned()),
    }
}

/// The highest throughput of all runs, and its unit.
fn best(runs: &[BenchRun]) -> (f64, String) {
    let requests = runs.iter().filter_map(|run| run.goodput_per_second).fold(0.0, f64::max);
    if requests > 0.0 {
        return (requests, "the most requests per second".to_owned());
    }
    let rows = runs.iter().filter_map(|run| run.with_json_rows_per_second.or(run.rows_per_second));
    (rows.fold(0.0, f64::max), "the most rows per second, without a server".to_owned())
}

impl WorkloadBuilder<'_> {
    /// The rate in the report that is named, if one is; records where the rate and the GPU are from.
    pub(crate) fn measured_rate(&mut self) -> Result<Option<Rate>, UsageError> {
        let Some(InputFile { path, origin, content }) = &self.inputs.bench_report else { return Ok(None) };
        let wrong = |problem: String| self.invalid(*origin, format!("{}: {problem}", path.display()), None);
        let text = content.as_ref().map_err(|error| wrong(error.to_string()))?;
        let measured = parse(text).map_err(wrong)?;
        let source = format!("measured: {} ({})", measured.how, path.display());
        self.assume("workload.replica_rate", measured.rate.to_string(), source);
        let unknown = self.flags.measured_on.is_none() && self.file().workload.measured_on.is_none();
        if unknown && let Some(gpu) = measured.device.and_then(|name| self.gpu_of_device(&name)) {
            self.measured_on = Some(gpu.clone());
            self.assume("workload.measured_on", gpu, format!("the device in {}", path.display()));
        }
        Ok(Some(measured.rate))
    }

    fn gpu_of_device(&self, name: &str) -> Option<String> {
        self.facts.gpus().by_product_name(name).map(|gpu| gpu.id.clone())
    }
}
