//! The metrics as text for Prometheus.
#![allow(clippy::cast_precision_loss, reason = "Prometheus counts in floating point")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cudock_base::lock;
use cudock_server::Exposition;

use super::counters::{BATCH_ROWS, STATUS_CLASSES};
use crate::state::GatewayState;
use crate::upstreams::upstream::Upstream;

type UpstreamValue = fn(&Upstream) -> f64;

/// Name, kind, description and value of what is known about each upstream.
const UPSTREAM: [(&str, &str, &str, UpstreamValue); 7] = [
    ("up", "gauge", "Whether the upstream can be reached.", |upstream| {
        f64::from(upstream.availability().is_reachable())
    }),
    ("ejected", "gauge", "Whether the upstream gets no requests because too many failed.", |upstream| {
        f64::from(upstream.availability().is_ejected(Instant::now()))
    }),
    ("outstanding", "gauge", "Requests given to the upstream and not finished.", |upstream| {
        upstream.outstanding() as f64
    }),
    ("queue_rows", "gauge", "Rows that wait for a batch.", |upstream| upstream.queue.queued_rows() as f64),
    ("failures_total", "counter", "Requests that the upstream failed.", |upstream| {
        value(&upstream.metrics.failures)
    }),
    ("ejections_total", "counter", "Times the upstream was ejected.", |upstream| {
        value(&upstream.metrics.ejections)
    }),
    ("rows_total", "counter", "Rows answered in batches.", |upstream| value(&upstream.metrics.rows)),
];

/// All metrics as text.
pub(crate) fn exposition(state: &GatewayState) -> String {
    let mut page = Exposition::default();
    let metrics = &state.metrics;
    let kinds = [("batched", &metrics.batched), ("forwarded", &metrics.forwarded)];
    page.family("cudock_gateway_requests_total", "counter", "Responses by the class of their status.");
    for (kind, requests) in kinds {
        for (class, count) in STATUS_CLASSES.iter().zip(&requests.statuses).skip(1) {
            let labels = [("kind", kind), ("status", class)];
            page.sample("cudock_gateway_requests_total", &labels, value(count));
        }
    }
    page.family("cudock_gateway_request_seconds", "histogram", "Time to the head of the response.");
    for (kind, requests) in kinds {
        page.histogram("cudock_gateway_request_seconds", &[("kind", kind)], &lock(&requests.seconds));
    }
    let resources = &state.resources;
    for (name, kind, help, value) in [
        ("held_requests", "gauge", "Requests that wait for an upstream.", state.upstreams.held() as f64),
        ("held_bytes", "gauge", "Bytes of requests and answers in memory.", resources.budget.held() as f64),
        ("split_batches_total", "counter", "Batches tried in halves.", value(&metrics.splits)),
        (
            "single_requests_total",
            "counter",
            "Requests sent one by one because answers cannot be split.",
            value(&metrics.alone),
        ),
        ("wakes_total", "counter", "Runs of the wake command.", value(&metrics.wakes)),
    ] {
        let name = format!("cudock_gateway_{name}");
        page.family(&name, kind, help);
        page.sample(&name, &[], value);
    }
    for (name, kind, help, value) in UPSTREAM {
        let name = format!("cudock_gateway_upstream_{name}");
        page.family(&name, kind, help);
        for upstream in &state.upstreams.all {
            page.sample(&name, &[("upstream", &upstream.name)], value(upstream));
        }
    }
    let name = "cudock_gateway_upstream_seconds";
    page.family(name, "histogram", "Time of an upstream for a batch.");
    for upstream in &state.upstreams.all {
        page.histogram(name, &[("upstream", &upstream.name)], &lock(&upstream.metrics.seconds));
    }
    page.family("cudock_gateway_batch_rows", "histogram", "Rows of batches.");
    for upstream in &state.upstreams.all {
        batch_rows(&mut page, upstream);
    }
    page.into_text()
}

fn batch_rows(page: &mut Exposition, upstream: &Upstream) {
    let own = ("upstream", upstream.name.as_str());
    let mut batches = 0.0;
    let bounds = BATCH_ROWS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, size) in bounds.zip(&upstream.metrics.sizes) {
        batches += value(size);
        page.sample("cudock_gateway_batch_rows_bucket", &[own, ("le", &bound)], batches);
    }
    page.sample("cudock_gateway_batch_rows_sum", &[own], value(&upstream.metrics.rows));
    page.sample("cudock_gateway_batch_rows_count", &[own], batches);
}

fn value(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}
