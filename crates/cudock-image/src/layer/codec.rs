//! Compression of layers, detected by magic bytes because media types are often wrong.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Plain,
    Gzip,
    Zstd,
}

impl Codec {
    pub(crate) fn detect(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Codec::Gzip,
            // Skippable frames may come first, as in zstd:chunked layers and seekable files.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Codec::Zstd,
            _ => Codec::Plain,
        }
    }

    /// A reader that decompresses `bytes`.
    pub(crate) fn decoder<'a>(self, bytes: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
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
}
