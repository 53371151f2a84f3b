//! The trace of one request.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use cudock_base::lock;

use crate::context::{SpanId, TraceContext, TraceId, format_parent};
use crate::sampler::Sampler;

/// Maximum number of stages of a request; further ones are not recorded.
const MAX_STAGES: usize = 32;

/// The trace of one request: where it belongs, and what was done when.
#[derive(Debug)]
pub struct RequestTrace {
    trace: TraceId,
    span: SpanId,
    parent: Option<SpanId>,
    state: String,
    is_sampled: bool,
    /// When the request arrived, on both clocks.
    pub(crate) began: Instant,
    pub(crate) began_at: SystemTime,
    pub(crate) stages: Mutex<Vec<TraceStage>>,
}

/// A part of the work on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceStage {
    pub(crate) name: &'static str,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

impl RequestTrace {
    /// Begins the trace of a request with these headers, or a new one if they name none.
    pub fn begin(traceparent: Option<&[u8]>, tracestate: Option<&[u8]>, sampler: Sampler) -> Self {
        let context = traceparent.and_then(|parent| TraceContext::parse(parent, tracestate));
        let trace = context.as_ref().map_or_else(TraceId::random, |context| context.trace);
        Self {
            trace,
            span: SpanId::random(),
            is_sampled: sampler.samples(trace, context.as_ref()),
            parent: context.as_ref().map(|context| context.parent),
            state: context.map(|context| context.state).unwrap_or_default(),
            began: Instant::now(),
            began_at: SystemTime::now(),
            stages: Mutex::default(),
        }
    }

    pub fn id(&self) -> TraceId {
        self.trace
    }

    /// The span of the request itself.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// The span that caused the request, if its client named one.
    pub fn parent(&self) -> Option<SpanId> {
        self.parent
    }

    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// The `traceparent` of a request that is made for this one.
    pub fn traceparent(&self) -> String {
        format_parent(self.trace, self.span, self.is_sampled)
    }

    /// The `tracestate` of a request that is made for this one; empty if there is none.
    pub fn tracestate(&self) -> &str {
        &self.state
    }

    /// Notes that the work on the request had a stage of that name.
    pub fn stage(&self, name: &'static str, from: Instant, to: Instant) {
        let mut stages = lock(&self.stages);
        if stages.len() < MAX_STAGES {
            stages.push(TraceStage { name, from, to });
        }
    }

    /// The time of the stages of that name, if there were any.
    pub fn stage_time(&self, name: &str) -> Option<Duration> {
        let stages = lock(&self.stages);
        let named = stages.iter().filter(|stage| stage.name == name);
        named.map(|stage| stage.to.saturating_duration_since(stage.from)).reduce(|sum, time| sum + time)
    }
}
