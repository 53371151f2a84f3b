//! The metrics of Triton.

use std::sync::Arc;
use std::time::Instant;

use cudock_serve::DeviceReading;

use crate::engine::POISON;
use crate::support::{TestServer, eventually};

/// The metrics in the queries of Triton's Grafana dashboard, `deploy/k8s-onprem/dashboard.json` in its repository.
const DASHBOARD: [&str; 5] = [
    "nv_inference_count",
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_queue_duration_us",
];

/// The other metrics in Triton's documentation that are not about caches and shared memory.
const DOCUMENTED: [&str; 14] = [
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_output_duration_us",
    "nv_inference_pending_request_count",
    "nv_gpu_utilization",
    "nv_gpu_memory_total_bytes",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_power_usage",
    "nv_gpu_power_limit",
    "nv_energy_consumption",
    "nv_cpu_memory_total_bytes",
    "nv_cpu_memory_used_bytes",
    "cudock_requests_total",
];

fn reading() -> DeviceReading {
    DeviceReading {
        name: "H200".to_owned(),
        uuid: Some("GPU-7".to_owned()),
        gpu: 0,
        memory_used: 5,
        memory_total: 10,
        utilization: Some(0.5),
        power_watts: Some(300.5),
        power_limit_watts: Some(700.0),
        energy_millijoules: Some(2500),
        processes: Vec::new(),
        taken: Instant::now(),
    }
}

#[test]
fn every_query_of_tritons_dashboard_has_an_answer() {
    let server = Arc::new(TestServer::start(|settings| {
        settings.read_devices = Arc::new(|| vec![reading()]);
    }));
    let input = r#"{"input": [[1, 2], [3, 4]]}"#;
    assert_eq!(server.send("POST", "/predict", "", input).status, 200);
    assert_eq!(server.predict(POISON).join().unwrap().0, 500);
    eventually("the failure is counted", || server.metric("cudock_failed_total") == 1);
    let page = server.get("/metrics").text;
    for name in DASHBOARD.iter().chain(&DOCUMENTED) {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name}");
        assert!(
            page.lines()
                .any(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} "))),
            "{name}"
        );
    }
    for sample in [
        "nv_inference_request_success{model=\"double\",version=\"1\"} 1",
        "nv_inference_count{model=\"double\",version=\"1\"} 2",
        "nv_inference_exec_count{model=\"double\",version=\"1\"} 1",
        "nv_inference_request_failure{model=\"double\",version=\"1\",reason=\"BACKEND\"} 1",
        "nv_inference_request_failure{model=\"double\",version=\"1\",reason=\"REJECTED\"} 0",
        "nv_inference_pending_request_count{model=\"double\",version=\"1\"} 0",
        "nv_gpu_utilization{gpu_uuid=\"GPU-7\"} 0.5",
        "nv_gpu_power_usage{gpu_uuid=\"GPU-7\"} 300.5",
        "nv_energy_consumption{gpu_uuid=\"GPU-7\"} 2.5",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample}\n{page}");
    }
}
