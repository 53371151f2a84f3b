//! Endpoints for operators, and API keys.

use std::collections::BTreeMap;
use std::process::Command;

use crate::serve_support::client::Ask;
use crate::serve_support::made::times;
use crate::serve_support::server::Stage;
use cudock_testkit::onnx;

const ROW: &str = "[[1, 2, 3, 4]]";

#[test]
fn without_a_key_only_liveness_is_answered() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    // Made for this run; a key in a file of the project would not be secret.
    let keys: Vec<String> = (0..2).map(|number| format!("{number}-{:x}", std::process::id())).collect();
    let file = stage.write("keys", format!("{}\n\n{}\n", keys[0], keys[1]).as_bytes());
    let server = stage.serve("double.onnx", &["--api-keys", file.to_str().unwrap(), "--log-requests"]);
    for ask in [
        Ask::predict(ROW),
        Ask::get("/metrics"),
        Ask::get("/health"),
        Ask::get("/v2/models/double"),
        Ask::post("/v2/repository/models/double/load", ""),
    ] {
        let reply = server.ask(&ask);
        assert_eq!(
            (reply.status, reply.header("www-authenticate")),
            (401, Some("Bearer")),
            "{}",
            reply.text()
        );
        assert_eq!(server.ask(&ask.clone().with("x-api-key", "wrong")).status, 401);
        assert_eq!(server.ask(&ask.clone().with("authorization", format!("Basic {}", keys[0]))).status, 401);
        server.ask(&ask.clone().with("x-api-key", &keys[0])).ok();
        server.ask(&ask.with("authorization", format!("Bearer {}", keys[1]))).ok();
    }
    for path in ["/live", "/ready", "/v2/health/live", "/v2/health/ready"] {
        server.get(path).ok();
    }
    let log = server.log();
    assert!(log.contains("path=/predict") && !keys.iter().any(|key| log.contains(key)), "{log}");
}

#[test]
fn a_server_with_a_certificate_speaks_tls() {
    let Some(stage) = Stage::new() else { return };
    let Some((chain, key)) = crate::serve_support::tls::certificate(&stage, "server") else { return };
    stage.write("double.onnx", &times(2.0));
    let (certificate, key) = (chain.to_str().unwrap(), key.to_str().unwrap());
    let server = stage.serve("double.onnx", &["--tls-cert", certificate, "--tls-key", key]);
    let port = server.address.port();
    for version in ["--http1.1", "--http2"] {
        let output = Command::new("curl")
            .args(["-sS", version, "--cacert", certificate, "-d", &format!("{{\"input\": {ROW}}}")])
            .arg(format!("https://localhost:{port}/predict"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("[[2.0,4.0,6.0,8.0]]"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(server.log().contains("https://127.0.0.1"), "{}", server.log());
    // A client without TLS gets no response, and does not disturb the server.
    let mut plain = server.connect();
    plain.send(&Ask::get("/live")).unwrap();
    assert!(plain.receive().is_err());
}

#[test]
fn metrics_are_what_prometheus_reads_and_count_what_was_done() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    for rows in 1..=5 {
        let input = vec!["[1, 2, 3, 4]"; rows].join(", ");
        server.ask(&Ask::predict(&format!("[{input}]"))).ok();
    }
    let reply = server.get("/metrics").ok();
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = reply.text();
    let mut kinds = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert!(kinds.insert(name, kind).is_none(), "{name} is declared twice");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} is not explained");
    }
    let metrics = server.metrics();
    for name in metrics.keys() {
        let bare = name.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| bare.strip_suffix(end));
        let kind = family.and_then(|family| kinds.get(family)).or_else(|| kinds.get(bare));
        assert!(kind.is_some(), "{name} has no type");
    }
    let labels = "{model=\"double\",version=\"1\"}";
    let value = |name: &str| server.metric(&format!("{name}{labels}"));
    assert_eq!(value("cudock_requests_total"), 5);
    assert_eq!(value("cudock_rows_total"), 15);
    assert_eq!(value("cudock_batches_total"), 5);
    assert_eq!(value("cudock_model_ready"), 1);
    for stage in ["queue", "compute", "total"] {
        let labels = format!("model=\"double\",version=\"1\",stage=\"{stage}\"");
        assert_eq!(server.metric(&format!("cudock_request_seconds_count{{{labels}}}")), 5);
        assert_eq!(server.metric(&format!("cudock_request_seconds_bucket{{{labels},le=\"+Inf\"}}")), 5);
        assert!(metrics[&format!("cudock_request_seconds_sum{{{labels}}}")] > 0.0);
        let bucket = |name: &&String| name.starts_with(&format!("cudock_request_seconds_bucket{{{labels}"));
        let bound = |name: &str| {
            name.split("le=\"").nth(1).unwrap().trim_end_matches("\"}").parse::<f64>().unwrap_or(f64::MAX)
        };
        let mut buckets: Vec<(f64, f64)> =
            metrics.keys().filter(bucket).map(|name| (bound(name), metrics[name])).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.len() > 5 && buckets.is_sorted_by_key(|bucket| bucket.1), "{buckets:?}");
    }
}

