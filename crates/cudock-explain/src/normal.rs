//! A line as the program wrote it, without what terminals and log collectors put around it.

use std::borrow::Cow;

use memchr::memchr2;

/// Takes out terminal colours, and resolves the escapes of a log kept as JSON (`\"`, `\n`, `\t`).
pub(crate) fn normal(line: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(0x1b, b'\\', line).is_none() {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            0x1b if rest.peek() == Some(&b'[') => {
                rest.next();
                // Parameters, then one final letter.
                for byte in rest.by_ref() {
                    if (0x40..0x7f).contains(&byte) {
                        break;
                    }
                }
            }
            b'\\' => match rest.peek().copied() {
                Some(escaped @ (b'"' | b'\'' | b'\\' | b'/')) => {
                    rest.next();
                    out.push(escaped);
                }
                Some(b'n' | b'r') => {
                    rest.next();
                    out.push(b'\n');
                }
                Some(b't') => {
                    rest.next();
                    out.push(b'\t');
                }
                _ => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go() {
        assert_eq!(normal(b"\x1b[1;31merror\x1b[0m here").as_ref(), b"error here");
    }

    #[test]
    fn json_escapes_are_resolved() {
        assert_eq!(
            normal(br#"exec: \"nvidia-smi\": not found\n"#).as_ref(),
            b"exec: \"nvidia-smi\": not found\n"
        );
    }

    #[test]
    fn a_plain_line_is_not_copied() {
        assert!(matches!(normal(b"plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_cut_off_escape_is_no_trouble() {
        assert_eq!(normal(b"end\\").as_ref(), b"end\\");
        assert_eq!(normal(b"end\x1b[").as_ref(), b"end");
    }
}
