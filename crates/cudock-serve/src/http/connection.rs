//! One connection: HTTP/1.1, HTTP/2 and gRPC, plain or through TLS.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::activity::Activity;
use super::answer::{self, AnswerBody, HttpAnswer};
use super::route::Route;
use super::{infer, report};
use crate::service::Service;
use crate::{ServeError, grpc, page};

/// Serves a connection until its client leaves, asks nothing for too long, or the server ends.
pub(crate) async fn serve(
    service: Arc<Service>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    activity: Arc<Activity>,
    mut ending: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(service.settings.client_timeout)
        .max_concurrent_streams(1024)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(8 << 20);
    let watched = Arc::clone(&activity);
    let answering = service_fn(move |request| {
        let (service, activity) = (Arc::clone(&service), Arc::clone(&watched));
        async move {
            let _busy = activity.begin();
            Ok::<_, Infallible>(handle(&service, request).await)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answering);
    tokio::pin!(connection);
    let mut told = false;
    loop {
        tokio::select! {
            // A client that left or broke the protocol is no event worth a word.
            _ = connection.as_mut() => return,
            // Told once it may say goodbye; found idle again it is dropped.
            () = activity.overdue() => {
                if told {
                    return;
                }
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            changed = ending.changed() => {
                connection.as_mut().graceful_shutdown();
                if changed.is_err() {
                    // Nobody is left to say more; the connection ends by itself.
                    let _ = connection.await;
                    return;
                }
            }
        }
    }
}

async fn handle(service: &Arc<Service>, request: Request<Incoming>) -> HttpAnswer {
    let received = Instant::now();
    if !service.settings.log.wants_requests() {
        return respond(service, request, received).await;
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answer = respond(service, request, received).await;
    let (status, micros) = (answer.status().as_u16().to_string(), received.elapsed().as_micros().to_string());
    let fields = [("method", method.as_str()), ("path", &path), ("status", &status), ("micros", &micros)];
    service.settings.log.event("request", &fields);
    answer
}

async fn respond(service: &Arc<Service>, request: Request<Incoming>, received: Instant) -> HttpAnswer {
    if is_grpc(request.headers()) {
        if !service.settings.keys.allow(request.headers()) {
            return grpc::refuse(ServeError::Unauthorized).map(AnswerBody::Grpc);
        }
        return grpc::handle(Arc::clone(service), request).await.map(AnswerBody::Grpc);
    }
    let (head, body) = request.into_parts();
    let outcome = answer(service, &head, body, received).await;
    let mut answer = outcome.unwrap_or_else(|error| answer::error(&error));
    if let Some(accepted) = head.headers.get(header::ACCEPT_ENCODING) {
        answer = answer::compressed(answer, Some(accepted));
    }
    if service.is_draining() && head.version == Version::HTTP_11 {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

async fn answer(
    service: &Arc<Service>,
    head: &Parts,
    body: Incoming,
    received: Instant,
) -> Result<HttpAnswer, ServeError> {
    let route = Route::of(&head.method, head.uri.path())?;
    if !route.is_open() && !service.settings.keys.allow(&head.headers) {
        return Err(ServeError::Unauthorized);
    }
    match route {
        Route::Predict(model) => infer::predict(service, model.as_ref(), head, body, received).await,
        Route::Infer(model) => infer::infer(service, &model, head, body, received).await,
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
        Route::ModelStatistics(model) => report::model_statistics(service, &model),
        Route::RepositoryIndex => Ok(report::repository_index(service)),
        Route::Load(name) => {
            service.reload(Some(&name)).await?;
            Ok(answer::json(StatusCode::OK, &serde_json::json!({})))
        }
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
