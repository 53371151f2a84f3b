//! Sends traces and metrics, on a thread of its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cudock_base::lock;
use cudock_http::{Client, ClientOptions, Method, Request, Response, Uri};
use prost::Message;

use crate::context::SpanId;
use crate::messages::{
    ExportMetrics, ExportTraces, Gauge, KeyValue, MetricData, MetricMessage, NumberPoint, Resource,
    ResourceMetrics, ResourceSpans, Scope, ScopeMetrics, ScopeSpans, Span, SpanKind, Status, Sum,
};
use crate::request::{RequestTrace, TraceStage};
use crate::sampler::Sampler;
use crate::settings::ExportSettings;

/// `STATUS_CODE_ERROR`
const STATUS_ERROR: i32 = 2;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: i32 = 2;
/// Longest response of a collector that is read, in bytes.
const MAX_RESPONSE: u64 = 64 << 10;

/// Reads the metrics when they are sent.
pub type ReadMetrics = Box<dyn Fn() -> Vec<Metric> + Send>;

/// Reports that something could not be sent, with the reason; called once until something is sent again.
pub type ReportError = Box<dyn Fn(&str) + Send>;

/// The value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: MetricKind,
    pub attributes: Vec<(&'static str, String)>,
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    Gauge,
}

/// Takes the traces of finished requests, and sends them to a collector later. Clones share one queue.
#[derive(Clone)]
pub struct Exporter {
    shared: Arc<Shared>,
}

struct Shared {
    sampler: Sampler,
    has_traces: bool,
    capacity: usize,
    batch: usize,
    queue: Mutex<Queue>,
    /// Notified when a batch is full, and at the end.
    wake: Condvar,
    /// Notified when the thread has ended.
    ended: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Queue {
    spans: VecDeque<Span>,
    is_closing: bool,
    has_ended: bool,
}

impl Exporter {
    /// Starts the thread.
    pub fn start(
        settings: ExportSettings,
        metrics: ReadMetrics,
        report: ReportError,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            sampler: settings.sampler,
            has_traces: settings.traces.is_some(),
            capacity: settings.queue,
            batch: settings.batch,
            queue: Mutex::default(),
            wake: Condvar::new(),
            ended: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let sender = Sender {
            client: client(&settings).map_err(std::io::Error::other)?,
            settings,
            metrics,
            report,
            has_failed: false,
            started: SystemTime::now(),
        };
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("telemetry".to_owned()).spawn(move || sender.run(&theirs))?;
        Ok(Self { shared })
    }

    /// Which traces are recorded.
    pub fn sampler(&self) -> Sampler {
        self.shared.sampler
    }

    /// Takes the trace of a request that has just been answered. Never blocks; what does not fit is dropped.
    pub fn finish(&self, trace: &RequestTrace, method: &str, path: &str, status: u16) {
        if !trace.is_sampled() || !self.shared.has_traces {
            return;
        }
        let spans = spans(trace, method, path, status);
        let mut queue = lock(&self.shared.queue);
        if queue.spans.len() + spans.len() > self.shared.capacity || queue.is_closing {
            drop(queue);
            self.shared.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
            return;
        }
        queue.spans.extend(spans);
        let is_full = queue.spans.len() >= self.shared.batch;
        drop(queue);
        if is_full {
            self.shared.wake.notify_one();
        }
    }

    /// Number of spans that were dropped because the queue was full or the collector did not take them.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Sends what is queued, and waits for that no longer than `limit`.
    pub fn close(&self, limit: Duration) {
        let mut queue = lock(&self.shared.queue);
        queue.is_closing = true;
        self.shared.wake.notify_one();
        let waiting = |queue: &mut Queue| !queue.has_ended;
        let waited = self.shared.ended.wait_timeout_while(queue, limit, waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The thread's part.
struct Sender {
    settings: ExportSettings,
    client: Client,
    metrics: ReadMetrics,
    report: ReportError,
    has_failed: bool,
    started: SystemTime,
}

impl Sender {
    fn run(mut self, shared: &Shared) {
        let mut next_metrics = Instant::now() + self.settings.metric_interval;
        loop {
            let (spans, is_closing) = shared.next_batch(self.settings.delay, next_metrics);
            if !spans.is_empty() {
                let count = spans.len() as u64;
                if !self.send_spans(spans) {
                    shared.dropped.fetch_add(count, Ordering::Relaxed);
                }
            }
            if is_closing || Instant::now() >= next_metrics {
                self.send_metrics();
                next_metrics = Instant::now() + self.settings.metric_interval;
            }
            if is_closing {
                break;
            }
        }
        lock(&shared.queue).has_ended = true;
        shared.ended.notify_all();
    }

    fn send_spans(&mut self, spans: Vec<Span>) -> bool {
        let Some(url) = self.settings.traces.clone() else { return true };
        let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans }];
        let resource = Some(self.resource());
        let message = ExportTraces { resource_spans: vec![ResourceSpans { resource, scope_spans }] };
        self.send(&url, &message)
    }

    fn send_metrics(&mut self) {
        let Some(url) = self.settings.metrics.clone() else { return };
        let (started, now) = (nanoseconds(self.started), nanoseconds(SystemTime::now()));
        let metrics: Vec<_> =
            (self.metrics)().into_iter().map(|metric| metric.message(started, now)).collect();
        if metrics.is_empty() {
            return;
        }
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics }];
        let resource = Some(self.resource());
        self.send(
            &url,
            &ExportMetrics { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] },
        );
    }

    fn resource(&self) -> Resource {
        let attributes = self.settings.resource.iter();
        Resource { attributes: attributes.map(|(key, value)| KeyValue::text(key, value)).collect() }
    }

    fn send(&mut self, url: &str, message: &impl Message) -> bool {
        let request = Request::new(Method::POST, url)
            .body("application/x-protobuf", message.encode_to_vec())
            .deadline(self.settings.timeout);
        let request =
            self.settings.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let response = self.client.send(&request).and_then(Response::error_for_status);
        let outcome = response.and_then(|mut response| response.bytes(MAX_RESPONSE));
        if let (Err(error), false) = (&outcome, self.has_failed) {
            (self.report)(&error.to_string());
        }
        self.has_failed = outcome.is_err();
        outcome.is_ok()
    }
}

