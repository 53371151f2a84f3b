//! One connection: HTTP/1.1, HTTP/2 and gRPC, plain or through TLS.

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

use super::activity::{Activity, Woken};
use super::answer::{self, AnswerBody, HttpAnswer};
use super::body::{self, BUFFERS};
use super::route::Route;
use super::{infer, report};
use crate::service::Service;
use crate::{ServeError, grpc, page};

/// Bytes that a client of HTTP/2 may send ahead of being read, on a stream and on all of a connection together.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// When the server ends, how often connections are looked at, and how long one may do nothing.
const LOOK_AT_END: Duration = Duration::from_millis(100);
const QUIET_AT_END: Duration = Duration::from_secs(1);
/// What a client calls its request; answers carry it, too.
const REQUEST_ID: &str = "x-request-id";

/// Serves a connection until its client leaves, asks nothing for too long, or the server ends.
pub(crate) async fn serve(
    service: Arc<Service>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    activity: Arc<Activity>,
    mut ending: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().keep_alive(true).max_buf_size(BUFFERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(service.settings.client_timeout)
        .max_concurrent_streams(1024)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let watched = Arc::clone(&activity);
    let answering = service_fn(move |request: Request<Incoming>| {
        let (service, activity) = (Arc::clone(&service), Arc::clone(&watched));
        // At once and not when the answer is first worked on: the socket is read again before that.
        activity.head_read(request.version(), !request.body().is_end_stream());
        let busy = Arc::clone(&activity).begin();
        async move {
            let answer = handle(&service, request, &activity).await;
            drop(busy);
            Ok::<_, Infallible>(answer.map(|body| body.watched(activity)))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answering);
    tokio::pin!(connection);
    let (mut told, mut ends) = (false, false);
    loop {
        tokio::select! {
            // A client that left or broke the protocol is not an event worth logging.
            _ = connection.as_mut() => return,
            woken = activity.woken() => match woken {
                // A request came in the meantime: another connection will have to go.
                Woken::Evicted if activity.is_busy() => {}
                Woken::Evicted => {
                    // HTTP/2 says goodbye if it can do so at once.
                    connection.as_mut().graceful_shutdown();
                    poll_fn(|context| Poll::Ready(connection.as_mut().poll(context).is_ready())).await;
                    return;
                }
                // Told once it may say goodbye; found idle again it is dropped.
                Woken::Stalled if told => return,
                Woken::Stalled => {
                    told = true;
                    connection.as_mut().graceful_shutdown();
                }
            },
            _ = ending.changed(), if !ends => {
                ends = true;
                connection.as_mut().graceful_shutdown();
            }
            // Whoever has not sent a whole head by now, or does not take the answer, is not waited for.
            () = tokio::time::sleep(LOOK_AT_END), if ends => {
                if activity.quiet() >= QUIET_AT_END {
                    return;
                }
            }
        }
    }
}

async fn handle(service: &Arc<Service>, request: Request<Incoming>, activity: &Activity) -> HttpAnswer {
    let received = Instant::now();
    if !service.settings.log.wants_requests() {
        return respond(service, request, received, activity).await;
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answer = respond(service, request, received, activity).await;
    let (status, micros) = (answer.status().as_u16().to_string(), received.elapsed().as_micros().to_string());
    let fields = [("method", method.as_str()), ("path", &path), ("status", &status), ("micros", &micros)];
    service.settings.log.event("request", &fields);
    answer
}

async fn respond(
    service: &Arc<Service>,
    request: Request<Incoming>,
    received: Instant,
    activity: &Activity,
) -> HttpAnswer {
    if is_grpc(request.headers()) {
        return grpc::handle(Arc::clone(service), request).await.map(AnswerBody::Grpc);
    }
    let (head, body) = request.into_parts();
    let outcome = match check_host(&head) {
        Ok(()) => answer(service, &head, body, received, activity).await,
        Err(error) => Err(error),
    };
    let mut answer = outcome.unwrap_or_else(|error| answer::error(&error));
    if let Some(accepted) = head.headers.get(header::ACCEPT_ENCODING) {
        answer = answer::compressed(service, answer, accepted).await;
    }
    if let Some(id) = head.headers.get(REQUEST_ID) {
        answer.headers_mut().insert(REQUEST_ID, id.clone());
    }
    if service.is_draining() && head.version == Version::HTTP_11 {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// A request of HTTP/1.1 names its host once; proxies that disagree on a missing or second one can be played off
/// against each other (RFC 9112, 3.2).
fn check_host(head: &Parts) -> Result<(), ServeError> {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let problem = match (hosts.next(), hosts.next()) {
        (None, _) if head.version == Version::HTTP_11 => "the request has no Host header",
        (_, Some(_)) => "the request has more than one Host header",
        _ => return Ok(()),
    };
    Err(ServeError::BadRequest(problem.to_owned()))
}

async fn answer(
    service: &Arc<Service>,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &Activity,
) -> Result<HttpAnswer, ServeError> {
    let route = Route::of(&head.method, head.uri.path())?;
    if !route.is_open() && !service.settings.keys.allow(&head.headers) {
        return Err(ServeError::Unauthorized);
    }
    match route {
        Route::Predict(model) => {
            infer::predict(service, model.as_ref(), head, body, received, activity).await
        }
        Route::Infer(model) => infer::infer(service, &model, head, body, received, activity).await,
        Route::Health => Ok(report::health(service)),
        Route::Ready => Ok(report::yes_or_no("ready", service.is_ready())),
        Route::Live => Ok(report::yes_or_no("live", service.is_live())),
        Route::Metrics => Ok(report::metrics(service)),
        Route::Status => report::status(service),
        Route::Page => page_asset(head.uri.path()),
        Route::ServerMetadata => Ok(report::server_metadata()),
        Route::ModelMetadata(model) => report::model_metadata(service, &model),
        Route::ModelReady(model) => report::model_ready(service, &model),
        Route::ModelConfig(model) => report::model_config(service, &model),
        Route::ModelStatistics(model) => report::model_statistics(service, model.as_ref()),
        Route::RepositoryIndex => {
            let body = body::read(service, &head.headers, body, activity).await?;
            report::repository_index(service, &body.bytes)
        }
        Route::Load(name) => {
            let body = body::read(service, &head.headers, body, activity).await?;
            check_load_parameters(&body.bytes)?;
            service.reload(Some(&name)).await?;
            Ok(answer::json(StatusCode::OK, &serde_json::json!({})))
        }
    }
}

/// Triton takes a configuration or whole files with a load. Here models are loaded as their directory has them, and a
/// client that asks for something else must know.
fn check_load_parameters(body: &[u8]) -> Result<(), ServeError> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct LoadRequest {
        parameters: serde_json::Map<String, serde_json::Value>,
    }
    if body.trim_ascii().is_empty() {
        return Ok(());
    }
    let asked: LoadRequest = serde_json::from_slice(body)
        .map_err(|error| ServeError::BadRequest(format!("the body is not a load request: {error}")))?;
    match asked.parameters.keys().next() {
        None => Ok(()),
        Some(name) => Err(ServeError::BadRequest(format!(
            "load parameter `{name}` is not supported: models are loaded as their directory has them; settings of one \
             model go into cudock.toml beside it"
        ))),
    }
}

fn page_asset(path: &str) -> Result<HttpAnswer, ServeError> {
    let (kind, bytes) =
        page::asset(path).ok_or_else(|| ServeError::NotFound(format!("nothing is at {path}")))?;
    let mut answer = answer::whole(StatusCode::OK, kind, bytes);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::SECURITY_POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(answer)
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}
