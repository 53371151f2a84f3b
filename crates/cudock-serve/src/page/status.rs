//! What `GET /status` tells, as plain data.
//!
//! Counts are totals since the model was loaded and never fall, so that whoever reads twice knows what happened in
//! between; `server.uptime_s` is the clock to divide by. Latencies are of the last ten seconds.

use cudock_engine::Provider;
use cudock_tensor::TensorSpec;
use serde::{Serialize, Serializer};

/// The whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StatusReport {
    /// Always 1: fields may be added, those that are there keep their names and meaning.
    pub(crate) schema: u32,
    pub(crate) server: ServerStatus,
    /// In the order in which the page lists them; the first is shown at the start.
    pub(crate) models: Vec<ModelStatus>,
    /// Those the models run on; a machine's CPU counts as one.
    pub(crate) devices: Vec<DeviceStatus>,
}

/// The process as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ServerStatus {
    pub(crate) version: String,
    /// Since it started, with its fraction.
    pub(crate) uptime_s: f64,
    pub(crate) state: ServerState,
    /// Why it is not healthy, in words for people.
    pub(crate) reason: Option<String>,
}

/// How the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServerState {
    /// All models answer on what they were asked to run on.
    Healthy,
    /// Something that was asked for is not there; what is there answers.
    Degraded,
    /// Models are being loaded and warmed.
    Starting,
    /// It takes nothing new and finishes what it has.
    Draining,
}

/// One version of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ModelStatus {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) state: ModelState,
    /// Name of the device it runs on; empty if it runs on none.
    pub(crate) device: String,
    /// None if it runs on nothing.
    pub(crate) provider: Option<Provider>,
    /// Why it is not as it was asked to be: no GPU, an engine being replaced, a file that cannot be loaded.
    pub(crate) degraded: Option<String>,
    /// Whether the first dimension of its tensors counts rows.
    pub(crate) batched: bool,
    #[serde(serialize_with = "specs")]
    pub(crate) inputs: Vec<TensorSpec>,
    #[serde(serialize_with = "specs")]
    pub(crate) outputs: Vec<TensorSpec>,
    /// Most rows of a batch.
    pub(crate) max_batch: usize,
    /// Values of blank paper and of ink for the page's drawing pad (`range` of `[serve.try]`).
    pub(crate) try_range: Option<[f64; 2]>,
    pub(crate) totals: Totals,
    pub(crate) queue: QueueStatus,
    pub(crate) latency_ms: Latencies,
    /// How often each size of batch ran since the model was loaded, by size; sizes that never ran are left out.
    pub(crate) batch_sizes: Vec<BatchCount>,
}

impl ModelStatus {
    /// A version that cannot be loaded, of which nothing is known but why.
    pub(crate) fn failed(name: String, version: String, reason: String) -> Self {
        Self {
            name,
            version,
            state: ModelState::Failed,
            device: String::new(),
            provider: None,
            degraded: Some(reason),
            batched: false,
            inputs: Vec::new(),
            outputs: Vec::new(),
            max_batch: 0,
            try_range: None,
            totals: Totals::default(),
            queue: QueueStatus::default(),
            latency_ms: Latencies::default(),
            batch_sizes: Vec::new(),
        }
    }
}

/// How a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelState {
    /// It answers.
    Ready,
    /// Its engine failed and is being replaced.
    Restarting,
    /// It cannot be loaded.
    Failed,
}

/// What came of the requests, each counted in one of them once it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Answered well.
    pub(crate) requests: u64,
    /// Rows of those.
    pub(crate) rows: u64,
    /// Batches the engine finished.
    pub(crate) batches: u64,
    /// Turned away because the queue was full or the server was going.
    pub(crate) refused: u64,
    /// Malformed, or the engine failed on them.
    pub(crate) failed: u64,
    /// The client left before.
    pub(crate) cancelled: u64,
    /// Its deadline passed in the queue.
    pub(crate) expired: u64,
}

/// What waits now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct QueueStatus {
    pub(crate) rows: usize,
    pub(crate) requests: usize,
}

