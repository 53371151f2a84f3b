//! What goes back over HTTP: bodies, errors, compression.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cudock_tensor::Malformed;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::activity::{Activity, Busy};
use crate::ServeError;
use crate::aside::INLINE;
use crate::grpc::GrpcBody;
use crate::inflate::Packing;
use crate::memory::Reservation;
use crate::service::Service;

/// The body of an answer.
pub(crate) enum AnswerBody {
    /// All of it, once.
    Whole(Option<Bytes>),
    /// Messages and trailers of gRPC.
    Grpc(GrpcBody),
    /// The same, as they come about.
    Stream(WatchedBody),
}

/// A body that goes on for as long as its client likes. It keeps its connection busy while it waits for the server; what
/// it has given must be taken by the client in time.
pub(crate) struct WatchedBody {
    body: GrpcBody,
    activity: Arc<Activity>,
    waiting: Option<Busy>,
}

impl AnswerBody {
    /// The body, with its connection told what it does.
    pub(crate) fn watched(self, activity: Arc<Activity>) -> Self {
        match self {
            Self::Grpc(body) if body.is_stream() => {
                let waiting = Some(Arc::clone(&activity).begin());
                Self::Stream(WatchedBody { body, activity, waiting })
            }
            body => body,
        }
    }
}

impl WatchedBody {
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

/// An answer over HTTP.
pub(crate) type HttpAnswer = Response<AnswerBody>;

impl Body for AnswerBody {
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
            Self::Grpc(body) | Self::Stream(WatchedBody { body, .. }) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Grpc(body) | Self::Stream(WatchedBody { body, .. }) => body.size_hint(),
        }
    }
}

/// An answer with that body.
pub(crate) fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> HttpAnswer {
    let body = body.into();
    let body = if body.is_empty() { None } else { Some(body) };
    let mut answer = Response::new(AnswerBody::Whole(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> HttpAnswer {
    whole(status, "application/json", value.to_string())
}

/// The answer that tells a client why there is none.
pub(crate) fn error(error: &ServeError) -> HttpAnswer {
    let status = status_of(error);
    let mut answer = json(status, &serde_json::json!({ "error": error.to_string() }));
    let headers = answer.headers_mut();
    if let Some(after) = error.retry_after() {
        // The header counts whole seconds; who can do better reads the milliseconds.
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
    answer
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn status_of(error: &ServeError) -> StatusCode {
    match error {
        ServeError::NoModel { .. } | ServeError::NoVersion { .. } | ServeError::NotFound(_) => {
            StatusCode::NOT_FOUND
        }
        ServeError::NotReady { .. } | ServeError::Draining => StatusCode::SERVICE_UNAVAILABLE,
        ServeError::Malformed(Malformed::TooLarge { .. })
        | ServeError::BodyTooLarge { .. }
        | ServeError::OverBudget { .. }
        | ServeError::TooManyRows { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ServeError::Malformed(_) | ServeError::BadRequest(_) | ServeError::WhichModel(_) => {
            StatusCode::BAD_REQUEST
        }
        ServeError::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ServeError::Unwritable(_) | ServeError::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
        ServeError::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
        ServeError::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
        ServeError::Late => StatusCode::GATEWAY_TIMEOUT,
        ServeError::Unauthorized => StatusCode::UNAUTHORIZED,
        ServeError::Engine(_) | ServeError::Reload { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        ServeError::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
    }
}

/// Bodies shorter than this are not worth compressing.
const WORTH_COMPRESSING: usize = 1024;

/// Compresses an answer if its client takes that and it is long enough to gain by it.
pub(crate) async fn compressed(service: &Service, answer: HttpAnswer, accepted: &HeaderValue) -> HttpAnswer {
    let Some(encoding) = accepted.to_str().ok().and_then(Encoding::preferred) else { return answer };
    let (mut head, body) = answer.into_parts();
    let AnswerBody::Whole(Some(bytes)) = body else { return Response::from_parts(head, body) };
    let packed = if bytes.len() < WORTH_COMPRESSING {
        None
    } else if bytes.len() <= INLINE {
        encoding.compress(&bytes).ok().map(Bytes::from)
    } else {
        let (whole, mut reservation) = (bytes.clone(), Reservation::new(&service.budget));
        let packing = move || {
            reservation.cover(whole.len() / 2)?;
            let packed = encoding.compress(&whole).map_err(|error| ServeError::Engine(error.to_string()))?;
            drop(whole);
            reservation.resize(packed.len())?;
            Ok(reservation.attach(packed.into()))
        };
        // Where there is no room to compress it, it goes as it is.
        service.aside.run(packing).await.ok()
    };
    if packed.is_some() {
        head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    Response::from_parts(head, AnswerBody::Whole(packed.or(Some(bytes))))
}

/// Ways to compress a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Deflate,
    Zstd,
}

impl Encoding {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    pub(crate) fn packing(self) -> Packing {
        match self {
            Self::Gzip => Packing::Gzip,
            Self::Deflate => Packing::Zlib,
            Self::Zstd => Packing::Zstd,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    /// The cheapest of those an `Accept-Encoding` allows.
    fn preferred(accepted: &str) -> Option<Self> {
        let allowed = |wanted: Self| {
            accepted.split(',').any(|item| {
                let mut parts = item.split(';').map(str::trim);
                let named = parts.next().and_then(Self::from_name) == Some(wanted);
                let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)));
                named && !refused
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
        assert_eq!(Encoding::preferred("gzip;q=0, deflate"), Some(Encoding::Deflate));
        assert_eq!(Encoding::preferred("br, gzip;q=0.5"), Some(Encoding::Gzip));
        assert_eq!(Encoding::preferred("identity"), None);
    }

    #[test]
    fn every_refusal_for_want_of_room_says_when_to_come_back() {
        let full = error(&ServeError::Full { retry_after: std::time::Duration::from_millis(40) });
        assert_eq!(full.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(full.headers().get("retry-after").map(HeaderValue::as_bytes), Some(&b"1"[..]));
        assert_eq!(full.headers().get("retry-after-ms").map(HeaderValue::as_bytes), Some(&b"40"[..]));
    }
}
