//! Headers of WebP files.
//!
//! The decoder allocates what the innermost frame claims to need before it compares that with the image's size, so the
//! claim is read first.

use super::geometry::Size;

/// Size of the lossy frame of a still image, if it has one.
pub(super) fn lossy_frame(bytes: &[u8]) -> Option<Size> {
    // The file header is 12 bytes; each chunk has a name, a length and data of even size.
    let mut at = 12_usize;
    loop {
        let (name, rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let (length, data) = rest.split_first_chunk::<4>()?;
        if name == b"VP8 " {
            let side =
                |at: usize| Some(u32::from(u16::from_le_bytes(*data.get(at..)?.first_chunk()?) & 0x3fff));
            // After three bytes of flags and three of a start code.
            return Some(Size { width: side(6)?, height: side(8)? });
        }
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        at = at.checked_add(8)?.checked_add(length)?.checked_add(length % 2)?;
    }
}
