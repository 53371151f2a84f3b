//! The report of `GET /status`.
//!
//! Counters are totals since the model was loaded and never decrease, so that a client that polls can compute rates;
//! `server.uptime_s` is the clock to divide by. Latencies are those of the last ten seconds.

use cudock_engine::{PrecisionReport, Provider};
use cudock_tensor::TensorSpec;
use serde::{Serialize, Serializer};

use crate::ModelListing;
use crate::metrics::{BatchSize, Latencies, RequestCounts};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StatusReport {
    /// Always 1: fields may be added, existing ones keep their name and meaning.
    pub(crate) schema: u32,
    pub(crate) server: ServerStatus,
    /// The models in the order of the page; the first one is selected initially.
    pub(crate) models: Vec<ModelStatus>,
    /// The devices that the models run on; the machine's CPU counts as one.
    pub(crate) devices: Vec<DeviceStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ServerStatus {
    pub(crate) version: String,
    /// Seconds since the start.
    pub(crate) uptime_s: f64,
    pub(crate) state: ServerState,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServerState {
    /// All models run on the requested device.
    Healthy,
    /// A model failed to load or does not run on the requested device; the others work.
    Degraded,
    /// Models are being loaded and warmed up.
    Starting,
    /// New requests are rejected, running ones finish.
    Draining,
}

/// One version of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ModelStatus {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) state: ModelState,
    /// Bytes on each of its devices while it is loaded, if measured.
    pub(crate) memory: Option<u64>,
    /// Whether it is never unloaded.
    pub(crate) kept_loaded: bool,
    /// Seconds since its last request.
    pub(crate) idle_s: Option<f64>,
    /// Name of its device; empty if it does not run.
    pub(crate) device: String,
    /// `None` if it does not run.
    pub(crate) provider: Option<Provider>,
    /// Why it is degraded: no GPU, an engine being replaced, a file that cannot be loaded.
    pub(crate) degraded: Option<String>,
    /// Whether the first dimension of its tensors is the row.
    pub(crate) batched: bool,
    #[serde(serialize_with = "specs")]
    pub(crate) inputs: Vec<TensorSpec>,
    #[serde(serialize_with = "specs")]
    pub(crate) outputs: Vec<TensorSpec>,
    /// Maximum number of rows of a batch.
    pub(crate) max_batch: usize,
    /// Rows that fit into the device's memory, if a batch did not.
    pub(crate) batch_limit: Option<usize>,
    /// The result of converting the model to another precision.
    pub(crate) precision: Option<PrecisionReport>,
    /// Values of background and ink for the page's drawing pad (`range` of `[serve.try]`).
    pub(crate) try_range: Option<[f64; 2]>,
    /// Whether requests may send image files.
    pub(crate) takes_images: bool,
    pub(crate) totals: RequestCounts,
    pub(crate) queue: QueueStatus,
    pub(crate) latency_ms: Latencies,
    /// Number of batches by size since the model was loaded.
    pub(crate) batch_sizes: Vec<BatchSize>,
}

impl ModelStatus {
    /// A version that cannot be loaded.
    pub(crate) fn failed(model: ModelListing) -> Self {
        let ModelListing { name, version, reason, .. } = model;
        Self { name, version, state: ModelState::Failed, degraded: Some(reason), ..Self::default() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelState {
    Ready,
    /// Its engine failed and is being replaced.
    Restarting,
    Loading,
    /// Loaded when a request arrives, or by a user.
    Unloaded,
    #[default]
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct QueueStatus {
    pub(crate) rows: usize,
    pub(crate) requests: usize,
}

/// A GPU, or the machine's CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DeviceStatus {
    pub(crate) name: String,
    /// Bytes, if known.
    pub(crate) memory_used: Option<u64>,
    /// Bytes, if known.
    pub(crate) memory_total: Option<u64>,
    /// Share of the last second in which it was busy, 0 to 1, if known.
    pub(crate) utilization: Option<f64>,
}

/// Serializes tensor specs with the names of the Open Inference Protocol.
fn specs<S: Serializer>(specs: &[TensorSpec], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Spec<'a> {
        name: &'a str,
        dtype: &'static str,
        shape: Vec<i64>,
    }
    serializer.collect_seq(specs.iter().map(|spec| Spec {
        name: &spec.name,
        dtype: spec.dtype.protocol_name(),
        shape: spec.protocol_shape(),
    }))
}

#[cfg(test)]
mod tests {
    use cudock_server::Percentiles;
    use cudock_tensor::DType;

    use super::*;

    fn digits() -> StatusReport {
        let tensor = |name: &str, row| TensorSpec::new(name, DType::F32, [None, Some(row)]);
        let stage = |p50| Some(Percentiles { p50, p90: p50 * 2.0, p99: p50 * 4.0 });
        StatusReport {
            schema: 1,
            server: ServerStatus {
                version: "0.1.0".to_owned(),
                uptime_s: 12.5,
                state: ServerState::Degraded,
                reason: Some("digits runs on the CPU".to_owned()),
            },
            models: vec![ModelStatus {
                name: "digits".to_owned(),
                version: "1".to_owned(),
                state: ModelState::Ready,
                memory: Some(1 << 20),
                kept_loaded: false,
                idle_s: Some(0.5),
                device: "cpu".to_owned(),
                provider: Some(Provider::Cpu),
                degraded: Some("cuda was asked for: no driver".to_owned()),
                batched: true,
                inputs: vec![tensor("image", 64)],
                outputs: vec![tensor("probabilities", 10)],
                max_batch: 64,
                batch_limit: Some(16),
                precision: None,
                try_range: Some([0.0, 16.0]),
                takes_images: true,
                totals: RequestCounts { requests: 10, rows: 20, batches: 5, ..RequestCounts::default() },
                queue: QueueStatus { rows: 3, requests: 2 },
                latency_ms: Latencies { queue: stage(0.25), compute: stage(1.0), total: None },
                batch_sizes: vec![BatchSize { rows: 4, count: 5, nanos: 1 }],
            }],
            devices: vec![DeviceStatus {
                name: "cpu".to_owned(),
                memory_used: Some(1 << 30),
                memory_total: Some(4 << 30),
                utilization: None,
            }],
        }
    }

    #[test]
    fn the_report_has_the_field_names_that_the_page_reads() {
        let expected = serde_json::json!({
            "schema": 1,
            "server": {
                "version": "0.1.0", "uptime_s": 12.5, "state": "degraded", "reason": "digits runs on the CPU"
            },
            "models": [{
                "name": "digits", "version": "1", "state": "ready", "memory": 1_048_576, "kept_loaded": false,
                "idle_s": 0.5, "device": "cpu", "provider": "cpu",
                "degraded": "cuda was asked for: no driver", "batched": true,
                "inputs": [{"name": "image", "dtype": "FP32", "shape": [-1, 64]}],
                "outputs": [{"name": "probabilities", "dtype": "FP32", "shape": [-1, 10]}],
                "max_batch": 64, "batch_limit": 16, "precision": null, "try_range": [0.0, 16.0],
                "takes_images": true,
                "totals": {
                    "requests": 10, "rows": 20, "batches": 5, "refused": 0, "failed": 0, "canceled": 0, "expired": 0
                },
                "queue": {"rows": 3, "requests": 2},
                "latency_ms": {
                    "queue": {"p50": 0.25, "p90": 0.5, "p99": 1.0},
                    "compute": {"p50": 1.0, "p90": 2.0, "p99": 4.0},
                    "total": null
                },
                "batch_sizes": [{"rows": 4, "count": 5}]
            }],
            "devices": [
                {"name": "cpu", "memory_used": 1_073_741_824, "memory_total": 4_294_967_296_u64, "utilization": null}
            ]
        });
        assert_eq!(serde_json::to_value(digits()).unwrap(), expected);
    }

    #[test]
    fn states_are_single_lower_case_words() {
        let states = [ModelState::Ready, ModelState::Restarting, ModelState::Loading, ModelState::Unloaded];
        let states = serde_json::to_value(states).unwrap();
        assert_eq!(states, serde_json::json!(["ready", "restarting", "loading", "unloaded"]));
        let states =
            serde_json::to_value([ServerState::Healthy, ServerState::Starting, ServerState::Draining]);
        assert_eq!(states.unwrap(), serde_json::json!(["healthy", "starting", "draining"]));
    }

    #[test]
    fn a_model_that_cannot_be_loaded_has_a_reason_and_no_device() {
        let model = ModelListing {
            name: "m".to_owned(),
            version: "2".to_owned(),
            ready: false,
            reason: "no such file".to_owned(),
        };
        let report = serde_json::to_value(ModelStatus::failed(model)).unwrap();
        assert_eq!(report["state"], "failed");
        assert_eq!(report["degraded"], "no such file");
        assert!(report["provider"].is_null());
        assert_eq!(report["inputs"], serde_json::json!([]));
    }
}
