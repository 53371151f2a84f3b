//! Decompression of layers.

use std::io::{self, BufRead, Read};

use cudock_base::Codec;
use flate2::bufread::MultiGzDecoder;

/// A reader that decompresses `bytes`.
pub(crate) fn decompressor<'a>(codec: Codec, bytes: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match codec {
        Codec::Plain => Box::new(bytes),
        Codec::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Codec::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
            // The largest window that the zstd tools accept by default.
            decoder.window_log_max(27)?;
            Box::new(decoder)
        }
    })
}