impl Shared {
    /// Waits for a full batch, for the delay, or until metrics are due; returns what there is, and whether to end.
    fn next_batch(&self, delay: Duration, metrics: Instant) -> (Vec<Span>, bool) {
        let limit = delay.min(metrics.saturating_duration_since(Instant::now()));
        let queue = lock(&self.queue);
        let waiting = |queue: &mut Queue| queue.spans.len() < self.batch && !queue.is_closing;
        let waited = self.wake.wait_timeout_while(queue, limit, waiting);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        let count = queue.spans.len().min(self.batch);
        let spans: Vec<Span> = queue.spans.drain(..count).collect();
        (spans, queue.is_closing && queue.spans.is_empty())
    }
}

/// A collector without TLS is trusted as the user named it.
fn client(settings: &ExportSettings) -> Result<Client, cudock_http::CertificateError> {
    let plain = settings.traces.iter().chain(&settings.metrics).filter(|url| url.starts_with("http://"));
    let host = |url: &String| url.parse::<Uri>().ok()?.authority().map(ToString::to_string);
    Client::new(&ClientOptions {
        timeout: settings.timeout,
        trusted_hosts: plain.filter_map(host).collect(),
        ..ClientOptions::default()
    })
}

fn scope() -> Scope {
    Scope { name: "cudock".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The span of a request, which ends now, and those of its stages.
fn spans(trace: &RequestTrace, method: &str, path: &str, status: u16) -> Vec<Span> {
    let at = |instant: Instant| nanoseconds(trace.began_at + instant.saturating_duration_since(trace.began));
    let id = |span: Option<SpanId>| span.map(|SpanId(id)| id.to_vec()).unwrap_or_default();
    let trace_id = trace.id().0.to_vec();
    let root = Span {
        trace_id: trace_id.clone(),
        span_id: id(Some(trace.span())),
        trace_state: trace.tracestate().to_owned(),
        parent_span_id: id(trace.parent()),
        name: method.to_owned(),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: nanoseconds(trace.began_at),
        end_time_unix_nano: at(Instant::now()),
        attributes: vec![
            KeyValue::text("http.request.method", method),
            KeyValue::text("url.path", path),
            KeyValue::integer("http.response.status_code", status.into()),
        ],
        status: (status >= 500).then_some(Status { code: STATUS_ERROR }),
    };
    let stage = |stage: &TraceStage| Span {
        trace_id: trace_id.clone(),
        span_id: id(Some(SpanId::random())),
        trace_state: String::new(),
        parent_span_id: id(Some(trace.span())),
        name: stage.name.to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: at(stage.from),
        end_time_unix_nano: at(stage.to),
        attributes: Vec::new(),
        status: None,
    };
    let stages: Vec<Span> = lock(&trace.stages).iter().map(stage).collect();
    std::iter::once(root).chain(stages).collect()
}

impl Metric {
    fn message(self, started: u64, now: u64) -> MetricMessage {
        let attributes = self.attributes.into_iter().map(|(key, value)| KeyValue::text(key, value)).collect();
        let point = |start_time_unix_nano| NumberPoint {
            attributes,
            start_time_unix_nano,
            time_unix_nano: now,
            value: self.value,
        };
        let data = match self.kind {
            MetricKind::Gauge => MetricData::Gauge(Gauge { data_points: vec![point(0)] }),
            MetricKind::Counter => MetricData::Sum(Sum {
                data_points: vec![point(started)],
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
        };
        let (name, description) = (self.name.to_owned(), self.description.to_owned());
        MetricMessage { name, description, data: Some(data) }
    }
}

#[cfg(test)]
mod tests;
