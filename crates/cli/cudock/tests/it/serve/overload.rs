//! Five times as many requests as can be served: the accepted ones are served as well as ever, and the others are
//! rejected at once with `Retry-After`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::serve_support::client::Ask;
use crate::serve_support::server::{Server, Stage, resident};
use crate::support::{code, json, schema, shown};
use cudock_testkit::onnx;

const QUEUE_ROWS: u64 = 40;
/// Turns of the model's loop: enough for a batch to take long compared with the work of its requests.
const BODY: &str = r#"{"input": [[20000]]}"#;

/// The report of a load generator on the server.
fn load(stage: &Stage, server: &Server, arguments: &[&str]) -> Value {
    let body = stage.write("body.json", BODY.as_bytes());
    let url = format!("http://{}/predict", server.address);
    let arguments =
        [&["bench", &url, "--body", body.to_str().unwrap(), "--format", "json"], arguments].concat();
    let output = schema::output(&mut stage.command(&arguments));
    assert_eq!(code(&output), 0, "{}", shown(&output));
    json(&output)["runs"][0].clone()
}

/// Observations of the server from outside during the load.
#[derive(Debug, Default)]
struct Seen {
    statuses: BTreeMap<u16, usize>,
    most_rows: u64,
    most_memory: u64,
}

fn watch(server: &Server, done: &AtomicBool) -> Seen {
    let (mut seen, mut connection) = (Seen::default(), server.connect());
    while !done.load(Ordering::SeqCst) {
        let reply = connection.ask(&Ask::post("/predict", BODY));
        if reply.status == 429 {
            let milliseconds: u64 = reply.header("retry-after-ms").unwrap().parse().unwrap();
            assert!(milliseconds > 0 && reply.header("retry-after").is_some());
        }
        *seen.statuses.entry(reply.status).or_default() += 1;
        seen.most_rows = seen.most_rows.max(server.metric("cudock_queue_rows"));
        seen.most_memory = seen.most_memory.max(resident(server.pid()));
        thread::sleep(Duration::from_millis(10));
    }
    seen
}

#[test]
fn five_times_the_peak_keeps_waits_and_memory_within_bounds() {
    let Some(stage) = Stage::alone() else { return };
    let seconds = if std::env::var_os("CUDOCK_LONG_TESTS").is_some() { "20s" } else { "4s" };
    stage.write("spin.onnx", &onnx::spin());
    let rows = QUEUE_ROWS.to_string();
    let server =
        stage.serve("spin.onnx", &["--max-batch", "4", "--queue-rows", &rows, "--queue-time", "250ms"]);
    let closed = load(&stage, &server, &["-c", "8", "--duration", "3s", "--warm-up", "1s"]);
    let peak = closed["goodput_per_second"].as_f64().unwrap();
    let before = resident(server.pid());
    let done = AtomicBool::new(false);
    let (open, seen) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&server, &done));
        let rate = format!("{}", (peak * 5.0).round());
        let open = load(&stage, &server, &["--rate", &rate, "--duration", seconds, "--warm-up", "1s"]);
        done.store(true, Ordering::SeqCst);
        (open, watching.join().unwrap())
    });
    let goodput = open["goodput_per_second"].as_f64().unwrap();
    let p99 = open["latency"]["p99_ms"].as_f64().unwrap();
    let refused = &open["refused"]["p99_ms"];
    eprintln!("peak {peak:.0}/s; at five times that {goodput:.0}/s, p99 {p99:.0} ms, refusals {refused} ms");
    eprintln!("statuses: {}", open["statuses"]);
    eprintln!("seen meanwhile: {seen:?}, {before} bytes before");
    // How much less it is than the peak depends on what else the machine does; bench/serving/overload measures it.
    assert!(goodput > 0.0, "no answers under overload");
    let statuses = open["statuses"].as_object().unwrap();
    assert!(statuses.keys().all(|status| status == "200" || status == "429"), "{statuses:?}");
    assert!(statuses.contains_key("429") && open["unanswered"] == 0, "{open}");
    assert!(seen.most_rows <= QUEUE_ROWS, "{seen:?}");
    assert!(seen.most_memory < before + (64 << 20), "{seen:?}, {before} bytes before");
    assert!(seen.statuses.keys().all(|status| matches!(status, 200 | 429)), "{seen:?}");
    server.ask(&Ask::post("/predict", BODY)).ok();
    assert_eq!(server.health().1["status"], "healthy");
}