/// Latency by stage, in milliseconds; none where nothing ended in the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Latencies {
    /// From the request's last byte to the start of its batch.
    pub(crate) queue: Option<Percentiles>,
    /// The batch with the engine.
    pub(crate) compute: Option<Percentiles>,
    /// From the request's last byte to the answer's first.
    pub(crate) total: Option<Percentiles>,
}

/// Half, nine tenths and all but a hundredth were no slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

/// How often a batch of that many rows ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BatchCount {
    pub(crate) rows: usize,
    pub(crate) count: u64,
}

/// A GPU, or the machine's CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DeviceStatus {
    pub(crate) name: String,
    /// Bytes; none where nobody tells.
    pub(crate) memory_used: Option<u64>,
    /// Bytes; none where nobody tells.
    pub(crate) memory_total: Option<u64>,
    /// Part of the last second in which it worked, 0 to 1; none where nobody tells.
    pub(crate) utilisation: Option<f64>,
}

/// Tensors as the Open Inference Protocol names their types and sizes.
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
    use cudock_tensor::DType;

    use super::*;

    fn digits() -> StatusReport {
        let tensor = |name: &str, row| TensorSpec {
            name: name.to_owned(),
            dtype: DType::F32,
            shape: vec![None, Some(row)],
            any_rank: false,
        };
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
                device: "cpu".to_owned(),
                provider: Some(Provider::Cpu),
                degraded: Some("cuda was asked for: no driver".to_owned()),
                batched: true,
                inputs: vec![tensor("image", 64)],
                outputs: vec![tensor("probabilities", 10)],
                max_batch: 64,
                try_range: Some([0.0, 16.0]),
                totals: Totals { requests: 10, rows: 20, batches: 5, ..Totals::default() },
                queue: QueueStatus { rows: 3, requests: 2 },
                latency_ms: Latencies { queue: stage(0.25), compute: stage(1.0), total: None },
                batch_sizes: vec![BatchCount { rows: 4, count: 5 }],
            }],
            devices: vec![DeviceStatus {
                name: "cpu".to_owned(),
                memory_used: Some(1 << 30),
                memory_total: Some(4 << 30),
                utilisation: None,
            }],
        }
    }

    #[test]
    fn the_report_has_the_names_that_the_page_reads() {
        let expected = serde_json::json!({
            "schema": 1,
            "server": {
                "version": "0.1.0", "uptime_s": 12.5, "state": "degraded", "reason": "digits runs on the CPU"
            },
            "models": [{
                "name": "digits", "version": "1", "state": "ready", "device": "cpu", "provider": "cpu",
                "degraded": "cuda was asked for: no driver", "batched": true,
                "inputs": [{"name": "image", "dtype": "FP32", "shape": [-1, 64]}],
                "outputs": [{"name": "probabilities", "dtype": "FP32", "shape": [-1, 10]}],
                "max_batch": 64, "try_range": [0.0, 16.0],
                "totals": {
                    "requests": 10, "rows": 20, "batches": 5, "refused": 0, "failed": 0, "cancelled": 0, "expired": 0
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
                {"name": "cpu", "memory_used": 1_073_741_824, "memory_total": 4_294_967_296_u64, "utilisation": null}
            ]
        });
        assert_eq!(serde_json::to_value(digits()).unwrap(), expected);
    }

    #[test]
    fn states_are_single_lower_case_words() {
        let words = serde_json::to_value([ModelState::Ready, ModelState::Restarting, ModelState::Failed]);
        assert_eq!(words.unwrap(), serde_json::json!(["ready", "restarting", "failed"]));
        let words =
            serde_json::to_value([ServerState::Healthy, ServerState::Starting, ServerState::Draining]);
        assert_eq!(words.unwrap(), serde_json::json!(["healthy", "starting", "draining"]));
    }

    #[test]
    fn a_model_that_cannot_be_loaded_says_why_and_runs_on_nothing() {
        let model = ModelStatus::failed("m".to_owned(), "2".to_owned(), "no such file".to_owned());
        let told = serde_json::to_value(model).unwrap();
        assert_eq!(told["state"], "failed");
        assert_eq!(told["degraded"], "no such file");
        assert!(told["provider"].is_null());
        assert_eq!(told["inputs"], serde_json::json!([]));
    }
}
