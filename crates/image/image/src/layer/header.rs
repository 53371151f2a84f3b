//! The fields of a tar header.

use std::io;

/// The unit of tar files, and the size of a header.
pub(super) const BLOCK: usize = 512;

/// An error while reading a layer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TarError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("invalid tar header at entry {0}: {1}")]
    Broken(u64, String),
    #[error("rejected: {0}")]
    Hostile(String),
}

pub(super) struct HeaderBlock<'b>(pub(super) &'b [u8; BLOCK]);

impl HeaderBlock<'_> {
    pub(super) fn field(&self, start: usize, length: usize) -> &[u8] {
        self.0.get(start..start + length).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> u8 {
        self.0.get(156).copied().unwrap_or(0)
    }

    pub(super) fn text(&self, start: usize, length: usize) -> &[u8] {
        let field = self.field(start, length);
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        field.get(..end).unwrap_or_default()
    }

    pub(super) fn path(&self) -> Vec<u8> {
        let name = self.text(0, 100);
        // GNU headers use this field for other data.
        let prefix: &[u8] = if self.field(257, 6) == b"ustar\0" { self.text(345, 155) } else { b"" };
        if prefix.is_empty() { name.to_vec() } else { [prefix, name].join(&b'/') }
    }

    /// Pairs of offset and length in a sparse map, up to the first empty one.
    pub(super) fn map(&self, start: usize, pairs: usize, to: &mut Vec<u64>) {
        for at in (0..pairs).map(|pair| start + pair * 24) {
            let is_used = self.0.get(at).is_some_and(|byte| *byte != 0);
            let (Some(offset), Some(length)) = (self.number(at, 12), self.number(at + 12, 12)) else {
                return;
            };
            if !is_used {
                return;
            }
            to.extend([offset, length]);
        }
    }

    /// An octal number, or GNU's binary form for numbers that do not fit.
    pub(super) fn number(&self, start: usize, length: usize) -> Option<u64> {
        let field = self.field(start, length);
        if field.first().is_some_and(|byte| byte & 0x80 != 0) {
            let (first, rest) = field.split_first()?;
            if first & 0x40 != 0 {
                return None;
            }
            return rest.iter().try_fold(u64::from(first & 0x3f), |number, byte| {
                number.checked_mul(256)?.checked_add(u64::from(*byte))
            });
        }
        let digits = field.iter().copied().skip_while(|byte| matches!(byte, b' ' | 0));
        let digits: Vec<u8> = digits.take_while(|byte| !matches!(byte, b' ' | 0)).collect();
        digits.iter().try_fold(0_u64, |number, digit| match digit {
            b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
            _ => None,
        })
    }

    /// The sum of all bytes, with blanks for the checksum field. Old writers summed signed bytes.
    pub(super) fn has_valid_checksum(&self) -> bool {
        let Some(written) = self.number(148, 8) else { return false };
        let bytes = || {
            self.0.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { b' ' } else { *byte })
        };
        let unsigned: u64 = bytes().map(u64::from).sum();
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        written == unsigned || i64::try_from(written) == Ok(signed)
    }
}
