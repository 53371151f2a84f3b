//! One connection: HTTP/1.1, HTTP/2 and gRPC, with or without TLS.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::body::{self, CONNECTION_BUFFERS};
use super::monitor::{ConnectionActivity, WakeReason};
use super::response::{self, HttpResponse, ResponseBody};
use super::route::Route;
use super::{infer, info};
use crate::service::ModelService;
use crate::{ServeError, grpc, page};

/// HTTP/2 flow control windows of a stream and of a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// During shutdown, the interval at which connections are checked, and how long one may be idle.
const SHUTDOWN_CHECK_INTERVAL: Duration = Duration::from_millis(100);
const SHUTDOWN_IDLE: Duration = Duration::from_secs(1);
/// The client's request id, which is returned in the response.
const REQUEST_ID: &str = "x-request-id";

/// Serves a connection until its client disconnects, it is idle for too long, or the server shuts down.
pub(crate) async fn serve(
    service: Arc<ModelService>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    activity: Arc<ConnectionActivity>,
    mut ending: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().keep_alive(true).max_buf_size(CONNECTION_BUFFERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(service.settings.client_timeout)
        .max_concurrent_streams(1024)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let watched = Arc::clone(&activity);
    let handler = service_fn(move |request: Request<Incoming>| {
        let (service, activity) = (Arc::clone(&service), Arc::clone(&watched));
        // Recorded now and not when the response is first polled, because the socket is read again before that.
        activity.head_read(request.version(), !request.body().is_end_stream());
        let busy = Arc::clone(&activity).begin();
        async move {
            let response = handle(&service, request, &activity).await;
            drop(busy);
            Ok::<_, Infallible>(response.map(|body| body.monitored(activity)))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), handler);
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

async fn handle(
    service: &Arc<ModelService>,
    request: Request<Incoming>,
    activity: &ConnectionActivity,
) -> HttpResponse {
    let received = Instant::now();
    if !service.settings.log.logs_requests() {
        return respond(service, request, received, activity).await;
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = respond(service, request, received, activity).await;
    let (status, micros) =
        (response.status().as_u16().to_string(), received.elapsed().as_micros().to_string());
    let fields = [("method", method.as_str()), ("path", &path), ("status", &status), ("micros", &micros)];
    service.settings.log.event("request", &fields);
    response
}

async fn respond(
    service: &Arc<ModelService>,
    request: Request<Incoming>,
    received: Instant,
    activity: &ConnectionActivity,
) -> HttpResponse {
    if is_grpc(request.headers()) {
        return grpc::handle(Arc::clone(service), request).await.map(ResponseBody::Grpc);
    }
    let (head, body) = request.into_parts();
    let outcome = match check_host(&head) {
        Ok(()) => dispatch(service, &head, body, received, activity).await,
        Err(error) => Err(error),
    };
    let mut response = outcome.unwrap_or_else(|error| response::error(&error));
    if let Some(accepted) = head.headers.get(header::ACCEPT_ENCODING) {
        response = response::compressed(service, response, accepted).await;
    }
    if let Some(id) = head.headers.get(REQUEST_ID) {
        response.headers_mut().insert(REQUEST_ID, id.clone());
    }
    if service.is_draining() && head.version == Version::HTTP_11 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An HTTP/1.1 request names its host once; a missing or second one allows attacks on proxies that disagree (RFC 9112,
/// 3.2).
fn check_host(head: &Parts) -> Result<(), ServeError> {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let problem = match (hosts.next(), hosts.next()) {
        (None, _) if head.version == Version::HTTP_11 => "the request has no Host header",
        (_, Some(_)) => "the request has more than one Host header",
        _ => return Ok(()),
    };
    Err(ServeError::BadRequest(problem.to_owned()))
}

async fn dispatch(
    service: &Arc<ModelService>,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &ConnectionActivity,
) -> Result<HttpResponse, ServeError> {
    let route = Route::parse(&head.method, head.uri.path())?;
    if !route.is_public() && !service.settings.keys.is_authorized(&head.headers) {
        return Err(ServeError::Unauthorized);
    }
    match route {
        Route::Predict(model) => {
            infer::predict(service, model.as_ref(), head, body, received, activity).await
        }
        Route::Infer(model) => infer::infer(service, &model, head, body, received, activity).await,
        Route::Health => Ok(info::health(service)),
        Route::Ready => Ok(info::probe("ready", service.is_ready())),
        Route::Live => Ok(info::probe("live", true)),
        Route::Metrics => Ok(info::metrics(service)),
        Route::Status => info::status(service),
        Route::Page => page_asset(head.uri.path()),
        Route::ServerMetadata => Ok(info::server_metadata()),
        Route::ModelMetadata(model) => info::model_metadata(service, &model),
        Route::ModelReady(model) => info::model_ready(service, &model),
        Route::ModelConfig(model) => info::model_config(service, &model),
        Route::ModelStatistics(model) => info::model_statistics(service, model.as_ref()),
        Route::RepositoryIndex => {
            let body = body::read(service, &head.headers, body, activity).await?;
            info::repository_index(service, &body.bytes)
        }
        Route::Load(name) => {
            let body = body::read(service, &head.headers, body, activity).await?;
            check_load_parameters(&body.bytes)?;
            service.reload(Some(&name)).await?;
            Ok(response::json(StatusCode::OK, &serde_json::json!({})))
        }
    }
}

/// Triton accepts a configuration or files with a load request. Here models are loaded from their directory, and a
/// client that expects something else must get an error.
fn check_load_parameters(body: &[u8]) -> Result<(), ServeError> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct LoadRequest {
        parameters: serde_json::Map<String, serde_json::Value>,
    }
    if body.trim_ascii().is_empty() {
        return Ok(());
    }
    let request: LoadRequest = serde_json::from_slice(body)
        .map_err(|error| ServeError::BadRequest(format!("the body is not a load request: {error}")))?;
    match request.parameters.keys().next() {
        None => Ok(()),
        Some(name) => Err(ServeError::BadRequest(format!(
            "unsupported load parameter `{name}`: models are loaded from their directory; settings of one \
             model go into the cudock.toml next to it"
        ))),
    }
}

fn page_asset(path: &str) -> Result<HttpResponse, ServeError> {
    let (kind, bytes) =
        page::asset(path).ok_or_else(|| ServeError::NotFound(format!("not found: {path}")))?;
    let mut response = response::full(StatusCode::OK, kind, bytes);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::SECURITY_POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}
