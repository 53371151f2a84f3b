//! The headers of batches: which requests may share one, which headers the upstream receives, and
//! which of its response each client receives.
//!
//! Lists of harmless headers decide all of it. A header in no list makes requests differ, and is
//! not sent to several clients: an unknown field costs a batch, and never sends a response to the
//! wrong client.

use std::hash::BuildHasher;

use hyper::header::{self, HeaderMap, HeaderName};

/// Fields by which no model server chooses its answer: they name a request or a trace, or the way that a request took.
pub(crate) const HARMLESS: [&str; 30] = [
    "b3",
    "cf-ray",
    "elastic-apm-traceparent",
    "fly-request-id",
    "grpc-trace-bin",
    "request-id",
    "sentry-trace",
    "traceparent",
    "tracestate",
    "uber-trace-id",
    "user-agent",
    "via",
    "x-amz-cf-id",
    "x-amzn-trace-id",
    "x-arr-log-id",
    "x-azure-ref",
    "x-b3-parentspanid",
    "x-b3-sampled",
    "x-b3-spanid",
    "x-b3-traceid",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-datadog-parent-id",
    "x-datadog-sampling-priority",
    "x-datadog-trace-id",
    "x-forwarded-for",
    "x-ot-span-context",
    "x-request-id",
    "x-request-start",
    "x-timeout-ms",
];

/// Fields that describe or sign the body of a request. A batch has another body, so such a request is never part of one.
const BODY_FIELDS: [&str; 10] = [
    "content-digest",
    "content-md5",
    "content-range",
    "digest",
    "repr-digest",
    "signature",
    "signature-input",
    "x-amz-content-sha256",
    "x-hub-signature",
    "x-hub-signature-256",
];

/// Fields of an answer that are as true of each part as of the whole.
const SHARED_FIELDS: [&str; 32] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "allow",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-security-policy",
    "content-security-policy-report-only",
    "content-type",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "date",
    "deprecation",
    "expires",
    "permissions-policy",
    "pragma",
    "referrer-policy",
    "retry-after",
    "retry-after-ms",
    "server",
    "strict-transport-security",
    "sunset",
    "timing-allow-origin",
    "vary",
    "x-content-type-options",
    "x-frame-options",
    "x-powered-by",
];

/// Whether a header describes the body of its request.
pub(crate) fn describes_body(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| BODY_FIELDS.binary_search(&name.as_str()).is_ok())
}

/// The headers that requests of one batch need not have in common, in addition to the harmless ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct IgnoredHeaders(pub(crate) Vec<HeaderName>);

impl IgnoredHeaders {
    fn contains(&self, name: &HeaderName) -> bool {
        // Batches are sent without it, because their answers are read.
        name == header::ACCEPT_ENCODING
            || HARMLESS.binary_search(&name.as_str()).is_ok()
            || self.0.contains(name)
    }

    /// A digest of the headers that must be equal. Their order does not matter, but that of several values of one field
    /// does: some servers read the first and some the last.
    pub(crate) fn digest(&self, headers: &HeaderMap, hasher: &impl BuildHasher) -> u64 {
        let (mut sum, mut before, mut position) = (0_u64, None, 0_usize);
        for (name, value) in headers {
            position = if before == Some(name) { position + 1 } else { 0 };
            before = Some(name);
            if !self.contains(name) {
                sum = sum.wrapping_add(hasher.hash_one((name, position, value.as_bytes())));
            }
        }
        sum
    }

    /// The headers of a batch: those of its first request, without the ignored ones in which another request differs.
    pub(crate) fn common<'a>(
        &self,
        first: &HeaderMap,
        others: &(impl Iterator<Item = &'a HeaderMap> + Clone),
    ) -> HeaderMap {
        let mut common = first.clone();
        common.remove(header::ACCEPT_ENCODING);
        if others.clone().next().is_none() {
            return common;
        }
        for name in first.keys().filter(|name| self.contains(name)) {
            let is_equal = |other: &HeaderMap| other.get_all(name).iter().eq(first.get_all(name).iter());
            if !others.clone().all(is_equal) {
                common.remove(name);
            }
        }
        common
    }
}

/// The headers of a response to several requests that each of them gets, in addition to those that
/// are always true of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedHeaders(pub(crate) Vec<HeaderName>);