#[test]
fn status_gives_programs_what_the_page_shows() {
    let Some(stage) = Stage::new() else { return };
    stage.write("tiny.onnx", &onnx::tiny());
    let server = stage.serve("tiny.onnx", &["--max-batch", "8"]);
    let row = format!("[{}]", vec!["0.5"; 64].join(", "));
    server.ask(&Ask::predict(&format!("[{row}, {row}, {row}]"))).ok();
    let status = server.get("/status").ok().json();
    assert_eq!(status["schema"], 1);
    assert_eq!(status["server"]["state"], "healthy");
    let model = &status["models"][0];
    assert_eq!(
        (&model["name"], &model["state"], &model["device"]),
        (&"tiny".into(), &"ready".into(), &"cpu".into())
    );
    assert_eq!(model["max_batch"], 8);
    assert_eq!(model["inputs"], serde_json::json!([{"name": "input", "dtype": "FP32", "shape": [-1, 64]}]));
    assert_eq!((&model["totals"]["requests"], &model["totals"]["rows"]), (&1.into(), &3.into()));
    assert_eq!(model["batch_sizes"], serde_json::json!([{"rows": 3, "count": 1}]));
    assert!(model["latency_ms"]["total"]["p50"].as_f64().unwrap() > 0.0);
    let counts = server.get("/v2/models/tiny/stats").ok().json();
    assert_eq!(counts["model_stats"][0]["inference_count"], 3);
    assert_eq!(counts["model_stats"][0]["execution_count"], 1);
}

#[test]
fn head_is_get_without_the_body_and_other_methods_learn_the_allowed_ones() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let mut connection = server.connect();
    for path in ["/", "/health", "/ready", "/live", "/v2", "/v2/health/ready", "/v2/models/double"] {
        let head = connection.ask(&Ask::head(path));
        assert_eq!(head.status, 200, "{path}");
        let body = connection.ask(&Ask::get(path)).ok().body;
        assert_eq!(head.header("content-length").unwrap().parse(), Ok(body.len()), "{path}");
    }
    for (ask, allowed) in [(Ask::get("/predict"), "POST"), (Ask::post("/health", "{}"), "GET, HEAD")] {
        let reply = server.ask(&ask);
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allowed)), "{}", reply.text());
    }
    assert_eq!(server.get("/v2/models/none/ready").status, 404);
    assert!(server.get("/").ok().header("content-type").unwrap().starts_with("text/html"));
}

#[test]
fn events_can_be_one_object_a_line() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &["--log", "json", "--log-requests"]);
    server.ask(&Ask::predict(ROW)).ok();
    server.ask(&Ask::predict("[[1]]"));
    crate::serve_support::server::eventually("both requests are written down", || {
        let log = server.log();
        let events: Vec<serde_json::Value> = log
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let status = |status: &str| {
            events.iter().any(|event| {
                event["event"] == "request" && event["status"] == status && event["path"] == "/predict"
            })
        };
        status("200") && status("400") && events.iter().any(|event| event["event"] == "model_ready")
    });
}
