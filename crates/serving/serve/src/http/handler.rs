//! Requests over HTTP and gRPC.

use std::sync::Arc;
use std::time::Instant;

use cudock_server::{ConnectionActivity, Effect, Handler, HttpRejection, MonitoredBody};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Version};

use super::dialects::{self, ForeignCall, ForeignRoute};
use super::predict_api::PREDICT;
use super::response::{self, HttpResponse, ResponseBody};
use super::route::{ModelEffect, Route};
use super::{infer, info, metrics, openapi};
use crate::read_tracker::ReadTracker;
use crate::reply::ReplyQueue;
use crate::service::ModelService;
use crate::{ServeError, grpc, page};

pub(crate) struct InferenceHandler(pub(crate) Arc<ModelService>);

impl Handler for InferenceHandler {
    type Body = ResponseBody;

    async fn handle(
        &self,
        request: Request<Incoming>,
        activity: &Arc<ConnectionActivity>,
    ) -> Response<ResponseBody> {
        let (service, received) = (&self.0, Instant::now());
        if is_grpc(request.headers()) {
            let response = grpc::handle(Arc::clone(service), request, activity).await;
            return response.map(|body| {
                if body.is_stream() {
                    ResponseBody::Stream(MonitoredBody::new(body, activity))
                } else {
                    ResponseBody::Grpc(body)
                }
            });
        }
        let (head, body) = request.into_parts();
        let response = match service.settings.dialects.route(&head.method, head.uri.path(), &head.headers) {
            Ok(None) => dispatch(service, &head, body, received, activity).await,
            Ok(Some(route)) => {
                let outcome = dispatch_foreign(service, &route, &head, body, received, activity).await;
                Ok(outcome.unwrap_or_else(|error| dialects::error(route.dialect, &error)))
            }
            Err(error) => Err(error),
        };
        let response = response.unwrap_or_else(|error| response::error(&error));
        match head.headers.get(header::ACCEPT_ENCODING) {
            Some(accepted) => response::compressed(service, response, accepted).await,
            None => response,
        }
    }

    fn effect(&self, request: &Request<Incoming>) -> Effect {
        match model_effect(&self.0, request) {
            ModelEffect::Changes => Effect::Changes,
            ModelEffect::Needs if self.0.loads_on_request() => Effect::Starts,
            ModelEffect::Needs | ModelEffect::None => Effect::None,
        }
    }

    fn reject(&self, request: &Request<Incoming>, rejection: HttpRejection) -> Response<ResponseBody> {
        if is_grpc(request.headers()) && request.version() == Version::HTTP_2 {
            return grpc::reject(rejection).map(ResponseBody::Grpc);
        }
        response::error(&rejection.into())
    }

    fn start_io_thread(&self) {
        tokio::spawn(ReplyQueue::install());
        tokio::spawn(ReadTracker::install());
    }

    async fn reload(&self) {
        // Errors are in the log and in `/health`.
        let _ = self.0.reload(None).await;
    }

    async fn refresh(&self) {
        if self.0.settings.watch {
            let service = Arc::clone(&self.0);
            let _ = tokio::task::spawn_blocking(move || service.sync_with_directory()).await;
        }
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The effect of a request on the models; `None` for an unknown route.
fn model_effect(service: &ModelService, request: &Request<Incoming>) -> ModelEffect {
    let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
    if is_grpc(headers) {
        return grpc::effect(path);
    }
    match service.settings.dialects.route(method, path, headers) {
        Ok(Some(route)) => route.call.effect(),
        Ok(None) => Route::parse(method, path).map_or(ModelEffect::None, |route| route.effect()),
        Err(_) => ModelEffect::None,
    }
}

async fn dispatch(
    service: &Arc<ModelService>,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &ConnectionActivity,
) -> Result<HttpResponse, ServeError> {
    let route = Route::parse(&head.method, head.uri.path())?;
    if !route.is_public() {
        service.settings.server.admit(&head.headers, activity)?;
    }
    match route {
        Route::Predict(model) => {
            infer::predict(service, &PREDICT, model.as_ref(), head, body, received, activity).await
        }
        Route::Infer(model) => infer::infer(service, &model, head, body, received, activity).await,
        Route::Health => Ok(info::health(service)),
        Route::Ready => Ok(info::probe("ready", service.is_ready())),
        Route::Live => Ok(info::probe("live", true)),
        Route::Metrics => Ok(metrics::metrics(service)),
        Route::Status => Ok(info::status(service)),
        Route::OpenApi => Ok(openapi::openapi(service)),
        Route::Page => page_asset(head.uri.path()),
        Route::ServerMetadata => Ok(info::server_metadata()),
        Route::ModelMetadata(model) => info::model_metadata(service, &model).await,
        Route::ModelReady(model) => info::model_ready(service, &model),
        Route::ModelConfig(model) => info::model_config(service, &model).await,
        Route::ModelStatistics(model) => info::model_statistics(service, model.as_ref()),
        Route::RepositoryIndex => {
            let body = service.resources.read_body(&head.headers, body, activity).await?;
            info::repository_index(service, &body.bytes)
        }
        Route::Load(name) => {
            let body = service.resources.read_body(&head.headers, body, activity).await?;
            check_load_parameters(&body.bytes)?;
            service.reload(Some(&name)).await?;
            Ok(response::json(StatusCode::OK, &serde_json::json!({})))
        }
        Route::Unload(name) => {
            // The only parameter that Triton's clients send is about models that depend on this one; there are none.
            service.resources.read_body(&head.headers, body, activity).await?;
            service.unload(&name).await?;
            Ok(response::json(StatusCode::OK, &serde_json::json!({})))
        }
    }
}

async fn dispatch_foreign(
    service: &Arc<ModelService>,
    route: &ForeignRoute,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &ConnectionActivity,
) -> Result<HttpResponse, ServeError> {
    if !route.call.is_public() {
        service.settings.server.admit(&head.headers, activity)?;
    }
    match &route.call {
        ForeignCall::Predict(model) => {
            let api = dialects::predict_api(route.dialect);
            infer::predict(service, api, model.as_ref(), head, body, received, activity).await
        }
        _ => dialects::describe(service, route).await,
    }
}

/// Triton accepts a configuration or files with a load request. Here models are loaded from their directory, and a
/// client that expects something else must get an error.
fn check_load_parameters(body: &[u8]) -> Result<(), HttpRejection> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct LoadRequest {
        parameters: serde_json::Map<String, serde_json::Value>,
    }
    let request: LoadRequest = info::parse_body(body, "a load request")?;
    match request.parameters.keys().next() {
        None => Ok(()),
        Some(name) => Err(HttpRejection::BadRequest(format!(
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
