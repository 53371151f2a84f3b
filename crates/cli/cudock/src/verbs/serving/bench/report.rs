//! The JSON reports; see docs/bench.md.

use cudock_engine::DeviceInfo;
use cudock_loadgen::engine_bench::{BatchRun, JsonCost};
use cudock_loadgen::payload::BenchProtocol;
use cudock_loadgen::{LoadReport, SearchStep};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BenchReport {
    pub(super) schema: u8,
    pub(super) url: String,
    pub(super) path: String,
    pub(super) protocol: BenchProtocol,
    pub(super) body_bytes: usize,
    pub(super) runs: Vec<LoadReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<SearchResult>,
}

/// The result of a rate search.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchResult {
    pub(super) target_p99_ms: f64,
    /// The highest rate within the target, if there is one.
    pub(super) rate: Option<f64>,
    pub(super) steps: Vec<SearchStep>,
}

/// The JSON report; see docs/bench.md.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EngineBenchReport {
    pub(super) schema: u8,
    pub(super) model: String,
    pub(super) device: DeviceInfo,
    pub(super) sessions: usize,
    pub(super) runs: Vec<BatchRun>,
    pub(super) best_batch: usize,
    pub(super) json: Option<JsonCost>,
}
