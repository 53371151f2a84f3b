//! Compression of messages.

use bytes::Bytes;
use cudock_server::{ContentEncoding, HttpRejection, InflateError};

use super::status::{GrpcCode, GrpcStatus};

/// The compression of messages that are marked as compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrpcEncoding {
    Identity,
    Gzip,
    Deflate,
}

/// The value of `grpc-accept-encoding`.
pub(crate) const ACCEPTED: &str = "identity,deflate,gzip";

impl GrpcEncoding {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    /// Parses the client's `grpc-encoding`; identity without one.
    pub(crate) fn of_request(header: Option<&[u8]>) -> Result<Self, GrpcStatus> {
        let Some(name) = header else { return Ok(Self::Identity) };
        [Self::Identity, Self::Gzip, Self::Deflate]
            .into_iter()
            .find(|encoding| encoding.name().as_bytes() == name)
            .ok_or_else(|| {
                let name = String::from_utf8_lossy(name);
                GrpcStatus::unimplemented(format!("unsupported compression {name}; supported: {ACCEPTED}"))
            })
    }

    /// The encoding of the response to a request in this encoding: the same, if the client's `grpc-accept-encoding`
    /// contains it. A client that compresses is on a link where that pays off; for others it would cost time.
    pub(crate) fn for_response(self, accepted: Option<&[u8]>) -> Self {
        let accepts = |list: &[u8]| {
            list.split(|&byte| byte == b',').any(|item| item.trim_ascii() == self.name().as_bytes())
        };
        if accepted.is_some_and(accepts) { self } else { Self::Identity }
    }

    /// Decompresses a message of at most `limit` bytes. `reserve` is called for memory as it grows.
    pub(crate) fn decompress(
        self,
        compressed: &[u8],
        limit: usize,
        reserve: impl FnMut(usize) -> Result<(), HttpRejection>,
    ) -> Result<Bytes, GrpcStatus> {
        let Some(encoding) = self.content_encoding() else {
            let message = "a message is marked as compressed, but grpc-encoding is not set";
            return Err(GrpcStatus::internal(message));
        };
        match encoding.inflate(compressed, limit, reserve) {
            Ok(message) => Ok(message.into()),
            Err(InflateError::TooLong) => Err(too_long(limit)),
            Err(InflateError::NoMemory(rejection)) => Err(rejection.into()),
            Err(InflateError::Corrupt(error)) => {
                Err(GrpcStatus::invalid(format!("a message is not {}: {error}", self.name())))
            }
        }
    }

    /// Compresses the parts of a message; `None` for identity.
    pub(crate) fn compress(self, parts: &[Bytes]) -> Option<Vec<u8>> {
        self.content_encoding()?.compress(parts.iter().map(|part| &part[..])).ok()
    }

    fn content_encoding(self) -> Option<ContentEncoding> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some(ContentEncoding::Gzip),
            Self::Deflate => Some(ContentEncoding::Deflate),
        }
    }
}

pub(crate) fn too_long(limit: usize) -> GrpcStatus {
    GrpcStatus::new(GrpcCode::ResourceExhausted, format!("a message is longer than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unnecessary_wraps, reason = "what a budget answers")]
    fn free(_: usize) -> Result<(), HttpRejection> {
        Ok(())
    }

    #[test]
    fn compression_round_trips_and_a_bomb_is_rejected() {
        let parts = [Bytes::from_static(b"one, "), Bytes::from(vec![7; 100_000])];
        for encoding in [GrpcEncoding::Gzip, GrpcEncoding::Deflate] {
            let compressed = encoding.compress(&parts).unwrap();
            assert!(compressed.len() < 2_000);
            assert_eq!(encoding.decompress(&compressed, 100_005, free).unwrap(), parts.concat());
            let bomb = encoding.compress(&[vec![0; 10 << 20].into()]).unwrap();
            assert_eq!(encoding.decompress(&bomb, 1 << 20, free), Err(too_long(1 << 20)));
        }
        assert_eq!(GrpcEncoding::Identity.compress(&parts), None);
    }

    #[test]
    fn data_in_another_format_than_declared_is_rejected() {
        let gzip = GrpcEncoding::Gzip.compress(&[Bytes::from_static(b"some message")]).unwrap();
        for (encoding, data, code) in [
            (GrpcEncoding::Deflate, &gzip[..], GrpcCode::InvalidArgument),
            (GrpcEncoding::Gzip, &gzip[..15], GrpcCode::InvalidArgument),
            (GrpcEncoding::Identity, &gzip, GrpcCode::Internal),
        ] {
            assert_eq!(encoding.decompress(data, 100, free).unwrap_err().code, code);
        }
    }

    #[test]
    fn an_unknown_compression_is_rejected_by_name() {
        let error = GrpcEncoding::of_request(Some(b"snappy")).unwrap_err();
        assert_eq!(error.code, GrpcCode::Unimplemented);
        assert!(error.message.contains("snappy"), "{}", error.message);
        assert_eq!(GrpcEncoding::of_request(None), Ok(GrpcEncoding::Identity));
        assert_eq!(GrpcEncoding::of_request(Some(b"gzip")), Ok(GrpcEncoding::Gzip));
    }

    #[test]
    fn responses_are_compressed_like_the_request_if_the_client_accepts_that() {
        let cases: [(GrpcEncoding, Option<&[u8]>, GrpcEncoding); 5] = [
            (GrpcEncoding::Gzip, Some(b"identity, deflate, gzip"), GrpcEncoding::Gzip),
            (GrpcEncoding::Gzip, Some(b"identity,deflate"), GrpcEncoding::Identity),
            (GrpcEncoding::Gzip, None, GrpcEncoding::Identity),
            (GrpcEncoding::Identity, Some(b"gzip"), GrpcEncoding::Identity),
            (GrpcEncoding::Deflate, Some(b"deflate"), GrpcEncoding::Deflate),
        ];
        for (request, accepted, response) in cases {
            assert_eq!(request.for_response(accepted), response);
        }
    }
}
