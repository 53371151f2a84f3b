//! Compression of messages.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::status::{Code, Status};
use crate::ServeError;
use crate::inflate::{InflateError, Packing, inflate};

/// How the messages of a call that are marked as compressed are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Deflate,
}

/// What `grpc-accept-encoding` says to clients.
pub(crate) const ACCEPTED: &str = "identity,deflate,gzip";

impl Encoding {
    /// As it is named in headers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    /// What the client's `grpc-encoding` names; identity without one.
    pub(crate) fn of_request(header: Option<&[u8]>) -> Result<Self, Status> {
        let Some(name) = header else { return Ok(Self::Identity) };
        [Self::Identity, Self::Gzip, Self::Deflate]
            .into_iter()
            .find(|encoding| encoding.name().as_bytes() == name)
            .ok_or_else(|| {
                let name = String::from_utf8_lossy(name);
                Status::new(
                    Code::Unimplemented,
                    format!("messages compressed with {name} are not read here, only {ACCEPTED}"),
                )
            })
    }

    /// What to answer a request in this encoding with: the same, if the client's `grpc-accept-encoding` names it. A
    /// client that takes the trouble to compress is on a link where that pays; for others it would cost time.
    pub(crate) fn for_answer(self, accepted: Option<&[u8]>) -> Self {
        let accepts = |list: &[u8]| {
            list.split(|&byte| byte == b',').any(|item| item.trim_ascii() == self.name().as_bytes())
        };
        if accepted.is_some_and(accepts) { self } else { Self::Identity }
    }

    /// The message behind compressed bytes, if it is no longer than `limit`. `reserve` is asked for memory as it grows.
    pub(crate) fn decompress(
        self,
        compressed: &[u8],
        limit: usize,
        reserve: impl FnMut(usize) -> Result<(), ServeError>,
    ) -> Result<Bytes, Status> {
        let packing = match self {
            Self::Identity => {
                return Err(Status::new(
                    Code::Internal,
                    "a message is marked as compressed, but grpc-encoding names no compression",
                ));
            }
            Self::Gzip => Packing::Gzip,
            Self::Deflate => Packing::Zlib,
        };
        match inflate(packing, compressed, limit, reserve) {
            Ok(message) => Ok(message.into()),
            Err(InflateError::TooLong) => Err(too_long(limit)),
            Err(InflateError::Refused(error)) => Err(error.into()),
            Err(InflateError::Broken(error)) => {
                Err(Status::invalid(format!("a message is not {}: {error}", self.name())))
            }
        }
    }

    /// The parts of a message, compressed; none if they are to go as they are.
    pub(crate) fn compress(self, parts: &[Bytes]) -> Option<Vec<u8>> {
        let level = Compression::fast();
        match self {
            Self::Identity => None,
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), level);
                parts.iter().try_for_each(|part| encoder.write_all(part)).ok()?;
                encoder.finish().ok()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                parts.iter().try_for_each(|part| encoder.write_all(part)).ok()?;
                encoder.finish().ok()
            }
        }
    }
}

/// The refusal of a message longer than `limit`.
pub(crate) fn too_long(limit: usize) -> Status {
    Status::new(Code::ResourceExhausted, format!("a message is longer than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unnecessary_wraps, reason = "what a budget answers")]
    fn free(_: usize) -> Result<(), ServeError> {
        Ok(())
    }

    #[test]
    fn what_is_compressed_is_read_back() {
        let parts = [Bytes::from_static(b"one, "), Bytes::from(vec![7; 100_000])];
        for encoding in [Encoding::Gzip, Encoding::Deflate] {
            let compressed = encoding.compress(&parts).unwrap();
            assert!(compressed.len() < 2_000);
            assert_eq!(encoding.decompress(&compressed, 100_005, free).unwrap(), parts.concat());
        }
        assert_eq!(Encoding::Identity.compress(&parts), None);
    }

    #[test]
    fn a_small_message_that_grows_beyond_the_limit_is_refused() {
        for encoding in [Encoding::Gzip, Encoding::Deflate] {
            let bomb = encoding.compress(&[vec![0; 10 << 20].into()]).unwrap();
            assert_eq!(encoding.decompress(&bomb, 1 << 20, free), Err(too_long(1 << 20)));
        }
    }

    #[test]
    fn bytes_that_are_not_compressed_as_said_are_refused() {
        let gzip = Encoding::Gzip.compress(&[Bytes::from_static(b"some message")]).unwrap();
        assert_eq!(Encoding::Deflate.decompress(&gzip, 100, free).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(
            Encoding::Gzip.decompress(&gzip[..15], 100, free).unwrap_err().code,
            Code::InvalidArgument
        );
        assert_eq!(Encoding::Identity.decompress(&gzip, 100, free).unwrap_err().code, Code::Internal);
    }

    #[test]
    fn an_unknown_compression_is_refused_by_name() {
        let refusal = Encoding::of_request(Some(b"snappy")).unwrap_err();
        assert_eq!(refusal.code, Code::Unimplemented);
        assert!(refusal.message.contains("snappy"), "{}", refusal.message);
        assert_eq!(Encoding::of_request(None), Ok(Encoding::Identity));
        assert_eq!(Encoding::of_request(Some(b"gzip")), Ok(Encoding::Gzip));
    }

    #[test]
    fn answers_are_compressed_as_the_request_was_if_the_client_reads_that() {
        let cases: [(Encoding, Option<&[u8]>, Encoding); 5] = [
            (Encoding::Gzip, Some(b"identity, deflate, gzip"), Encoding::Gzip),
            (Encoding::Gzip, Some(b"identity,deflate"), Encoding::Identity),
            (Encoding::Gzip, None, Encoding::Identity),
            (Encoding::Identity, Some(b"gzip"), Encoding::Identity),
            (Encoding::Deflate, Some(b"deflate"), Encoding::Deflate),
        ];
        for (request, accepted, answer) in cases {
            assert_eq!(request.for_answer(accepted), answer);
        }
    }
}
