//! The body of a response: messages, then the status in trailers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response};

use super::encoding::{ACCEPTED, GrpcEncoding};
use super::status::GrpcStatus;

pub(crate) struct GrpcBody(GrpcBodyKind);

enum GrpcBodyKind {
    /// Empty: the headers contain the status.
    Empty,
    Message {
        pieces: VecDeque<Bytes>,
        trailers: Option<HeaderMap>,
    },
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>),
}

/// The response to a call that failed before there was anything to send.
pub(crate) fn error_response(status: &GrpcStatus) -> Response<GrpcBody> {
    let mut response = respond(GrpcEncoding::Identity, GrpcBody(GrpcBodyKind::Empty));
    status.write(response.headers_mut());
    response
}

/// The response to a call with one message.
pub(crate) fn single(encoding: GrpcEncoding, pieces: Vec<Bytes>) -> Response<GrpcBody> {
    let body = GrpcBodyKind::Message { pieces: pieces.into(), trailers: Some(GrpcStatus::OK.trailers()) };
    respond(encoding, GrpcBody(body))
}

/// The response to a call with many messages; the body yields them, framed, and then trailers.
pub(crate) fn stream(
    encoding: GrpcEncoding,
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response<GrpcBody> {
    respond(encoding, GrpcBody(GrpcBodyKind::Stream(Box::pin(body))))
}

fn respond(encoding: GrpcEncoding, body: GrpcBody) -> Response<GrpcBody> {
    const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
    const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
    const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    if encoding != GrpcEncoding::Identity {
        headers.insert(ENCODING, HeaderValue::from_static(encoding.name()));
    }
    response
}

impl GrpcBody {
    /// Whether it lasts as long as its client likes.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.0, GrpcBodyKind::Stream(_))
    }
}

impl Body for GrpcBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            GrpcBodyKind::Empty => Poll::Ready(None),
            GrpcBodyKind::Message { pieces, trailers } => {
                let frame = match pieces.pop_front() {
                    Some(piece) => Some(Frame::data(piece)),
                    None => trailers.take().map(Frame::trailers),
                };
                Poll::Ready(frame.map(Ok))
            }
            GrpcBodyKind::Stream(body) => body.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            GrpcBodyKind::Empty => true,
            GrpcBodyKind::Message { trailers, .. } => trailers.is_none(),
            GrpcBodyKind::Stream(body) => body.is_end_stream(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::status::GrpcCode;
    use super::*;

    #[test]
    fn an_error_is_headers_only() {
        let response = error_response(&GrpcStatus::new(GrpcCode::NotFound, "no model"));
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/grpc");
        assert_eq!(response.headers()["grpc-status"], "5");
        assert_eq!(response.headers()["grpc-message"], "no model");
        assert!(response.body().is_end_stream());
    }

    #[tokio::test]
    async fn a_message_is_followed_by_trailers() {
        let response = single(GrpcEncoding::Gzip, [&b"one"[..], b"two"].map(Bytes::from_static).into());
        assert_eq!(response.headers()["grpc-encoding"], "gzip");
        assert!(!response.headers().contains_key("grpc-status"));
        assert!(!response.body().is_end_stream());
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(collected.to_bytes(), "onetwo");
    }

    #[test]
    fn responses_list_the_supported_compressions() {
        for response in [error_response(&GrpcStatus::OK), single(GrpcEncoding::Identity, Vec::new())] {
            assert_eq!(response.headers()["grpc-accept-encoding"], "identity,deflate,gzip");
            assert!(!response.headers().contains_key("grpc-encoding"));
        }
    }
}
