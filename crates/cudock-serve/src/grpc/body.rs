//! The body of an answer: messages, then trailers that say how it went.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response};

use super::encoding::{ACCEPTED, Encoding};
use super::status::Status;

/// The body of an answer to a gRPC call.
pub(crate) struct GrpcBody(Kind);

enum Kind {
    /// Nothing: the headers have said how it went.
    Empty,
    /// One message, known when the answer begins.
    Message { pieces: VecDeque<Bytes>, trailers: Option<HeaderMap> },
    /// Messages as they come about.
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>),
}

/// The answer to a call that failed before there was anything to send.
pub(crate) fn refusal(status: &Status) -> Response<GrpcBody> {
    let mut response = respond(Encoding::Identity, GrpcBody(Kind::Empty));
    status.write(response.headers_mut());
    response
}

/// The answer to a call with one message.
pub(crate) fn single(encoding: Encoding, pieces: Vec<Bytes>) -> Response<GrpcBody> {
    let kind = Kind::Message { pieces: pieces.into(), trailers: Some(Status::OK.trailers()) };
    respond(encoding, GrpcBody(kind))
}

/// The answer to a call with many messages; the body gives them, framed, and then trailers.
pub(crate) fn stream(
    encoding: Encoding,
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response<GrpcBody> {
    respond(encoding, GrpcBody(Kind::Stream(Box::pin(body))))
}

fn respond(encoding: Encoding, body: GrpcBody) -> Response<GrpcBody> {
    const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
    const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
    const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    if encoding != Encoding::Identity {
        headers.insert(ENCODING, HeaderValue::from_static(encoding.name()));
    }
    response
}

impl GrpcBody {
    /// Whether it goes on for as long as its client likes.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.0, Kind::Stream(_))
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
            Kind::Empty => Poll::Ready(None),
            Kind::Message { pieces, trailers } => {
                let frame = match pieces.pop_front() {
                    Some(piece) => Some(Frame::data(piece)),
                    None => trailers.take().map(Frame::trailers),
                };
                Poll::Ready(frame.map(Ok))
            }
            Kind::Stream(body) => body.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Message { trailers, .. } => trailers.is_none(),
            Kind::Stream(body) => body.is_end_stream(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::status::Code;
    use super::*;

    #[test]
    fn a_refusal_is_headers_alone() {
        let response = refusal(&Status::new(Code::NotFound, "no model"));
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/grpc");
        assert_eq!(response.headers()["grpc-status"], "5");
        assert_eq!(response.headers()["grpc-message"], "no model");
        assert!(response.body().is_end_stream());
    }

    #[tokio::test]
    async fn a_message_is_followed_by_trailers() {
        let response = single(Encoding::Gzip, vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
        assert_eq!(response.headers()["grpc-encoding"], "gzip");
        assert!(!response.headers().contains_key("grpc-status"));
        assert!(!response.body().is_end_stream());
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(collected.to_bytes(), "onetwo");
    }

    #[test]
    fn clients_are_told_what_they_may_compress_with() {
        for response in [refusal(&Status::OK), single(Encoding::Identity, Vec::new())] {
            assert_eq!(response.headers()["grpc-accept-encoding"], "identity,deflate,gzip");
            assert!(!response.headers().contains_key("grpc-encoding"));
        }
    }
}
