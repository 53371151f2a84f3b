//! What one instance answers, from a report of `cudock bench --format json`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use cudock_project::RequestRate;
use serde::Deserialize;

use super::asking::{Asking, Given};
use crate::failure::Failure;

/// Reports are some kilobytes.
const LONGEST: u64 = 64 << 20;

/// The parts of a report that say how much was answered. Runs against a server count requests; runs of an engine alone
/// count rows.
#[derive(Deserialize)]
struct Report {
    runs: Vec<Run>,
    search: Option<Search>,
    device: Option<Device>,
}

#[derive(Deserialize)]
struct Run {
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

/// A measured rate.
#[derive(Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) rate: f64,
    /// How it was measured.
    pub(super) how: String,
    /// The GPU it was measured on, as the driver names it.
    pub(super) device: Option<String>,
}

/// The rate that a report gives.
pub(super) fn read(text: &[u8]) -> Result<Measured, String> {
    let report: Report = serde_json::from_slice(text)
        .map_err(|error| format!("it is no report of `cudock bench`: {error}"))?;
    let device = report.device.map(|device| device.name);
    let (rate, how) = match &report.search {
        Some(Search { target_p99_ms, rate: Some(rate) }) => {
            (*rate, format!("the highest rate with a p99 of {target_p99_ms} ms"))
        }
        Some(Search { target_p99_ms, rate: None }) => {
            return Err(format!("no rate had a p99 of {target_p99_ms} ms: this instance is too slow"));
        }
        None => best(&report.runs),
    };
    if !(rate.is_finite() && rate > 0.0) {
        return Err("nothing was answered in it".to_owned());
    }
    Ok(Measured { rate, how, device })
}

/// The run that answered the most.
fn best(runs: &[Run]) -> (f64, String) {
    let requests = runs.iter().filter_map(|run| run.goodput_per_second).fold(0.0, f64::max);
    if requests > 0.0 {
        return (requests, "the most requests answered a second".to_owned());
    }
    let rows = runs.iter().filter_map(|run| run.with_json_rows_per_second.or(run.rows_per_second));
    (rows.fold(0.0, f64::max), "the most rows a second, without a server".to_owned())
}

impl Asking<'_> {
    /// Reads a report, and notes where the rate and the GPU are from.
    pub(super) fn measured_rate(&mut self, path: &Path, given: Given) -> Result<RequestRate, Failure> {
        let wrong = |problem: String| self.wrong(given, format!("{}: {problem}", path.display()), None);
        let mut text = Vec::new();
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        file.take(LONGEST).read_to_end(&mut text).map_err(|error| wrong(error.to_string()))?;
        let measured = read(&text).map_err(wrong)?;
        let source = format!("measured: {} ({})", measured.how, path.display());
        self.assume("workload.replica_rate", format!("{:.1}/s", measured.rate), source);
        let unsaid = self.flags.measured_on.is_none() && self.file().workload.measured_on.is_none();
        if unsaid && let Some(gpu) = measured.device.and_then(|name| self.gpu_of_device(&name)) {
            self.measured_on = Some(gpu.clone());
            self.assume("workload.measured_on", gpu, format!("the device in {}", path.display()));
        }
        Ok(RequestRate(measured.rate))
    }

    fn gpu_of_device(&self, name: &str) -> Option<String> {
        self.facts.gpus().by_product_name(name).map(|gpu| gpu.id.clone())
    }
}
