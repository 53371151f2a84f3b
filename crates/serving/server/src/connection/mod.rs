//! One connection: HTTP/1.1 or HTTP/2, with or without TLS.

pub(crate) mod descriptors;
pub(crate) mod drain;
mod framing;
pub(crate) mod monitor;
pub(crate) mod monitored_body;
pub(crate) mod stall;
pub(crate) mod stream;
pub(crate) mod tls;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use cudock_trace::{Exporter, RequestTrace, Sampler, TRACEPARENT, TRACESTATE};
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::connection::framing::ScannedStream;
use crate::connection::monitor::{ConnectionActivity, WakeReason};
use crate::handler::{COMPUTE_STAGE, Handler, QUEUE_STAGE};
use crate::metrics::log::Log;
use crate::request::body::CONNECTION_BUFFERS;
use crate::request::origin::{Listener, Reach};
use crate::request::request_rules;
use crate::settings::ServerSettings;
use crate::shared::ServerShared;

/// HTTP/2 flow control windows of a stream and of a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// During shutdown, the interval at which connections are checked, and how long one may be idle.
const SHUTDOWN_CHECK_INTERVAL: Duration = Duration::from_millis(100);
const SHUTDOWN_IDLE: Duration = Duration::from_secs(1);
/// The client's request id, which is returned in the response.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Serves a connection until its client disconnects, it is idle for too long, or the server shuts down.
pub(crate) async fn serve<H: Handler>(
    shared: Arc<ServerShared<H>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    activity: Arc<ConnectionActivity>,
    reach: Reach,
    mut ending: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().keep_alive(true).max_buf_size(CONNECTION_BUFFERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(shared.settings.client_timeout)
        .max_concurrent_streams(1024)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let watched = Arc::clone(&activity);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, activity) = (Arc::clone(&shared), Arc::clone(&watched));
        // Recorded now and not when the response is first polled, because the socket is read again before that.
        activity.head_read(request.version(), !request.body().is_end_stream());
        let busy = Arc::clone(&activity).begin();
        async move {
            let response = respond(&shared, request, &activity, reach).await;
            drop(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let stream = ScannedStream::new(stream, Arc::clone(&activity));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let (mut notified, mut is_ending) = (false, false);
    loop {
        tokio::select! {
            // A client that disconnected or broke the protocol is not worth logging.
            _ = connection.as_mut() => return,
            woken = activity.woken() => match woken {
                // A request arrived meanwhile: another connection will be evicted.
                WakeReason::Evicted if activity.is_busy() => {}
                WakeReason::Evicted => {
                    // HTTP/2 sends GOAWAY if it can do so at once.
                    connection.as_mut().graceful_shutdown();
                    poll_fn(|context| Poll::Ready(connection.as_mut().poll(context).is_ready())).await;
                    return;
                }
                // The first time, it may shut down gracefully; the second time it is dropped.
                WakeReason::Stalled if notified => return,
                WakeReason::Stalled => {
                    notified = true;
                    connection.as_mut().graceful_shutdown();
                }
            },
            _ = ending.changed(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
            // A client that has not sent a complete head by now, or does not read its response, is dropped.
            () = tokio::time::sleep(SHUTDOWN_CHECK_INTERVAL), if is_ending => {
                if activity.idle_time() >= SHUTDOWN_IDLE {
                    return;
                }
            }
        }
    }
}

/// Responds to a request, and records it if requests are logged or traced.
async fn respond<H: Handler>(
    shared: &ServerShared<H>,
    mut request: Request<Incoming>,
    activity: &Arc<ConnectionActivity>,
    reach: Reach,
) -> Response<H::Body> {
    let ServerSettings { log, exporter, .. } = &shared.settings;
    if !log.logs_requests() && exporter.is_none() {
        return handle(shared, request, activity, reach).await;
    }
    let sampler = exporter.as_ref().map(Exporter::sampler).unwrap_or_default();
    let trace = Arc::new(begin_trace(request.headers(), sampler));
    request.extensions_mut().insert(Arc::clone(&trace));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let sent = request.body().size_hint().exact();
    let received = Instant::now();
    let response = handle(shared, request, activity, reach).await;
    if log.logs_requests() {
        let bytes = [sent, response.body().size_hint().exact()];
        log_request(
            log,
            &trace,
            method.as_str(),
            &path,
            response.status().as_u16(),
            bytes,
            received.elapsed(),
        );
    }
    if let Some(exporter) = exporter {
        exporter.finish(&trace, method.as_str(), &path, response.status().as_u16());
    }
    response
}

fn begin_trace(headers: &HeaderMap, sampler: Sampler) -> RequestTrace {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    // Two of them contradict each other.
    let parent = parents.next().filter(|_| parents.next().is_none()).map(HeaderValue::as_bytes);
    let states: Vec<&[u8]> = headers.get_all(TRACESTATE).iter().map(HeaderValue::as_bytes).collect();
    let state = states.join(&b","[..]);
    RequestTrace::begin(parent, (!state.is_empty()).then_some(state.as_slice()), sampler)
}

/// Logs a request: never its headers or bodies. `bytes` are those of request and response, if known.
fn log_request(
    log: &Log,
    trace: &RequestTrace,
    method: &str,
    path: &str,
    status: u16,
    bytes: [Option<u64>; 2],
    time: Duration,
) {
    let numbers: [(&str, Option<u128>); 6] = [
        ("status", Some(status.into())),
        ("micros", Some(time.as_micros())),
        ("queue_micros", trace.stage_time(QUEUE_STAGE).map(|time| time.as_micros())),
        ("compute_micros", trace.stage_time(COMPUTE_STAGE).map(|time| time.as_micros())),
        ("request_bytes", bytes[0].map(u128::from)),
        ("bytes", bytes[1].map(u128::from)),
    ];
    let numbers: Vec<(&str, String)> =
        numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string()))).collect();
    let mut fields = vec![("method", method), ("path", path)];
    fields.extend(numbers.iter().map(|(name, number)| (*name, number.as_str())));
    let id = trace.id().to_string();
    fields.push(("trace", &id));
    log.event("request", &fields);
}

async fn handle<H: Handler>(
    shared: &ServerShared<H>,
    request: Request<Incoming>,
    activity: &Arc<ConnectionActivity>,
    reach: Reach,
) -> Response<H::Body> {
    let (version, id) = (request.version(), request.headers().get(&REQUEST_ID).cloned());
    let (handler, settings) = (&shared.handler, &shared.settings);
    let listener = Listener { reach, has_tls: settings.tls.is_some(), allowed: &settings.allow_hosts };
    let mut closes = shared.drain.has_begun();
    let mut response = match request_rules::check(&request, activity, listener, handler) {
        Ok(()) => handler.handle(request, activity).await,
        Err(rejection) => {
            closes |= request_rules::closes_connection(&rejection);
            handler.reject(&request, rejection)
        }
    };
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID.clone(), id);
    }
    if closes || shared.drain.has_begun() {
        request_rules::close_connection(response.headers_mut(), version);
    }
    response
}
