use std::sync::mpsc::{Receiver, channel};

use cudock_base::Environment;
use cudock_testkit::http::{Reply, Server};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);
const PARENT: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn settings(server: &Server, variables: &[(&str, &str)]) -> ExportSettings {
    let endpoint = format!("http://{}", server.host());
    let environment = Environment::of("/", variables.iter().copied());
    ExportSettings::new(Some(&endpoint), "tests", &environment).unwrap().unwrap()
}

fn requests() -> Vec<Metric> {
    vec![Metric {
        name: "requests",
        description: "Requests.",
        kind: MetricKind::Counter,
        attributes: vec![("model", "double".to_owned())],
        value: 7.0,
    }]
}

/// An exporter, and the errors that it reports.
fn start(settings: ExportSettings) -> (Exporter, Receiver<String>) {
    let (sender, errors) = channel();
    let report = move |error: &str| sender.send(error.to_owned()).unwrap();
    (Exporter::start(settings, Box::new(requests), Box::new(report)).unwrap(), errors)
}

fn collector() -> Server {
    Server::start(|_| Reply::new(200, ""))
}

fn sent_spans(server: &Server) -> Vec<Span> {
    let bodies = server.requests().into_iter().filter(|request| request.path == "/v1/traces");
    let messages = bodies.map(|request| ExportTraces::decode(&request.body[..]).unwrap());
    let scopes = messages.flat_map(|message| message.resource_spans).flat_map(|spans| spans.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

fn trace() -> RequestTrace {
    RequestTrace::begin(Some(PARENT), Some(b"vendor=1"), Sampler::default())
}

#[test]
fn a_request_is_a_span_with_a_span_for_each_stage() {
    let server = collector();
    let (exporter, errors) = start(settings(&server, &[("OTEL_EXPORTER_OTLP_HEADERS", "x-token=a%20b")]));
    let trace = trace();
    trace.stage("queue", trace.began, trace.began + Duration::from_millis(3));
    exporter.finish(&trace, "POST", "/predict", 503);
    exporter.close(PATIENCE);
    let spans = sent_spans(&server);
    let [root, stage] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((root.name.as_str(), root.kind(), stage.name.as_str()), ("POST", SpanKind::Server, "queue"));
    assert_eq!(root.trace_id, [75, 249, 47, 53, 119, 179, 77, 166, 163, 206, 146, 157, 14, 14, 71, 54]);
    assert_eq!((&root.trace_id, &root.span_id), (&stage.trace_id, &stage.parent_span_id));
    assert_eq!(root.parent_span_id, [0, 240, 103, 170, 11, 169, 2, 183]);
    assert_eq!(root.trace_state, "vendor=1");
    assert_eq!(stage.end_time_unix_nano - stage.start_time_unix_nano, 3_000_000);
    assert_eq!(root.status, Some(Status { code: STATUS_ERROR }));
    assert!(root.attributes.contains(&KeyValue::integer("http.response.status_code", 503)));
    let request = server.requests().into_iter().find(|request| request.path == "/v1/traces").unwrap();
    assert_eq!(request.header("x-token"), Some("a b"));
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
    assert_eq!((exporter.dropped(), errors.try_recv().ok()), (0, None));
}

#[test]
fn metrics_are_sent_at_the_end_with_their_resource() {
    let server = collector();
    let (exporter, _errors) = start(settings(&server, &[("OTEL_RESOURCE_ATTRIBUTES", "zone=1")]));
    exporter.close(PATIENCE);
    let request = server.requests().into_iter().find(|request| request.path == "/v1/metrics").unwrap();
    let message = ExportMetrics::decode(&request.body[..]).unwrap();
    let sent = &message.resource_metrics[0];
    let attributes = &sent.resource.as_ref().unwrap().attributes;
    assert_eq!(attributes, &[KeyValue::text("zone", "1"), KeyValue::text("service.name", "tests")]);
    let metric = &sent.scope_metrics[0].metrics[0];
    let Some(MetricData::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
    let point = &sum.data_points[0];
    assert!((point.value - 7.0).abs() < f64::EPSILON && sum.is_monotonic, "{point:?}");
    assert_eq!(point.attributes, [KeyValue::text("model", "double")]);
}

#[test]
fn a_full_batch_is_sent_at_once() {
    let server = collector();
    let (exporter, _errors) = start(settings(&server, &[("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")]));
    exporter.finish(&trace(), "GET", "/", 200);
    exporter.finish(&trace(), "GET", "/", 200);
    let limit = Instant::now() + PATIENCE;
    while server.count("/v1/traces") == 0 {
        assert!(Instant::now() < limit, "not sent");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn spans_that_do_not_fit_are_dropped_and_counted() {
    let server = Server::start(|_| Reply::new(200, "").after(Duration::from_millis(300)));
    let limits = [("OTEL_BSP_MAX_QUEUE_SIZE", "4"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")];
    let (exporter, _errors) = start(settings(&server, &limits));
    for _ in 0..1000 {
        exporter.finish(&trace(), "GET", "/", 200);
    }
    exporter.close(PATIENCE);
    let sent = sent_spans(&server).len() as u64;
    assert_eq!(exporter.dropped() + sent, 1000);
    assert!(exporter.dropped() > 0);
}

#[test]
fn a_collector_that_fails_is_reported_once() {
    let server = Server::start(|_| Reply::new(500, "no"));
    let (exporter, errors) = start(settings(&server, &[("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")]));
    exporter.finish(&trace(), "GET", "/", 200);
    exporter.finish(&trace(), "GET", "/", 200);
    exporter.close(PATIENCE);
    assert_eq!((exporter.dropped(), errors.iter().count()), (2, 1));
}

#[test]
fn a_trace_that_its_client_does_not_record_is_not_sent() {
    let server = collector();
    let (exporter, _errors) = start(settings(&server, &[]));
    let header = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    exporter.finish(&RequestTrace::begin(Some(header), None, exporter.sampler()), "GET", "/", 200);
    exporter.close(PATIENCE);
    assert_eq!((server.count("/v1/traces"), exporter.dropped()), (0, 0));
}
