//! Headers on their way through the gateway.

use std::net::IpAddr;

use cudock_trace::{RequestTrace, TRACEPARENT, TRACESTATE};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Fields that concern one connection (RFC 9110, 7.6.1), beyond those that the Connection field names.
const CONNECTION_FIELDS: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED_HOST: &str = "x-forwarded-host";
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Makes the span of a request the parent of what the upstream does. Requests of one batch have several, so it has none.
pub(crate) fn continue_trace(headers: &mut HeaderMap, trace: &RequestTrace) {
    for (name, value) in [(TRACEPARENT, trace.traceparent().as_str()), (TRACESTATE, trace.tracestate())] {
        headers.remove(name);
        if let Some(value) = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Removes the fields that concern one connection.
pub(crate) fn remove_connection_fields(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in &named {
        headers.remove(name);
    }
    for name in CONNECTION_FIELDS {
        headers.remove(name);
    }
}

/// The information about a client that the upstream receives.
#[derive(Clone, Copy)]
pub(crate) struct ClientInfo {
    pub(crate) address: Option<IpAddr>,
    /// Whether it uses TLS.
    pub(crate) is_secure: bool,
    /// Whether its credentials are those of the gateway, which are not forwarded.
    pub(crate) has_gateway_key: bool,
}

/// Turns the headers of a client's request into those of the request to an upstream, but for `Host` and the length.
pub(crate) fn forward(headers: &mut HeaderMap, authority: Option<&str>, client: ClientInfo) {
    remove_connection_fields(headers);
    let host = headers.remove(header::HOST);
    let host = host.or_else(|| HeaderValue::from_str(authority?).ok());
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::EXPECT);
    if client.has_gateway_key {
        headers.remove(header::AUTHORIZATION);
        headers.remove("x-api-key");
    }
    // HTTP/2 clients may send cookies one by one.
    join_values(headers, &header::COOKIE, "; ", None);
    let address = client.address.map(|address| address.to_string());
    join_values(headers, &HeaderName::from_static(FORWARDED_FOR), ", ", address.as_deref());
    if let Some(host) = host {
        headers.entry(FORWARDED_HOST).or_insert(host);
    }
    let scheme = HeaderValue::from_static(if client.is_secure { "https" } else { "http" });
    headers.entry(FORWARDED_PROTO).or_insert(scheme);
    headers.append(header::VIA, HeaderValue::from_static("1.1 cudock"));
}

/// Replaces the values of a field, and another one, by one value.
fn join_values(headers: &mut HeaderMap, name: &HeaderName, separator: &str, last: Option<&str>) {
    let mut joined = Vec::new();
    let values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    for value in values.chain(last.map(str::as_bytes)) {
        if !joined.is_empty() {
            joined.extend_from_slice(separator.as_bytes());
        }
        joined.extend_from_slice(value);
    }
    if let Ok(value) = HeaderValue::from_bytes(&joined)
        && !joined.is_empty()
    {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        fields.for_each(|(name, value)| _ = headers.append(name, value));
        headers
    }

    const CLIENT: ClientInfo = ClientInfo {
        address: Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7))),
        is_secure: false,
        has_gateway_key: false,
    };

    #[test]
    fn fields_of_the_connection_stay_with_it() {
        let mut request = headers(&[
            ("host", "shop.example"),
            ("connection", "keep-alive, X-Internal"),
            ("x-internal", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("accept", "text/event-stream"),
        ]);
        forward(&mut request, None, CLIENT);
        let expected = headers(&[
            ("accept", "text/event-stream"),
            ("x-forwarded-for", "10.0.0.7"),
            ("x-forwarded-host", "shop.example"),
            ("x-forwarded-proto", "http"),
            ("via", "1.1 cudock"),
        ]);
        assert_eq!(request, expected);
    }

    #[test]
    fn the_chain_of_proxies_is_continued() {
        let mut request = headers(&[
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-for", "5.6.7.8"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "first.example"),
            ("via", "2 edge"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
        ]);
        forward(&mut request, Some("second.example"), CLIENT);
        assert_eq!(request["x-forwarded-for"], "1.2.3.4, 5.6.7.8, 10.0.0.7");
        assert_eq!(
            (&request["x-forwarded-proto"], &request["x-forwarded-host"]),
            (&"https".parse().unwrap(), &"first.example".parse().unwrap())
        );
        assert_eq!(request["cookie"], "a=1; b=2");
        assert_eq!(request.get_all("via").iter().collect::<Vec<_>>(), ["2 edge", "1.1 cudock"]);
    }

    #[test]
    fn keys_of_the_gateway_are_not_forwarded() {
        let lines = [("authorization", "Bearer k"), ("x-api-key", "k")];
        for (has_gateway_key, kept) in [(true, 0), (false, 2)] {
            let mut request = headers(&lines);
            forward(&mut request, None, ClientInfo { has_gateway_key, ..CLIENT });
            assert_eq!(lines.iter().filter(|(name, _)| request.contains_key(*name)).count(), kept);
        }
    }
}
