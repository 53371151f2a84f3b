//! Decompression of request bodies, counted against the memory budget as they grow.

use std::io::{self, Read};

use crate::ServeError;

/// Bytes that are decompressed at a time.
const CHUNK: usize = 64 << 10;
/// Largest window of a zstd frame, as a power of two: what level 19 uses.
const ZSTD_WINDOW: u32 = 23;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompressionFormat {
    Gzip,
    Zlib,
    Zstd,
}

/// An error of decompression.
#[derive(Debug)]
pub(crate) enum InflateError {
    /// The data is not valid.
    Corrupt(io::Error),
    /// The result is longer than the limit.
    TooLong,
    /// The memory budget is exhausted.
    NoMemory(ServeError),
}

/// Decompresses up to `limit` bytes. `reserve` is called before the result grows, with the number of bytes that will
/// then be in use.
pub(crate) fn inflate(
    format: CompressionFormat,
    compressed: &[u8],
    limit: usize,
    mut reserve: impl FnMut(usize) -> Result<(), ServeError>,
) -> Result<Vec<u8>, InflateError> {
    let mut decoder: Box<dyn Read + '_> = match format {
        CompressionFormat::Gzip => Box::new(flate2::read::MultiGzDecoder::new(compressed)),
        CompressionFormat::Zlib => Box::new(flate2::read::ZlibDecoder::new(compressed)),
        CompressionFormat::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(compressed).map_err(InflateError::Corrupt)?;
            decoder.window_log_max(ZSTD_WINDOW).map_err(InflateError::Corrupt)?;
            Box::new(decoder)
        }
    };
    let window =
        if format == CompressionFormat::Zstd && compressed.len() > CHUNK { 1 << ZSTD_WINDOW } else { 0 };
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
pub(crate) mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    const ALL: [CompressionFormat; 3] =
        [CompressionFormat::Gzip, CompressionFormat::Zlib, CompressionFormat::Zstd];

    fn compressed(format: CompressionFormat, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::best();
        match format {
            CompressionFormat::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            CompressionFormat::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            CompressionFormat::Zstd => zstd::stream::encode_all(bytes, 3).unwrap(),
        }
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let zeros = vec![0; 4 << 20];
        for format in ALL {
            let bomb = compressed(format, &zeros);
            assert!(bomb.len() < 1 << 16);
            assert!(matches!(inflate(format, &bomb, 1 << 20, |_| Ok(())), Err(InflateError::TooLong)));
            assert!(matches!(inflate(format, &bomb, (4 << 20) - 1, |_| Ok(())), Err(InflateError::TooLong)));
            assert_eq!(inflate(format, &bomb, 4 << 20, |_| Ok(())).unwrap(), zeros);
        }
    }

    #[test]
    fn memory_is_reserved_before_it_is_allocated() {
        for format in ALL {
            let bomb = compressed(format, &vec![0; 8 << 20]);
            let mut most = 0;
            let outcome = inflate(format, &bomb, 64 << 20, |bytes| {
                most = bytes;
                if bytes > 1 << 20 {
                    return Err(ServeError::Overloaded { retry_after: Duration::ZERO });
                }
                Ok(())
            });
            assert!(matches!(outcome, Err(InflateError::NoMemory(_))), "{format:?}");
            assert!(most <= (1 << 20) + CHUNK, "{format:?}: {most}");
        }
    }

    #[test]
    fn invalid_and_truncated_data_is_rejected() {
        for format in ALL {
            let outcome = inflate(format, b"not compressed", 1 << 20, |_| Ok(()));
            assert!(matches!(outcome, Err(InflateError::Corrupt(_))), "{format:?}");
            let whole = compressed(format, &[7; 1000]);
            let cut = inflate(format, &whole[..whole.len() - 4], 1 << 20, |_| Ok(()));
            assert!(matches!(cut, Err(InflateError::Corrupt(_))), "{format:?}");
        }
    }

    #[test]
    fn a_zstd_frame_with_a_huge_window_is_rejected() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&[1; 1000]).unwrap();
        let frame = encoder.finish().unwrap();
        assert!(matches!(
            inflate(CompressionFormat::Zstd, &frame, 1 << 20, |_| Ok(())),
            Err(InflateError::Corrupt(_))
        ));
    }
}
