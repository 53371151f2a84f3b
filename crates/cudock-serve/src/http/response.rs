//! HTTP responses: bodies, errors, compression.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cudock_tensor::RequestError;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::monitor::{BusyGuard, ConnectionActivity};
use crate::ServeError;
use crate::grpc::GrpcBody;
use crate::inflate::CompressionFormat;
use crate::memory::Reservation;
use crate::service::ModelService;
use crate::worker_pool::MAX_INLINE_PARSE;

/// The body of a response.
pub(crate) enum ResponseBody {
    /// A complete body.
    Whole(Option<Bytes>),
    /// gRPC messages and trailers.
    Grpc(GrpcBody),
    /// A stream of gRPC messages.
    Stream(MonitoredBody),
}

/// A body that lasts as long as its client likes. It keeps its connection busy while it waits for the server; what it
/// has produced must be read by the client in time.
pub(crate) struct MonitoredBody {
    body: GrpcBody,
    activity: Arc<ConnectionActivity>,
    waiting: Option<BusyGuard>,
}

impl ResponseBody {
    /// Lets a stream report its activity to the connection's monitor.
    pub(crate) fn monitored(self, activity: Arc<ConnectionActivity>) -> Self {
        match self {
            Self::Grpc(body) if body.is_stream() => {
                let waiting = Some(Arc::clone(&activity).begin());
                Self::Stream(MonitoredBody { body, activity, waiting })
            }
            body => body,
        }
    }
}

impl MonitoredBody {
    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        self.waiting.get_or_insert_with(|| Arc::clone(&self.activity).begin());
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.waiting = None;
        }
        frame
    }
}

/// An HTTP response.
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
            Self::Stream(watched) => watched.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Grpc(body) | Self::Stream(MonitoredBody { body, .. }) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Grpc(body) | Self::Stream(MonitoredBody { body, .. }) => body.size_hint(),
        }
    }
}

/// Creates a response with that body.
pub(crate) fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let body = body.into();
    let body = if body.is_empty() { None } else { Some(body) };
    let mut response = Response::new(ResponseBody::Whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Creates a JSON response.
pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> HttpResponse {
    full(status, "application/json", value.to_string())
}

/// Creates the response of an error.
pub(crate) fn error(error: &ServeError) -> HttpResponse {
    let status = status_of(error);
    let mut response = json(status, &serde_json::json!({ "error": error.to_string() }));
    let headers = response.headers_mut();
    if let Some(after) = error.retry_after() {
        // The standard header has a resolution of one second; clients that can do better read the milliseconds.
        let seconds = after.as_secs_f64().ceil().max(1.0);
        insert(headers, "retry-after", &format!("{seconds}"));
        insert(headers, "retry-after-ms", &after.as_millis().to_string());
    }
    if matches!(error, ServeError::Unauthorized) {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let ServeError::MethodNotAllowed { allowed, .. } = error {
        headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn status_of(error: &ServeError) -> StatusCode {
    match error {
        ServeError::ModelNotFound { .. } | ServeError::VersionNotFound { .. } | ServeError::NotFound(_) => {
            StatusCode::NOT_FOUND
        }
        ServeError::NotReady { .. } | ServeError::Draining => StatusCode::SERVICE_UNAVAILABLE,
        ServeError::RequestError(RequestError::TooLarge { .. })
        | ServeError::BodyTooLarge { .. }
        | ServeError::MemoryExceeded { .. }
        | ServeError::TooManyRows { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ServeError::RequestError(_) | ServeError::BadRequest(_) | ServeError::AmbiguousModel(_) => {
            StatusCode::BAD_REQUEST
        }
        ServeError::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ServeError::ResponseError(_) | ServeError::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
        ServeError::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
        ServeError::Overloaded { .. } => StatusCode::TOO_MANY_REQUESTS,
        ServeError::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ServeError::Unauthorized => StatusCode::UNAUTHORIZED,
        ServeError::Engine(_) | ServeError::Reload { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        ServeError::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
    }
}

/// Shorter bodies are not worth compressing.
const WORTH_COMPRESSING: usize = 1024;

/// Compresses a response if its client accepts that and it is long enough.
pub(crate) async fn compressed(
    service: &ModelService,
    response: HttpResponse,
    accepted: &HeaderValue,
) -> HttpResponse {
    let Some(encoding) = accepted.to_str().ok().and_then(HttpEncoding::preferred) else { return response };
    let (mut head, body) = response.into_parts();
    let ResponseBody::Whole(Some(bytes)) = body else { return Response::from_parts(head, body) };
    let compressed = if bytes.len() < WORTH_COMPRESSING {
        None
    } else if bytes.len() <= MAX_INLINE_PARSE {
        encoding.compress(&bytes).ok().map(Bytes::from)
    } else {
        let (whole, mut reservation) = (bytes.clone(), Reservation::new(&service.budget));
        let format = move || {
            reservation.cover(whole.len() / 2)?;
            let compressed =
                encoding.compress(&whole).map_err(|error| ServeError::Engine(error.to_string()))?;
            drop(whole);
            reservation.resize(compressed.len())?;
            Ok(reservation.attach(compressed.into()))
        };
        // Without memory to compress it, the response is sent as it is.
        service.workers.run(format).await.ok()
    };
    if compressed.is_some() {
        head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    Response::from_parts(head, ResponseBody::Whole(compressed.or(Some(bytes))))
}

/// A content encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpEncoding {
    Gzip,
    Deflate,
    Zstd,
}

impl HttpEncoding {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    pub(crate) fn format(self) -> CompressionFormat {
        match self {
            Self::Gzip => CompressionFormat::Gzip,
            Self::Deflate => CompressionFormat::Zlib,
            Self::Zstd => CompressionFormat::Zstd,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    /// The cheapest encoding that an `Accept-Encoding` header allows.
    fn preferred(accepted: &str) -> Option<Self> {
        let allowed = |wanted: Self| {
            accepted.split(',').any(|item| {
                let mut parts = item.split(';').map(str::trim);
                let named = parts.next().and_then(Self::from_name) == Some(wanted);
                let excluded =
                    parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)));
                named && !excluded
            })
        };
        [Self::Zstd, Self::Gzip, Self::Deflate].into_iter().find(|&encoding| allowed(encoding))
    }

    fn compress(self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        let level = flate2::Compression::fast();
        let out = Vec::with_capacity(bytes.len() / 2);
        match self {
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(out, level);
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(out, level);
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Zstd => zstd::stream::encode_all(bytes, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_with_weight_zero_is_not_used() {
        assert_eq!(HttpEncoding::preferred("gzip;q=0, deflate"), Some(HttpEncoding::Deflate));
        assert_eq!(HttpEncoding::preferred("br, gzip;q=0.5"), Some(HttpEncoding::Gzip));
        assert_eq!(HttpEncoding::preferred("identity"), None);
    }

    #[test]
    fn an_overload_response_contains_the_retry_delay() {
        let full = error(&ServeError::Overloaded { retry_after: std::time::Duration::from_millis(40) });
        assert_eq!(full.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(full.headers().get("retry-after").map(HeaderValue::as_bytes), Some(&b"1"[..]));
        assert_eq!(full.headers().get("retry-after-ms").map(HeaderValue::as_bytes), Some(&b"40"[..]));
    }
}
