//! Checks that an input is text.

/// An input that is not a text log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotText {
    /// gzip, zstd, xz, bzip2 or zip.
    Compressed(&'static str),
    /// UTF-16, as Windows tools write it.
    Utf16,
    /// Other binary data.
    Binary,
}

impl NotText {
    /// The kind of data.
    pub fn what(self) -> String {
        match self {
            NotText::Compressed(kind) => format!("compressed data ({kind})"),
            NotText::Utf16 => "text in UTF-16".to_owned(),
            NotText::Binary => "binary data".to_owned(),
        }
    }

    pub fn hint(self) -> &'static str {
        match self {
            NotText::Compressed("gzip") => "unpack it first: zcat FILE | cudock explain",
            NotText::Compressed("zstd") => "unpack it first: zstdcat FILE | cudock explain",
            NotText::Compressed(_) => "unpack it first and pass the text",
            NotText::Utf16 => "convert it first: iconv -f utf-16 -t utf-8 FILE | cudock explain",
            NotText::Binary => "pass a log file, a message in quotes, or pipe a log in",
        }
    }
}

const EXAMINED: usize = 64 << 10;

pub fn judge(start: &[u8]) -> Result<(), NotText> {
    let start = start.get(..EXAMINED).unwrap_or(start);
    for (magic, kind) in [
        (&b"\x1f\x8b"[..], "gzip"),
        (&b"\x28\xb5\x2f\xfd"[..], "zstd"),
        (&b"\xfd7zXZ\x00"[..], "xz"),
        (&b"BZh"[..], "bzip2"),
        (&b"PK\x03\x04"[..], "zip"),
    ] {
        if start.starts_with(magic) {
            return Err(NotText::Compressed(kind));
        }
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(NotText::Utf16);
    }
    // Serial consoles and kernel ring buffers leave stray NULs; a binary file is full of them and of other controls.
    let controls =
        start.iter().filter(|byte| matches!(byte, 0..=6 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)).count();
    if controls * 20 > start.len() { Err(NotText::Binary) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_distinguished_from_other_data() {
        let cases: [(&[u8], _); 4] = [
            // Colors and a stray NUL are common in logs.
            (b"\x1b[31merror\x1b[0m: something failed here\n\x00more of the same log text\n", Ok(())),
            (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", Err(NotText::Binary)),
            (b"\x1f\x8b\x08\x00", Err(NotText::Compressed("gzip"))),
            (b"\xff\xfeE\x00r\x00r\x00", Err(NotText::Utf16)),
        ];
        for (start, expected) in cases {
            assert_eq!(judge(start), expected, "{start:?}");
        }
    }
}
