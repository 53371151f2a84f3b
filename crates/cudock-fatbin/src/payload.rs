//! Payloads, opened.

use std::borrow::Cow;
use std::io::Read;

use crate::container::{Codec, Entry};

/// No payload seen was a tenth of this.
const MAX_BYTES: u64 = 2 << 30;

/// LZ4 cannot do better than this, whatever a header claims.
const LZ4_BEST: u64 = 255;

/// Why a payload cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// It lies outside the file.
    #[error("at offset {offset:#x}: the payload lies outside the file")]
    Outside {
        /// Where it should begin.
        offset: u64,
    },
    /// Its header claims a size that cannot be.
    #[error("at offset {offset:#x}: {claimed} bytes cannot come out of {stored}")]
    Claim {
        /// Where it begins.
        offset: u64,
        /// What the header claims.
        claimed: u64,
        /// What is stored.
        stored: u64,
    },
    /// It does not decompress, or not to the size that was promised.
    #[error("at offset {offset:#x}: the payload does not decompress: {reason}")]
    Broken {
        /// Where it begins.
        offset: u64,
        /// Why not.
        reason: String,
    },
}

impl Entry {
    /// The payload, decompressed if need be. `file` is the whole file the entry was read from.
    ///
    /// Intermediate code may be scrambled beyond its codec; it comes back as it is stored then.
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
        let opened = if self.codec == Codec::Lz4 {
            if self.bytes > (data.len() as u64).saturating_mul(LZ4_BEST) {
                return Err(claim());
            }
            lz4_flex::block::decompress(data, size).map_err(|error| broken(error.to_string()))?
        } else {
            let decoder =
                zstd::stream::read::Decoder::with_buffer(data).map_err(|error| broken(error.to_string()))?;
            // Grows with what comes out, not with what was claimed.
            let mut opened = Vec::new();
            decoder
                .take(self.bytes + 1)
                .read_to_end(&mut opened)
                .map_err(|error| broken(error.to_string()))?;
            opened
        };
        if opened.len() == size {
            Ok(Cow::Owned(opened))
        } else {
            Err(broken(format!("{} bytes came out, and {size} were promised", opened.len())))
        }
    }

    /// The payload as it lies in the file.
    pub fn stored_bytes<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.payload_offset()).ok()?;
        file.get(start..start.checked_add(usize::try_from(self.stored).ok()?)?)
    }
}
