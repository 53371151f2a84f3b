//! Reading a body: all of it, but no more than is taken, and not for ever.

use std::io::Read;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap};

use super::answer::Encoding;
use crate::ServeError;
use crate::service::{Held, Service};

/// A body is given room as it arrives, however long it claims to be.
const FIRST_ROOM: usize = 1 << 20;

/// A body and its weight on the server's memory.
pub(crate) struct ReadBody<'service> {
    pub(crate) bytes: Bytes,
    /// Counted until the request is done with.
    pub(crate) held: Held<'service>,
}

/// Reads a body whole.
pub(crate) async fn read<'service>(
    service: &'service Service,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<ReadBody<'service>, ServeError> {
    let limit = service.limits().body;
    let too_large = || ServeError::BodyTooLarge { limit };
    let claimed = body.size_hint().lower();
    let claimed = usize::try_from(claimed).ok().filter(|&claimed| claimed <= limit).ok_or_else(too_large)?;
    let encoding = encoding_of(headers)?;
    // A body of unknown length counts as if it were as long as one may be; compressed ones grow.
    let weight =
        if claimed == 0 || encoding.is_some() { limit.min(claimed.max(FIRST_ROOM) * 4) } else { claimed };
    let held = service.hold(weight)?;
    let bytes = collect(body, claimed, limit, service.settings.client_timeout).await?;
    let bytes = match encoding {
        None => bytes,
        Some(encoding) => unpack(encoding, &bytes, limit)?,
    };
    Ok(ReadBody { bytes, held })
}

fn encoding_of(headers: &HeaderMap) -> Result<Option<Encoding>, ServeError> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    let name = value.to_str().unwrap_or("?").trim();
    if name.is_empty() || name == "identity" {
        return Ok(None);
    }
    Encoding::from_name(name).map(Some).ok_or_else(|| {
        ServeError::UnsupportedMediaType(format!(
            "content-encoding `{name}` is not read; gzip, deflate and zstd are"
        ))
    })
}

async fn collect(
    mut body: Incoming,
    claimed: usize,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, ServeError> {
    let mut first: Option<Bytes> = None;
    let mut gathered: Option<BytesMut> = None;
    loop {
        let frame = match tokio::time::timeout(patience, body.frame()).await {
            Err(_) => return Err(ServeError::BodyTooSlow),
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                return Err(ServeError::BadRequest(format!("the body ended before its end: {error}")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let so_far = gathered.as_ref().map_or(0, BytesMut::len) + first.as_ref().map_or(0, Bytes::len);
        if so_far + data.len() > limit {
            return Err(ServeError::BodyTooLarge { limit });
        }
        if gathered.is_none() && first.is_none() {
            // The usual body comes in one piece and is used where it lies.
            first = Some(data);
            continue;
        }
        let room = gathered
            .get_or_insert_with(|| BytesMut::with_capacity(claimed.clamp(so_far, FIRST_ROOM.max(so_far))));
        if let Some(first) = first.take() {
            room.extend_from_slice(&first);
        }
        room.extend_from_slice(&data);
    }
    Ok(gathered.map(BytesMut::freeze).or(first).unwrap_or_default())
}

fn unpack(encoding: Encoding, packed: &[u8], limit: usize) -> Result<Bytes, ServeError> {
    let mut out = Vec::new();
    // One byte more than is taken tells a body that is too large from one that just fits.
    let most = limit as u64 + 1;
    let read = match encoding {
        Encoding::Gzip => flate2::read::MultiGzDecoder::new(packed).take(most).read_to_end(&mut out),
        Encoding::Deflate => flate2::read::ZlibDecoder::new(packed).take(most).read_to_end(&mut out),
        Encoding::Zstd => match zstd::stream::read::Decoder::new(packed) {
            Ok(decoder) => decoder.take(most).read_to_end(&mut out),
            Err(error) => Err(error),
        },
    };
    read.map_err(|error| ServeError::BadRequest(format!("the compressed body cannot be read: {error}")))?;
    if out.len() > limit {
        return Err(ServeError::BodyTooLarge { limit });
    }
    Ok(out.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_small_body_that_unpacks_to_a_huge_one_is_refused() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..64 {
            encoder.write_all(&vec![0; 1 << 16]).unwrap();
        }
        let packed = encoder.finish().unwrap();
        assert!(packed.len() < 1 << 16);
        assert!(matches!(unpack(Encoding::Gzip, &packed, 1 << 20), Err(ServeError::BodyTooLarge { .. })));
        assert_eq!(unpack(Encoding::Gzip, &packed, 1 << 22).unwrap().len(), 1 << 22);
    }

    #[test]
    fn a_body_that_is_not_what_it_says_is_a_bad_request() {
        for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Zstd] {
            assert!(matches!(unpack(encoding, b"not packed", 1 << 20), Err(ServeError::BadRequest(_))));
        }
    }
}