impl SharedHeaders {
    /// The headers that each client of a batch gets.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderMap {
        let is_shared =
            |name: &HeaderName| SHARED_FIELDS.binary_search(&name.as_str()).is_ok() || self.0.contains(name);
        let fields = headers.iter().filter(|(name, _)| is_shared(name));
        let mut shared = HeaderMap::new();
        fields.for_each(|(name, value)| _ = shared.append(name.clone(), value.clone()));
        shared
    }
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use hyper::header::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn ignored() -> IgnoredHeaders {
        IgnoredHeaders(vec![HeaderName::from_static("x-session")])
    }

    const OWN: [(&str, &str); 2] = [("content-type", "application/json"), ("authorization", "Bearer a")];

    #[test]
    fn requests_share_a_batch_only_with_equal_headers() {
        let (ignored, hasher) = (ignored(), RandomState::new());
        let digest = |lines: &[(&'static str, &'static str)]| ignored.digest(&headers(lines), &hasher);
        let [kind, key] = OWN;
        for (lines, is_equal) in [
            (&[key, kind][..], true),
            (&[kind, key, ("x-request-id", "7")], true),
            (&[kind, key, ("x-b3-traceid", "7")], true),
            (&[kind, key, ("x-session", "7")], true),
            (&[kind, key, ("accept-encoding", "gzip")], true),
            (&[kind, ("authorization", "Bearer b")], false),
            (&[kind], false),
            (&[kind, key, ("x-tenant", "7")], false),
            (&[kind, key, ("x-forwarded-user", "ann")], false),
            (&[kind, key, ("x-ms-client-principal", "ann")], false),
            (&[kind, key, ("accept", "text/csv")], false),
            (&[kind, key, key], false),
        ] {
            assert_eq!(digest(lines) == digest(&OWN), is_equal, "{lines:?}");
        }
    }

    #[test]
    fn the_order_of_the_values_of_one_field_is_part_of_it() {
        let hasher = RandomState::new();
        let digest = |lines: &[(&'static str, &'static str)]| ignored().digest(&headers(lines), &hasher);
        let (ann, bob, kind) = (("x-user", "ann"), ("x-user", "bob"), ("accept", "*/*"));
        assert_eq!(digest(&[ann, kind, bob]), digest(&[kind, ann, bob]));
        assert_ne!(digest(&[ann, bob]), digest(&[bob, ann]));
        assert_ne!(digest(&[ann, ann]), digest(&[bob, bob]));
    }

    #[test]
    fn ignored_headers_are_sent_if_all_requests_of_a_batch_agree() {
        let request = |own: &[(&'static str, &'static str)]| headers(&[&OWN[..], own].concat());
        let all = [
            request(&[("x-session", "1"), ("via", "a"), ("via", "b"), ("user-agent", "curl")]),
            request(&[("x-session", "1"), ("via", "a"), ("via", "b"), ("user-agent", "browser")]),
            request(&[("x-session", "1"), ("via", "a"), ("user-agent", "curl"), ("cf-ray", "7")]),
        ];
        let [first, rest @ ..] = &all;
        let common = |others: &[HeaderMap]| ignored().common(first, &others.iter());
        assert_eq!(common(rest), request(&[("x-session", "1")]));
        assert_eq!(common(&rest[..1]), request(&[("x-session", "1"), ("via", "a"), ("via", "b")]));
        assert_eq!(common(&[]), *first);
        let encoded = headers(&[("accept-encoding", "gzip"), ("via", "a")]);
        assert_eq!(ignored().common(&encoded, &[].iter()), headers(&[("via", "a")]));
    }

    #[test]
    fn only_what_is_known_to_be_true_of_every_part_is_given_to_each_client() {
        let shared = SharedHeaders(vec![HeaderName::from_static("x-model")]);
        let kept = [
            ("content-type", "application/json"),
            ("access-control-allow-origin", "https://app.example"),
            ("vary", "origin"),
            ("vary", "accept"),
            ("x-model", "7"),
        ];
        let dropped = [
            ("set-cookie", "session=1"),
            ("etag", "\"1\""),
            ("content-digest", "sha-256=:AA==:"),
            ("content-md5", "AA=="),
            ("content-range", "rows 0-7/8"),
            ("x-user", "ann"),
            ("x-request-id", "1"),
            ("location", "/results/1"),
        ];
        assert_eq!(shared.of(&headers(&[&dropped[..], &kept[..]].concat())), headers(&kept));
    }

    #[test]
    fn the_documentation_names_exactly_the_harmless_headers() {
        let docs = include_str!("../../../../../docs/gateway.md");
        let section = docs.split("### Headers of batches").nth(1).unwrap();
        let bullets = section.split("A batch is sent with").next().unwrap();
        let mut named: Vec<&str> = bullets.split('`').skip(1).step_by(2).collect();
        named.sort_unstable();
        assert_eq!(named, HARMLESS);
        assert!(BODY_FIELDS.iter().all(|name| section.contains(&format!("`{name}`"))));
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(HARMLESS.is_sorted() && BODY_FIELDS.is_sorted() && SHARED_FIELDS.is_sorted());
    }
}
