//! Restores a line as the program wrote it, without what terminals and log collectors add.

use std::borrow::Cow;

use memchr::memchr2;

/// Removes terminal colors, and resolves the escapes of a JSON log (`\"`, `\n`, `\t`).
pub(crate) fn normal(line: &[u8]) -> Cow<'_, [u8]> {
    if next_escape(line).is_none() {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((plain, escape)) = next_escape(rest).and_then(|at| rest.split_at_checked(at)) {
        out.extend_from_slice(plain);
        rest = match escape {
            [0x1b, b'[', after @ ..] => {
                // Parameters, then one final letter.
                let letter = after.iter().position(|byte| (0x40..0x7f).contains(byte));
                letter.and_then(|letter| after.get(letter + 1..)).unwrap_or_default()
            }
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
    Cow::Owned(out)
}

fn next_escape(line: &[u8]) -> Option<usize> {
    memchr2(0x1b, b'\\', line)
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
