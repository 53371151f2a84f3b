//! Any bytes as trace context: no panic, and what is accepted is written and read again alike. The first line is
//! `traceparent`, the rest is `tracestate`.
#![no_main]

use cudock_trace::{RequestTrace, Sampler, TraceContext};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut headers = bytes.splitn(2, |byte| *byte == b'\n');
    let (parent, state) = (headers.next().unwrap_or_default(), headers.next().unwrap_or_default());
    let context = TraceContext::parse(parent, Some(state));
    let trace = RequestTrace::begin(Some(parent), Some(state), Sampler::default());
    let sent = TraceContext::parse(trace.traceparent().as_bytes(), Some(trace.tracestate().as_bytes()))
        .expect("what we write we read");
    assert_eq!((sent.trace, sent.parent, sent.is_sampled), (trace.id(), trace.span(), trace.is_sampled()));
    if let Some(context) = context {
        assert_eq!((context.trace, &context.state), (sent.trace, &sent.state));
        assert_eq!((Some(context.parent), context.is_sampled), (trace.parent(), trace.is_sampled()));
    }
});
