//! Compression of bodies; decompressed bytes count against the memory budget as they grow.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use hyper::header::{self, HeaderMap};

use crate::request::content_encoding::ContentEncoding;
use crate::request::rejection::HttpRejection;

/// Bytes that are decompressed at a time.
const CHUNK: usize = 64 << 10;
/// Largest window of a zstd frame, as a power of two: what level 19 uses.
const ZSTD_WINDOW: u32 = 23;

#[derive(Debug)]
pub enum InflateError {
    Corrupt(io::Error),
    TooLong,
    NoMemory(HttpRejection),
}

impl ContentEncoding {
    /// The encoding of a body by its headers; `None` if it is not encoded.
    pub fn of_body(headers: &HeaderMap) -> Result<Option<Self>, HttpRejection> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let name = value.to_str().unwrap_or("?").trim();
        let is_only = values.next().is_none();
        if is_only && (name.is_empty() || name.eq_ignore_ascii_case("identity")) {
            return Ok(None);
        }
        let encoding = Self::from_name(name).filter(|_| is_only);
        encoding.map(Some).ok_or_else(|| HttpRejection::UnsupportedEncoding { name: name.to_owned() })
    }

    /// Compresses the parts of a body, fast rather than well.
    pub fn compress<'part>(self, parts: impl IntoIterator<Item = &'part [u8]>) -> io::Result<Vec<u8>> {
        fn write<'part, W: Write>(
            mut encoder: W,
            parts: impl IntoIterator<Item = &'part [u8]>,
        ) -> io::Result<W> {
            parts.into_iter().try_for_each(|part| encoder.write_all(part))?;
            Ok(encoder)
        }
        match self {
            Self::Gzip => write(GzEncoder::new(Vec::new(), Compression::fast()), parts)?.finish(),
            Self::Deflate => write(ZlibEncoder::new(Vec::new(), Compression::fast()), parts)?.finish(),
            Self::Zstd => write(zstd::stream::write::Encoder::new(Vec::new(), 1)?, parts)?.finish(),
        }
    }

    /// Decompresses up to `limit` bytes. `reserve` is called before the result grows, with the number of bytes that will
    /// then be in use.
    pub fn inflate(
        self,
        compressed: &[u8],
        limit: usize,
        mut reserve: impl FnMut(usize) -> Result<(), HttpRejection>,
    ) -> Result<Vec<u8>, InflateError> {
        let mut decoder: Box<dyn Read + '_> = match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(compressed)),
            Self::Deflate => Box::new(ZlibDecoder::new(compressed)),
            Self::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::new(compressed).map_err(InflateError::Corrupt)?;
                decoder.window_log_max(ZSTD_WINDOW).map_err(InflateError::Corrupt)?;
                Box::new(decoder)
            }
        };
        let window = if self == Self::Zstd && compressed.len() > CHUNK { 1 << ZSTD_WINDOW } else { 0 };
        let mut out = Vec::new();
        loop {
            // One byte more than the limit distinguishes a body that is too large from one that just fits.
            let chunk = CHUNK.min(limit + 1 - out.len());
            reserve(compressed.len() + window + out.len() + chunk).map_err(InflateError::NoMemory)?;
            let read =
                decoder.by_ref().take(chunk as u64).read_to_end(&mut out).map_err(InflateError::Corrupt)?;
            if out.len() > limit {
                return Err(InflateError::TooLong);
            }
            if read < chunk {
                return Ok(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ALL: [ContentEncoding; 3] =
        [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Zstd];

    #[test]
    fn the_encoding_of_a_body_is_read_in_any_case_and_must_be_the_only_one() {
        use hyper::header::HeaderValue;
        let of = |values: &[&'static str]| {
            let named = |value: &&'static str| (header::CONTENT_ENCODING, HeaderValue::from_static(value));
            ContentEncoding::of_body(&values.iter().map(named).collect()).map_err(|error| error.to_string())
        };
        for values in [&[][..], &[""], &["identity"], &[" Identity "]] {
            assert_eq!(of(values), Ok(None), "{values:?}");
        }
        assert_eq!(of(&["GZip"]), Ok(Some(ContentEncoding::Gzip)));
        assert_eq!(of(&["X-GZIP"]), Ok(Some(ContentEncoding::Gzip)));
        assert_eq!(of(&["Deflate"]), Ok(Some(ContentEncoding::Deflate)));
        assert_eq!(of(&["ZSTD"]), Ok(Some(ContentEncoding::Zstd)));
        for (values, name) in [
            (&["br"][..], "br"),
            (&["gzip, gzip"], "gzip, gzip"),
            (&["gzip", "gzip"], "gzip"),
            (&["identity", "gzip"], "identity"),
        ] {
            let error = format!("unsupported content-encoding `{name}`; supported: gzip, deflate, zstd");
            assert_eq!(of(values), Err(error), "{values:?}");
        }
    }

    #[test]
    fn an_encoding_with_weight_zero_is_not_used() {
        assert_eq!(ContentEncoding::preferred("gzip;q=0, deflate"), Some(ContentEncoding::Deflate));
        assert_eq!(ContentEncoding::preferred("br, gzip;q=0.5"), Some(ContentEncoding::Gzip));
        assert_eq!(ContentEncoding::preferred("identity"), None);
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let zeros = vec![0; 4 << 20];
        for encoding in ALL {
            let bomb = encoding.compress([&zeros[..]]).unwrap();
            assert!(bomb.len() < 1 << 16);
            for limit in [1 << 20, (4 << 20) - 1] {
                assert!(matches!(encoding.inflate(&bomb, limit, |_| Ok(())), Err(InflateError::TooLong)));
            }
            assert_eq!(encoding.inflate(&bomb, 4 << 20, |_| Ok(())).unwrap(), zeros);
        }
    }

    #[test]
    fn memory_is_reserved_before_it_is_allocated() {
        for encoding in ALL {
            let bomb = encoding.compress([&vec![0; 8 << 20][..]]).unwrap();
            let mut most = 0;
            let outcome = encoding.inflate(&bomb, 64 << 20, |bytes| {
                most = bytes;
                if bytes > 1 << 20 {
                    return Err(HttpRejection::Overloaded { retry_after: Duration::ZERO });
                }
                Ok(())
            });
            assert!(matches!(outcome, Err(InflateError::NoMemory(_))), "{encoding:?}");
            assert!(most <= (1 << 20) + CHUNK, "{encoding:?}: {most}");
        }
    }

    #[test]
    fn invalid_and_truncated_data_is_rejected() {
        for encoding in ALL {
            let whole = encoding.compress([&[7; 1000][..]]).unwrap();
            for data in [&b"not compressed"[..], &whole[..whole.len() - 4]] {
                let outcome = encoding.inflate(data, 1 << 20, |_| Ok(()));
                assert!(matches!(outcome, Err(InflateError::Corrupt(_))), "{encoding:?}");
            }
        }
    }

    #[test]
    fn a_zstd_frame_with_a_huge_window_is_rejected() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&[1; 1000]).unwrap();
        let frame = encoder.finish().unwrap();
        let outcome = ContentEncoding::Zstd.inflate(&frame, 1 << 20, |_| Ok(()));
        assert!(matches!(outcome, Err(InflateError::Corrupt(_))));
    }
}
