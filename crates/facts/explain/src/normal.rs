//! Restores a line as the program wrote it, without what terminals and log collectors add.

use std::borrow::Cow;

use cudock_base::text::strip_ansi_bytes;
use memchr::{memchr, memchr2};

/// Removes terminal colors, and resolves the escapes of a JSON log (`\"`, `\n`, `\t`).
pub(crate) fn normal(line: &[u8]) -> Cow<'_, [u8]> {
    // Most lines have neither.
    if memchr2(0x1b, b'\\', line).is_none() {
        return Cow::Borrowed(line);
    }
    Cow::Owned(unescaped(&strip_ansi_bytes(line)))
}

fn unescaped(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((plain, escape)) = memchr(b'\\', rest).and_then(|at| rest.split_at_checked(at)) {
        out.extend_from_slice(plain);
        rest = match escape {
            [b'\\', escaped @ (b'"' | b'\'' | b'\\' | b'/'), after @ ..] => {
                out.push(*escaped);
                after
            }
            [b'\\', b'n' | b'r', after @ ..] => {
                out.push(b'\n');
                after
            }
            [b'\\', b't', after @ ..] => {
                out.push(b'\t');
                after
            }
            [other, after @ ..] => {
                out.push(*other);
                after
            }
            [] => break,
        };
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_removed_and_escapes_resolved() {
        let cases: [(&[u8], &[u8]); 4] = [
            (b"\x1b[1;31merror\x1b[0m here", b"error here"),
            (br#"exec: \"nvidia-smi\": not found\n"#, b"exec: \"nvidia-smi\": not found\n"),
            // Truncated escapes are accepted.
            (b"end\\", b"end\\"),
            (b"end\x1b[", b"end"),
        ];
        for (line, expected) in cases {
            assert_eq!(normal(line).as_ref(), expected, "{line:?}");
        }
    }

    #[test]
    fn a_plain_line_is_not_copied() {
        assert!(matches!(normal(b"plain"), Cow::Borrowed(_)));
    }
}
