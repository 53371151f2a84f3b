//! The requests that a collector of OpenTelemetry receives.

use prost::Message;

use crate::http::Request;

/// The fields of OTLP that tests look at.
#[derive(Clone, PartialEq, Message)]
struct Traces {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<Scopes>,
}

#[derive(Clone, PartialEq, Message)]
struct Scopes {
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<Spans>,
}

#[derive(Clone, PartialEq, Message)]
struct Spans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SentSpan>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SentSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub parent: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(fixed64, tag = "7")]
    pub start: u64,
    #[prost(fixed64, tag = "8")]
    pub end: u64,
}

/// The spans of a trace, given in hexadecimal, in the order in which they were sent.
pub fn spans(requests: &[Request], trace: &str) -> Vec<SentSpan> {
    let bodies = requests.iter().filter(|request| request.path == "/v1/traces");
    let traces = bodies.flat_map(|request| Traces::decode(&request.body[..]).unwrap().resources);
    let spans = traces.flat_map(|resource| resource.scopes).flat_map(|scope| scope.spans);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    spans.filter(|span| hex(&span.trace) == trace).collect()
}
