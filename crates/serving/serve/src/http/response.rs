//! HTTP responses: bodies, errors, compression.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use cudock_inputs::InputError;
use cudock_server::MonitoredBody;
use cudock_tensor::RequestError;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::ServeError;
use crate::grpc::GrpcBody;
use crate::service::ModelService;

pub(crate) enum ResponseBody {
    Whole(Option<Bytes>),
    /// gRPC messages and trailers.
    Grpc(GrpcBody),
    /// A stream of gRPC messages.
    Stream(MonitoredBody<GrpcBody>),
}

pub(crate) type HttpResponse = Response<ResponseBody>;

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Grpc(body) => Pin::new(body).poll_frame(context),
            Self::Stream(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Grpc(body) => body.is_end_stream(),
            Self::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Grpc(body) => body.size_hint(),
            Self::Stream(body) => body.size_hint(),
        }
    }
}

pub(crate) fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let body = body.into();
    let body = if body.is_empty() { None } else { Some(body) };
    let mut response = Response::new(ResponseBody::Whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> HttpResponse {
    // Plain data can always be written.
    full(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

pub(crate) fn error(error: &ServeError) -> HttpResponse {
    error_with(error, &serde_json::json!({ "error": error.to_string() }))
}

/// The response to an error with that body.
pub(crate) fn error_with(error: &ServeError, body: &serde_json::Value) -> HttpResponse {
    let mut response = json(status_of(error), body);
    let headers = response.headers_mut();
    if let ServeError::Rejected(rejection) = error {
        rejection.write_headers(headers);
    } else if let Some(after) = error.retry_after() {
        cudock_server::write_retry_after(headers, after);
    }
    if let ServeError::MethodNotAllowed { allowed, .. } = error {
        headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

pub(crate) fn status_of(error: &ServeError) -> StatusCode {
    match error {
        ServeError::Rejected(rejection) => rejection.status(),
        ServeError::ModelNotFound { .. } | ServeError::VersionNotFound { .. } | ServeError::NotFound(_) => {
            StatusCode::NOT_FOUND
        }
        ServeError::NotReady { .. }
        | ServeError::NoGpu { .. }
        | ServeError::NotLoaded { .. }
        | ServeError::Draining => StatusCode::SERVICE_UNAVAILABLE,
        ServeError::KeptLoaded(_) => StatusCode::CONFLICT,
        ServeError::RequestError(RequestError::TooLarge { .. })
        | ServeError::Input(InputError::TooLarge(_))
        | ServeError::DeviceMemory(_) => StatusCode::PAYLOAD_TOO_LARGE,
        ServeError::Input(InputError::Unsupported(_)) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ServeError::RequestError(_)
        | ServeError::Input(InputError::Invalid(_))
        | ServeError::AmbiguousModel(_) => StatusCode::BAD_REQUEST,
        ServeError::ResponseError(_) | ServeError::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
        ServeError::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ServeError::Engine(_) | ServeError::Reload { .. } | ServeError::LoadFailed { .. } => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        ServeError::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
    }
}

/// Compresses a response if its client accepts that and it is long enough.
pub(crate) async fn compressed(
    service: &ModelService,
    response: HttpResponse,
    accepted: &HeaderValue,
) -> HttpResponse {
    let (mut head, mut body) = response.into_parts();
    if let ResponseBody::Whole(Some(bytes)) = &mut body {
        *bytes = service.resources.compress(&mut head, std::mem::take(bytes), accepted).await;
    }
    Response::from_parts(head, body)
}

#[cfg(test)]
mod tests {
    use cudock_server::HttpRejection;

    use super::*;

    #[test]
    fn an_overload_response_contains_the_retry_delay() {
        let full =
            error(&HttpRejection::Overloaded { retry_after: std::time::Duration::from_millis(40) }.into());
        assert_eq!(full.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            (&full.headers()["retry-after"], &full.headers()["retry-after-ms"]),
            (&1.into(), &40.into())
        );
    }
}
