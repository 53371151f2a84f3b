//! Headers of JPEG files.
//!
//! The decoder does not report in advance how much memory it will need: much more if the image is
//! progressive, or if each scan has one component only. Files that the decoder would read in
//! another way than this module are rejected, so that no file can hide its memory needs.

use super::exif::Orientation;
use super::geometry::Size;
use crate::InputError;

/// Largest block of pixels that is coded as a unit: images are padded to multiples of it.
const LARGEST_UNIT: u32 = 32;
/// Maximum number of segments before the first scan; photos have a few hundred at most. The
/// decoder's time for some kinds of metadata grows with the square of their number.
const MAX_SEGMENTS: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JpegHeader {
    pub(super) size: Size,
    pub(super) components: u8,
    /// Whether the decoder keeps the coefficients of the whole image.
    is_buffered: bool,
    pub(super) orientation: Orientation,
}

impl JpegHeader {
    /// Reads up to the first scan.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, InputError> {
        let truncated = || InputError::Invalid("the JPEG file is truncated".to_owned());
        let mut frame: Option<(Size, u8, bool)> = None;
        let mut orientation = Orientation::default();
        let mut at = 2;
        let mut segments = 0;
        loop {
            let marker_at =
                at + memchr::memchr(0xff, bytes.get(at..).unwrap_or_default()).ok_or_else(truncated)?;
            let marker = *bytes.get(marker_at + 1).ok_or_else(truncated)?;
            at = marker_at + 1;
            // Stuffing and fill bytes.
            if matches!(marker, 0x00 | 0xff) {
                continue;
            }
            // Markers without a segment, where the decoder expects one.
            if matches!(marker, 0x01 | 0xd0..=0xd9) {
                let message = format!("the JPEG file has marker 0x{marker:02x} before its first scan");
                return Err(InputError::Invalid(message));
            }
            segments += 1;
            if segments > MAX_SEGMENTS {
                let message =
                    format!("the JPEG file has more than {MAX_SEGMENTS} segments before its first scan");
                return Err(InputError::TooLarge(message));
            }
            let segment = segment(bytes, marker_at + 2).ok_or_else(truncated)?;
            at = marker_at + 4 + segment.len();
            match marker {
                0xc0..=0xc2 => frame = Some(read_frame(segment, marker == 0xc2)?),
                0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                    let message = "lossless, hierarchical and arithmetic-coded JPEG files are not supported";
                    return Err(InputError::Unsupported(message.to_owned()));
                }
                0xe1 if segment.starts_with(b"Exif\0\0") => orientation = Orientation::read(segment),
                0xda => {
                    let (size, components, is_progressive) = frame.ok_or_else(truncated)?;
                    let in_scan = segment.first().copied().unwrap_or(0);
                    let is_buffered = is_progressive || in_scan < components;
                    return Ok(Self { size, components, is_buffered, orientation });
                }
                _ => {}
            }
        }
    }

    /// Bytes that the decoder allocates in addition to the pixels.
    pub(super) fn buffers(&self) -> u64 {
        let padded = |length: u32| u64::from(length.next_multiple_of(LARGEST_UNIT));
        let (width, height) = (padded(self.size.width), padded(self.size.height));
        let rows = if self.is_buffered { height } else { u64::from(LARGEST_UNIT) };
        // Coefficients have two bytes.
        width * rows * u64::from(self.components) * 2
    }
}

/// The content of the segment whose length is at `at`.
fn segment(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    bytes.get(at + 2..at.checked_add(usize::from(length))?)
}

/// Size, components, and whether the frame is progressive.
fn read_frame(segment: &[u8], is_progressive: bool) -> Result<(Size, u8, bool), InputError> {
    let Some(&[precision, height_high, height_low, width_high, width_low, components]) =
        segment.first_chunk()
    else {
        return Err(InputError::Invalid("the frame header of the JPEG file is too short".to_owned()));
    };
    if precision != 8 || !matches!(components, 1 | 3 | 4) {
        let message =
            format!("JPEG files with {components} components of {precision} bits are not supported");
        return Err(InputError::Unsupported(message));
    }
    let length = |high, low| u32::from(u16::from_be_bytes([high, low]));
    let size = Size { width: length(width_high, width_low), height: length(height_high, height_low) };
    Ok((size, components, is_progressive))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..20),
                    prop::sample::select(vec![0xc0, 0xc2, 0xda, 0xe1]).prop_map(|marker| vec![0xff, marker, 0, 8]),
                    Just(b"\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0".to_vec()),
                ],
                0..6,
            ),
        ) {
            let bytes = [&[0xff, 0xd8][..], &parts.concat()].concat();
            if let Ok(header) = JpegHeader::read(&bytes) {
                prop_assert!(matches!(header.components, 1 | 3 | 4));
                prop_assert!(header.buffers() <= u64::from(u16::MAX) * u64::from(u16::MAX) * 9);
            }
        }
    }
}
