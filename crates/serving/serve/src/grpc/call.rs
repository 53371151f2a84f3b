//! The headers of a call.

use std::time::Instant;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::deadline::Deadline;
use super::encoding::GrpcEncoding;
use super::status::GrpcStatus;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) received: Instant,
    pub(crate) deadline: Deadline,
    /// Compression of the client's messages that are marked as compressed.
    pub(crate) encoding: GrpcEncoding,
    pub(crate) response_encoding: GrpcEncoding,
    /// Whether the first error ends a stream with its status, as Triton's clients may request; otherwise errors are
    /// messages of the stream.
    pub(crate) errors_end_stream: bool,
}

impl Call {
    /// Parses the headers of a call that arrived at `received`.
    pub(crate) fn read(headers: &HeaderMap, received: Instant) -> Result<Self, GrpcStatus> {
        let header = |name: &str| headers.get(name).map(hyper::header::HeaderValue::as_bytes);
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let format = kind.strip_prefix(b"application/grpc").unwrap_or(b"?");
        let format = format.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        if !matches!(format, b"" | b"+proto") {
            let kind = String::from_utf8_lossy(kind);
            return Err(GrpcStatus::unimplemented(format!(
                "unsupported content-type {kind:?}; supported: application/grpc with protobuf"
            )));
        }
        let encoding = GrpcEncoding::of_request(header("grpc-encoding"))?;
        Ok(Self {
            received,
            deadline: Deadline::of_request(header("grpc-timeout"), received)?,
            encoding,
            response_encoding: encoding.for_response(header("grpc-accept-encoding")),
            errors_end_stream: header("triton_grpc_error") == Some(b"true"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::{HeaderName, HeaderValue};

    use super::super::status::GrpcCode;
    use super::*;

    fn read(headers: &[(&'static str, &'static str)], received: Instant) -> Result<Call, GrpcStatus> {
        let headers = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        Call::read(&headers, received)
    }

    #[test]
    fn the_headers_of_a_client_are_parsed() {
        let now = Instant::now();
        let headers = [
            ("content-type", "application/grpc"),
            ("grpc-timeout", "2S"),
            ("grpc-encoding", "gzip"),
            ("grpc-accept-encoding", "identity,gzip"),
            ("triton_grpc_error", "true"),
        ];
        let call = read(&headers, now).unwrap();
        assert_eq!((call.encoding, call.response_encoding), (GrpcEncoding::Gzip, GrpcEncoding::Gzip));
        assert_eq!(call.deadline.remaining(now), Ok(Some(Duration::from_secs(2))));
        assert!(call.errors_end_stream);
    }

    #[test]
    fn only_protobuf_is_supported() {
        let now = Instant::now();
        for kind in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
            assert!(read(&[("content-type", kind)], now).is_ok(), "{kind}");
        }
        for kind in ["application/grpc+json", "application/grpc-web", "text/plain"] {
            let status = read(&[("content-type", kind)], now).unwrap_err();
            assert_eq!(status.code, GrpcCode::Unimplemented, "{kind}");
        }
    }
}
