//! Traces, the access log and rate limits.

use std::io;
use std::sync::{Arc, Mutex};

use cudock_base::Environment;
use cudock_server::{ApiKeys, Log, LogFormat, RateLimiter};
use cudock_testkit::http::{Reply, Server};
use cudock_testkit::otlp::spans;
use cudock_trace::ExportSettings;
use serde_json::{Value, json};

use crate::support::{TestServer, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";

#[test]
fn a_request_continues_the_trace_of_its_client() {
    let collector = Server::start(|_| Reply::new(200, ""));
    let environment =
        Environment::of("/", [("OTEL_BSP_SCHEDULE_DELAY", "10"), ("OTEL_METRIC_EXPORT_INTERVAL", "10")]);
    let endpoint = format!("http://{}", collector.host());
    let telemetry = ExportSettings::new(Some(&endpoint), "tests", &environment).unwrap();
    let server = TestServer::start(|settings| settings.telemetry = telemetry);
    assert_eq!(server.send("POST", "/predict", PARENT, r#"{"input": [1, 2]}"#).status, 200);
    let in_trace = || spans(&collector.requests(), TRACE);
    eventually("the trace is sent", || in_trace().len() == 5);
    let sent = in_trace();
    let [root, stages @ ..] = sent.as_slice() else { panic!("no span") };
    assert_eq!((root.name.as_str(), root.parent[..2].to_vec()), ("POST", vec![0xb7, 0xad]));
    assert_eq!(
        stages.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(),
        ["receive", "queue", "compute", "reply"]
    );
    for span in stages {
        assert_eq!(span.parent, root.id, "{}", span.name);
        assert!(span.start >= root.start && span.start <= span.end && span.end <= root.end, "{}", span.name);
    }
    eventually("metrics are sent", || {
        let requests = collector.requests();
        let mut bodies = requests.iter().filter(|request| request.path == "/v1/metrics");
        bodies.any(|request| request.body.windows(21).any(|part| part == b"cudock_requests_total"))
    });
    assert_eq!(server.metric("cudock_trace_spans_dropped_total"), 0);
}

/// A log in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn requests(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == "request").collect()
    }
}

#[test]
fn the_access_log_has_times_and_the_trace_and_no_secrets() {
    let lines = Lines::default();
    let log = Log::new(LogFormat::Json, true, lines.clone());
    let server = TestServer::start(|settings| settings.server.log = log);
    let headers = format!("{PARENT}authorization: Bearer hidden\r\n");
    let response = server.send("POST", "/predict?key=hidden", &headers, r#"{"input": [1, 2]}"#);
    let predicted = || lines.requests().into_iter().find(|event| event["path"] == "/predict");
    eventually("the request is logged", || predicted().is_some());
    let event = predicted().unwrap();
    assert_eq!(
        (&event["method"], &event["status"], &event["trace"]),
        (&json!("POST"), &json!("200"), &json!(TRACE))
    );
    assert_eq!(event["bytes"], json!(response.text.len().to_string()));
    assert_eq!(event["request_bytes"], json!("17"));
    let micros = |name: &str| event[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(micros("queue_micros") + micros("compute_micros") <= micros("micros"), "{event}");
    assert!(!event.to_string().contains("hidden"), "{event}");
}

#[test]
fn a_client_beyond_its_rate_gets_429_and_probes_do_not_count() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let keys = ["one", "two"].map(|name| format!("{name}-{:x}", std::process::id()));
    std::fs::write(file.path(), keys.join("\n")).unwrap();
    let server = TestServer::start(|settings| {
        settings.server.keys = ApiKeys::from_file(file.path()).unwrap();
        settings.server.rate_limiter = Some(Arc::new(RateLimiter::new(0.001, 2)));
    });
    let status = |key: &str| server.send("GET", "/v2", &format!("x-api-key: {key}\r\n"), "").status;
    assert_eq!((status(&keys[0]), status(&keys[0])), (200, 200));
    let rejected = server.send("GET", "/v2", &format!("x-api-key: {}\r\n", keys[0]), "");
    assert_eq!(rejected.status, 429);
    let seconds: u64 = rejected.header("retry-after").unwrap().parse().unwrap();
    assert!((900..=1000).contains(&seconds), "{seconds}");
    assert!(rejected.text.contains("rate limit exceeded"), "{}", rejected.text);
    assert_eq!(status(&keys[1]), 200, "another key has its own limit");
    assert_eq!(status("wrong"), 401);
    for _ in 0..5 {
        assert_eq!(server.get("/ready").status, 200);
    }
}
