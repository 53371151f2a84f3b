//! Unpacking what clients compressed, counted against the memory budget as it grows.

use std::io::{self, Read};

use crate::ServeError;

/// Bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;
/// The largest window a zstd frame may ask for, as a power of two: what level 19 uses.
const ZSTD_WINDOW: u32 = 23;

/// How something was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zlib,
    Zstd,
}

/// Why something cannot be unpacked.
#[derive(Debug)]
pub(crate) enum InflateError {
    /// It is not what it says it is.
    Broken(io::Error),
    /// It is longer than the limit.
    TooLong,
    /// There is no memory for it.
    Refused(ServeError),
}

/// Unpacks up to `limit` bytes. `reserve` is asked before the result grows, with the bytes that will then be held.
pub(crate) fn inflate(
    packing: Packing,
    packed: &[u8],
    limit: usize,
    mut reserve: impl FnMut(usize) -> Result<(), ServeError>,
) -> Result<Vec<u8>, InflateError> {
    let mut decoder: Box<dyn Read + '_> = match packing {
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Packing::Zlib => Box::new(flate2::read::ZlibDecoder::new(packed)),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(packed).map_err(InflateError::Broken)?;
            decoder.window_log_max(ZSTD_WINDOW).map_err(InflateError::Broken)?;
            Box::new(decoder)
        }
    };
    let window = if packing == Packing::Zstd && packed.len() > PIECE { 1 << ZSTD_WINDOW } else { 0 };
    let mut out = Vec::new();
    loop {
        // One byte more than is taken tells a body that is too large from one that just fits.
        let piece = PIECE.min(limit + 1 - out.len());
        reserve(packed.len() + window + out.len() + piece).map_err(InflateError::Refused)?;
        let read = decoder.by_ref().take(piece as u64).read_to_end(&mut out).map_err(InflateError::Broken)?;
        if out.len() > limit {
            return Err(InflateError::TooLong);
        }
        if read < piece {
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

    const ALL: [Packing; 3] = [Packing::Gzip, Packing::Zlib, Packing::Zstd];

    fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::best();
        match packing {
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Zstd => zstd::stream::encode_all(bytes, 3).unwrap(),
        }
    }

    #[test]
    fn a_small_body_that_unpacks_to_a_huge_one_is_refused() {
        let zeros = vec![0; 4 << 20];
        for packing in ALL {
            let bomb = packed(packing, &zeros);
            assert!(bomb.len() < 1 << 16);
            assert!(matches!(inflate(packing, &bomb, 1 << 20, |_| Ok(())), Err(InflateError::TooLong)));
            assert!(matches!(inflate(packing, &bomb, (4 << 20) - 1, |_| Ok(())), Err(InflateError::TooLong)));
            assert_eq!(inflate(packing, &bomb, 4 << 20, |_| Ok(())).unwrap(), zeros);
        }
    }

    #[test]
    fn memory_is_asked_for_before_it_is_taken() {
        for packing in ALL {
            let bomb = packed(packing, &vec![0; 8 << 20]);
            let mut most = 0;
            let outcome = inflate(packing, &bomb, 64 << 20, |bytes| {
                most = bytes;
                if bytes > 1 << 20 {
                    return Err(ServeError::Full { retry_after: Duration::ZERO });
                }
                Ok(())
            });
            assert!(matches!(outcome, Err(InflateError::Refused(_))), "{packing:?}");
            assert!(most <= (1 << 20) + PIECE, "{packing:?}: {most}");
        }
    }

    #[test]
    fn bytes_that_are_not_what_they_say_are_broken() {
        for packing in ALL {
            let outcome = inflate(packing, b"not packed", 1 << 20, |_| Ok(()));
            assert!(matches!(outcome, Err(InflateError::Broken(_))), "{packing:?}");
            let whole = packed(packing, &[7; 1000]);
            let cut = inflate(packing, &whole[..whole.len() - 4], 1 << 20, |_| Ok(()));
            assert!(matches!(cut, Err(InflateError::Broken(_))), "{packing:?}");
        }
    }

    #[test]
    fn a_zstd_frame_cannot_ask_for_a_huge_window() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&[1; 1000]).unwrap();
        let frame = encoder.finish().unwrap();
        assert!(matches!(inflate(Packing::Zstd, &frame, 1 << 20, |_| Ok(())), Err(InflateError::Broken(_))));
    }
}
