//! The trace context of the W3C, <https://www.w3.org/TR/trace-context/>: two headers that name the trace of a request.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// The header with the ids.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what vendors add, which is passed on as it is.
pub const TRACESTATE: &str = "tracestate";

/// Length of a `traceparent` of version 00.
const LENGTH: usize = 55;
/// Longest `tracestate` that is passed on, in bytes, and most members of it.
const MAX_STATE: usize = 512;
const MAX_MEMBERS: usize = 32;
const SAMPLED: u8 = 1;

/// The id of a trace; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub(crate) [u8; 16]);

/// The id of a span; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub(crate) [u8; 8]);

/// The trace to which a request belongs, and the span that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: TraceId,
    pub parent: SpanId,
    /// Whether the caller records the trace.
    pub is_sampled: bool,
    /// State added by vendors; empty if there is none.
    pub state: String,
}

impl TraceContext {
    /// Parses the headers. An invalid `traceparent` is `None`: a new trace begins. An invalid `tracestate` is ignored.
    pub fn parse(traceparent: &[u8], tracestate: Option<&[u8]>) -> Option<Self> {
        let (ids, rest) = traceparent.split_at_checked(LENGTH)?;
        let [version, trace, parent, flags] = fields(ids)?;
        let [version] = hex(version)?;
        // Later versions may append fields.
        let is_known = version == 0 && rest.is_empty() || (1..255).contains(&version);
        if !is_known || rest.first().is_some_and(|byte| *byte != b'-') {
            return None;
        }
        let [flags] = hex(flags)?;
        Some(Self {
            trace: TraceId(hex(trace).filter(|id| *id != [0; 16])?),
            parent: SpanId(hex(parent).filter(|id| *id != [0; 8])?),
            is_sampled: flags & SAMPLED != 0,
            state: tracestate.and_then(valid_state).unwrap_or_default().to_owned(),
        })
    }
}

/// The `traceparent` of a request that a span causes.
pub(crate) fn format_parent(trace: TraceId, span: SpanId, is_sampled: bool) -> String {
    format!("00-{trace}-{span}-{:02x}", u8::from(is_sampled))
}

/// The four fields of a `traceparent`, whose lengths are fixed.
fn fields(ids: &[u8]) -> Option<[&[u8]; 4]> {
    let mut parts = ids.split(|byte| *byte == b'-');
    let parts = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    (parts.map(<[u8]>::len) == [2, 32, 16, 2]).then_some(parts)
}

/// Bytes of lowercase hexadecimal digits.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(bytes)
}

/// A `tracestate` that may be passed on: members `key=value`, separated by commas.
fn valid_state(state: &[u8]) -> Option<&str> {
    let state = std::str::from_utf8(state).ok()?.trim();
    if state.is_empty() || state.len() > MAX_STATE {
        return None;
    }
    let is_key = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
    };
    let is_value = |byte: u8| matches!(byte, 0x20..0x7f) && byte != b'=';
    let is_member = |member: &str| match member.split_once('=') {
        Some((key, value)) => {
            !key.is_empty() && !value.is_empty() && key.bytes().all(is_key) && value.bytes().all(is_value)
        }
        None => false,
    };
    let members = state.split(',').map(str::trim).filter(|member| !member.is_empty());
    (members.clone().all(is_member) && members.count() <= MAX_MEMBERS).then_some(state)
}

impl TraceId {
    /// A random id.
    pub(crate) fn random() -> Self {
        let (high, low) = (random(), random());
        Self(((u128::from(high) << 64) | u128::from(low)).to_be_bytes())
    }
}

impl SpanId {
    /// A random id.
    pub(crate) fn random() -> Self {
        Self(random().to_be_bytes())
    }
}

/// A random number that is not zero. Ids must differ, not be secret: the standard library's random keys are enough.
fn random() -> u64 {
    RandomState::new().hash_one(0_u8).max(1)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn parse(traceparent: &str) -> Option<TraceContext> {
        TraceContext::parse(traceparent.as_bytes(), None)
    }

    #[test]
    fn valid_headers_name_the_trace() {
        for (text, is_sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            // Unknown flags are ignored, and so are fields of later versions.
            (format!("00-{TRACE}-{SPAN}-ff"), true),
            (format!("cc-{TRACE}-{SPAN}-01"), true),
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like"), true),
        ] {
            let context = parse(&text).unwrap();
            assert_eq!((context.trace.to_string(), context.parent.to_string()), (TRACE.into(), SPAN.into()));
            assert_eq!(context.is_sampled, is_sampled, "{text}");
        }
    }

    #[test]
    fn invalid_headers_begin_a_new_trace() {
        for text in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01 "),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("cc-{TRACE}-{SPAN}-01.more"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}{SPAN}--01"),
            format!("0g-{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(parse(&text), None, "{text}");
        }
    }

    #[test]
    fn a_valid_state_is_passed_on_and_an_invalid_one_is_not() {
        let traceparent = format!("00-{TRACE}-{SPAN}-01");
        let many = (0..40).map(|number| format!("k{number}=v")).collect::<Vec<_>>().join(",");
        for (state, expected) in [
            ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            ("a@b=c, ,d=e", "a@b=c, ,d=e"),
            ("", ""),
            ("a", ""),
            ("A=b", ""),
            ("a=b=c", ""),
            ("a=\u{e9}", ""),
            (many.as_str(), ""),
        ] {
            let context = TraceContext::parse(traceparent.as_bytes(), Some(state.as_bytes())).unwrap();
            assert_eq!(context.state, expected, "{state}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(sampled: bool) {
            let (trace, span) = (TraceId::random(), SpanId::random());
            let context = parse(&format_parent(trace, span, sampled)).unwrap();
            prop_assert_eq!((context.trace, context.parent, context.is_sampled), (trace, span, sampled));
        }

        #[test]
        fn any_bytes_are_read_or_not(parent: Vec<u8>, state: Vec<u8>) {
            if let Some(context) = TraceContext::parse(&parent, Some(&state)) {
                prop_assert!(context.state.len() <= MAX_STATE);
            }
        }
    }
}
