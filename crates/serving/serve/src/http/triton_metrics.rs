//! The metrics of Triton, for its dashboards and alerts:
//! <https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/metrics.html>.
#![allow(clippy::cast_precision_loss, reason = "Prometheus counts in floating point")]

use std::sync::Arc;
use std::time::Duration;

use cudock_server::Exposition;

use crate::metrics::ModelTotals;
use crate::model::Model;
use crate::proc::status_bytes;
use crate::settings::DeviceReading;

type ModelValue = fn(&ModelTotals) -> f64;
type MemoryValue = fn(u64, u64) -> u64;
type DeviceValue = fn(&DeviceReading) -> Option<f64>;

/// Name, description and value of each counter of a model.
const COUNTERS: [(&str, &str, ModelValue); 8] = [
    ("nv_inference_request_success", "Successful requests.", |totals| totals.counts.requests as f64),
    ("nv_inference_count", "Rows of successful requests.", |totals| totals.counts.rows as f64),
    ("nv_inference_exec_count", "Batches run.", |totals| totals.counts.batches as f64),
    ("nv_inference_request_duration_us", "Time of successful requests.", |totals| {
        microseconds(totals.stages.total.sum())
    }),
    ("nv_inference_queue_duration_us", "Time of successful requests in the queue.", |totals| {
        microseconds(totals.stages.queue.sum())
    }),
    ("nv_inference_compute_input_duration_us", "Time to copy inputs.", |totals| microseconds(totals.input)),
    ("nv_inference_compute_infer_duration_us", "Time in the engine.", |totals| {
        microseconds(totals.stages.compute.sum().saturating_sub(totals.input + totals.output))
    }),
    ("nv_inference_compute_output_duration_us", "Time to copy outputs.", |totals| {
        microseconds(totals.output)
    }),
];

const FAILURES: &str = "nv_inference_request_failure";

/// Each reason of a failure, and the number of requests that failed for it.
const REASONS: [(&str, ModelValue); 3] = [
    ("REJECTED", |totals| (totals.counts.rejected + totals.counts.expired) as f64),
    ("CANCELED", |totals| totals.counts.canceled as f64),
    ("BACKEND", |totals| totals.counts.failed as f64),
];

const PENDING: &str = "nv_inference_pending_request_count";

/// Name, kind, description and value of each metric of a GPU.
const GPU_METRICS: [(&str, &str, &str, DeviceValue); 6] = [
    ("nv_gpu_utilization", "gauge", "Share of time a kernel ran.", |gpu| gpu.utilization),
    ("nv_gpu_memory_total_bytes", "gauge", "Memory of the GPU.", |gpu| Some(gpu.memory_total as f64)),
    ("nv_gpu_memory_used_bytes", "gauge", "Memory in use on the GPU.", |gpu| Some(gpu.memory_used as f64)),
    ("nv_gpu_power_usage", "gauge", "Power of the GPU in watts.", |gpu| gpu.power_watts),
    ("nv_gpu_power_limit", "gauge", "Power limit of the GPU in watts.", |gpu| gpu.power_limit_watts),
    ("nv_energy_consumption", "counter", "Energy used by the GPU in joules.", |gpu| {
        gpu.energy_millijoules.map(|energy| energy as f64 / 1000.0)
    }),
];

/// Name, description and value, from all and free bytes, of each metric of the machine's memory.
const MEMORY: [(&str, &str, MemoryValue); 2] = [
    ("nv_cpu_memory_total_bytes", "Memory of the machine.", |total, _| total),
    ("nv_cpu_memory_used_bytes", "Memory in use on the machine.", u64::saturating_sub),
];

/// Writes them all.
pub(super) fn write(
    page: &mut Exposition,
    models: &[(&Arc<Model>, ModelTotals)],
    readings: &[DeviceReading],
) {
    for (name, help, value) in COUNTERS {
        page.family(name, "counter", help);
        for (model, totals) in models {
            page.sample(name, &model.labels(), value(totals));
        }
    }
    page.family(FAILURES, "counter", "Failed requests.");
    for (model, totals) in models {
        for (reason, count) in REASONS {
            let [name, version] = model.labels();
            page.sample(FAILURES, &[name, version, ("reason", reason)], count(totals));
        }
    }
    page.family(PENDING, "gauge", "Queued requests.");
    for (model, _) in models {
        page.sample(PENDING, &model.labels(), model.queue.status().requests as f64);
    }
    for (name, kind, help, value) in GPU_METRICS {
        page.family(name, kind, help);
        for gpu in readings {
            if let Some(value) = value(gpu) {
                page.sample(name, &[("gpu_uuid", gpu.uuid.as_deref().unwrap_or_default())], value);
            }
        }
    }
    let bytes = |line: &str| status_bytes("/proc/meminfo", line);
    if let Some((total, free)) = bytes("MemTotal:").zip(bytes("MemAvailable:")) {
        for (name, help, value) in MEMORY {
            page.family(name, "gauge", help);
            page.sample(name, &[], value(total, free) as f64);
        }
    }
}

fn microseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round()
}
