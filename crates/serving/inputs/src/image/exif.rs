//! The orientation in EXIF data.

/// How an image is stored: the pixel that is seen at `(x, y)` is stored at `(x, y)`, or at `(y, x)` if it is transposed,
/// and counted from the other side where it is flipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orientation {
    pub(super) transposed: bool,
    pub(super) flipped_x: bool,
    pub(super) flipped_y: bool,
}

impl Orientation {
    /// Reads EXIF data; upright if it does not say otherwise.
    pub(super) fn read(exif: &[u8]) -> Self {
        // Some writers of PNG and WebP keep the prefix that JPEG needs.
        let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
        value(tiff).map(Self::from_value).unwrap_or_default()
    }

    /// The orientation of a value from 1 to 8.
    fn from_value(value: u16) -> Self {
        let [transposed, flipped_x, flipped_y] = match value {
            2 => [false, true, false],
            3 => [false, true, true],
            4 => [false, false, true],
            5 => [true, false, false],
            6 => [true, false, true],
            7 => [true, true, true],
            8 => [true, true, false],
            _ => [false; 3],
        };
        Self { transposed, flipped_x, flipped_y }
    }
}

/// The value of the tag in the first directory of a TIFF file.
fn value(tiff: &[u8]) -> Option<u16> {
    const ORIENTATION: u16 = 0x0112;
    const SHORT: u16 = 3;
    let big = match tiff.get(..2)? {
        b"MM" => true,
        b"II" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let count = usize::from(short(directory)?);
    let entry =
        (0..count).map(|index| directory + 2 + index * 12).find(|at| short(*at) == Some(ORIENTATION))?;
    (short(entry + 2)? == SHORT).then(|| short(entry + 8))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXIF data with another tag and then the orientation.
    fn exif(value: u16) -> Vec<u8> {
        let entry = |tag: u16, value: u16| {
            [
                &tag.to_le_bytes()[..],
                &3_u16.to_le_bytes(),
                &1_u32.to_le_bytes(),
                &value.to_le_bytes(),
                &[0, 0],
            ]
            .concat()
        };
        let head = [&b"II\x2a\0"[..], &8_u32.to_le_bytes(), &2_u16.to_le_bytes()].concat();
        [head, entry(0x0100, 7), entry(0x0112, value)].concat()
    }

    #[test]
    fn the_orientation_is_found() {
        let rotated = Orientation { transposed: true, flipped_x: false, flipped_y: true };
        assert_eq!(Orientation::read(&exif(6)), rotated);
        assert_eq!(Orientation::read(&[b"Exif\0\0", &exif(6)[..]].concat()), rotated);
        let big = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0";
        assert_eq!(Orientation::read(big), rotated);
        for value in [0, 1, 9, u16::MAX] {
            assert_eq!(Orientation::read(&exif(value)), Orientation::default());
        }
    }

    #[test]
    fn truncated_data_is_upright() {
        let whole = exif(6);
        for end in 0..whole.len() - 3 {
            assert_eq!(Orientation::read(&whole[..end]), Orientation::default(), "{end}");
        }
    }
}
