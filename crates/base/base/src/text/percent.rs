//! Percent-encoding of URL parts.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC};

/// Everything but the characters that stand for themselves in any part of a URL (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Everything but the characters that stand for themselves in a path (RFC 3986, section 3.3).
const NOT_IN_PATH: &AsciiSet = &RESERVED
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Characters not allowed in a header value such as `grpc-message`: controls, non-ASCII and the
/// percent sign itself.
const NOT_PRINTABLE: &AsciiSet = &CONTROLS.add(b'%');

/// Characters not allowed anywhere in a URL.
const INVALID: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Encodes a text as one part of a URL: a path segment, a query key or a query value.
pub fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, RESERVED).to_string()
}

/// Encodes a path as a relative or absolute URI.
pub fn encode_path(path: &str) -> String {
    percent_encoding::utf8_percent_encode(path, NOT_IN_PATH).to_string()
}

/// Encodes a text as printable ASCII.
pub fn encode_printable(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, NOT_PRINTABLE).to_string()
}

/// Encodes what the author of a URL forgot to encode, and leaves everything else alone.
pub fn repair(url: &str) -> String {
    percent_encoding::utf8_percent_encode(url, INVALID).to_string()
}

/// Decodes a text; `None` if a percent sign is not followed by two hex digits, or the result is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut escapes = text.split('%').skip(1);
    let is_hex =
        |escape: &str| escape.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if !escapes.all(is_hex) {
        return None;
    }
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slashes_and_colons_are_encoded() {
        assert_eq!(encode("nvidia/cuda:12.4 é"), "nvidia%2Fcuda%3A12.4%20%C3%A9");
        assert_eq!(encode_path("a b/Docker#file?é%:@=~"), "a%20b/Docker%23file%3F%C3%A9%25:@=~");
        assert_eq!(encode_printable("50 % é\n"), "50 %25 %C3%A9%0A");
    }

    #[test]
    fn a_repaired_url_keeps_its_escapes() {
        assert_eq!(repair("/a b?$filter=x eq 'é'&y=%20#z"), "/a%20b?$filter=x%20eq%20'%C3%A9'&y=%20#z");
    }

    #[test]
    fn broken_escapes_are_refused() {
        for text in ["%", "%4", "a%zzb", "%é0", "%ff"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("a%2Fb").as_deref(), Some("a/b"));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in ".{0,40}") {
            prop_assert_eq!(decode(&encode(&text)), Some(text.clone()));
            prop_assert_eq!(decode(&encode_printable(&text)), Some(text));
        }
    }
}
