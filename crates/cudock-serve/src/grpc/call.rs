//! What the headers of a call say.

use std::time::Instant;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::deadline::Deadline;
use super::encoding::Encoding;
use super::status::{Code, Status};

/// What the headers of a call say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// When the headers came.
    pub(crate) received: Instant,
    pub(crate) deadline: Deadline,
    /// How messages of the client are compressed that say they are.
    pub(crate) encoding: Encoding,
    /// How answers are to be compressed.
    pub(crate) answer_encoding: Encoding,
    /// Whether the first error ends a stream with its status; otherwise errors are answers among others. Clients of
    /// Triton ask for it.
    pub(crate) errors_end_stream: bool,
}

impl Call {
    /// Reads the headers of a call that came at `received`.
    pub(crate) fn read(headers: &HeaderMap, received: Instant) -> Result<Self, Status> {
        let header = |name: &str| headers.get(name).map(hyper::header::HeaderValue::as_bytes);
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let format = kind.strip_prefix(b"application/grpc").unwrap_or(b"?");
        let format = format.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        if !matches!(format, b"" | b"+proto") {
            let kind = String::from_utf8_lossy(kind);
            return Err(Status::new(
                Code::Unimplemented,
                format!("calls of the type {kind:?} are not read here, only application/grpc with protobuf"),
            ));
        }
        let encoding = Encoding::of_request(header("grpc-encoding"))?;
        Ok(Self {
            received,
            deadline: Deadline::of_request(header("grpc-timeout"), received)?,
            encoding,
            answer_encoding: encoding.for_answer(header("grpc-accept-encoding")),
            errors_end_stream: header("triton_grpc_error") == Some(b"true"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn read(headers: &[(&'static str, &'static str)], received: Instant) -> Result<Call, Status> {
        let headers = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        Call::read(&headers, received)
    }

    #[test]
    fn the_headers_of_a_client_are_understood() {
        let now = Instant::now();
        let call = read(
            &[
                ("content-type", "application/grpc"),
                ("grpc-timeout", "2S"),
                ("grpc-encoding", "gzip"),
                ("grpc-accept-encoding", "identity,gzip"),
                ("triton_grpc_error", "true"),
            ],
            now,
        )
        .unwrap();
        assert_eq!((call.encoding, call.answer_encoding), (Encoding::Gzip, Encoding::Gzip));
        assert_eq!(call.deadline.left(now), Ok(Some(Duration::from_secs(2))));
        assert!(call.errors_end_stream);
    }

    #[test]
    fn protobuf_may_be_named_and_other_formats_are_refused() {
        let now = Instant::now();
        for kind in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
            assert!(read(&[("content-type", kind)], now).is_ok(), "{kind}");
        }
        for kind in ["application/grpc+json", "application/grpc-web", "text/plain"] {
            assert_eq!(read(&[("content-type", kind)], now).unwrap_err().code, Code::Unimplemented, "{kind}");
        }
    }
}
