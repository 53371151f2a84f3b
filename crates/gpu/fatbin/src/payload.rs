//! Decompresses payloads.

use std::borrow::Cow;
use std::io::Read;

use crate::container::{Codec, FatbinEntry};

/// The size limit; the largest known payload is less than a tenth of this.
const MAX_BYTES: u64 = 2 << 30;

/// The maximum compression ratio of LZ4.
const LZ4_MAX_RATIO: u64 = 255;

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("at offset {offset:#x}: payload is outside of the file")]
    Outside { offset: u64 },
    #[error("at offset {offset:#x}: {stored} bytes cannot decompress to {claimed}")]
    Claim { offset: u64, claimed: u64, stored: u64 },
    /// Decompression failed, or gave a different size.
    #[error("at offset {offset:#x}: cannot decompress the payload: {reason}")]
    Broken { offset: u64, reason: String },
}

impl FatbinEntry {
    /// The payload, decompressed if necessary. `file` is the whole file of the entry.
    ///
    /// Intermediate code may be encrypted, so it is returned as stored.
    pub fn payload<'a>(&self, file: &'a [u8]) -> Result<Cow<'a, [u8]>, PayloadError> {
        let offset = self.payload_offset();
        let stored = self.stored_bytes(file).ok_or(PayloadError::Outside { offset })?;
        if self.codec == Codec::Raw || self.is_lto() {
            return Ok(Cow::Borrowed(stored));
        }
        let data = stored.get(..self.compressed as usize).ok_or(PayloadError::Outside { offset })?;
        let claim = || PayloadError::Claim { offset, claimed: self.bytes, stored: data.len() as u64 };
        let size = usize::try_from(self.bytes).ok().filter(|_| self.bytes <= MAX_BYTES).ok_or_else(claim)?;
        let broken = |reason: String| PayloadError::Broken { offset, reason };
        let decompressed = if self.codec == Codec::Lz4 {
            if self.bytes > (data.len() as u64).saturating_mul(LZ4_MAX_RATIO) {
                return Err(claim());
            }
            lz4_flex::block::decompress(data, size).map_err(|error| broken(error.to_string()))?
        } else {
            let decoder =
                zstd::stream::read::Decoder::with_buffer(data).map_err(|error| broken(error.to_string()))?;
            // Grows with the output, not with the claimed size.
            let mut decompressed = Vec::new();
            decoder
                .take(self.bytes + 1)
                .read_to_end(&mut decompressed)
                .map_err(|error| broken(error.to_string()))?;
            decompressed
        };
        if decompressed.len() == size {
            Ok(Cow::Owned(decompressed))
        } else {
            Err(broken(format!("{} bytes instead of {size}", decompressed.len())))
        }
    }

    pub fn stored_bytes<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.payload_offset()).ok()?;
        file.get(start..start.checked_add(usize::try_from(self.stored).ok()?)?)
    }
}
