//! Prebuilt requests.

use std::fmt::Write as _;

use crate::ServerUrl;
use crate::results::verify::Expected;

/// A request as sent over the wire, and what is known about it.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    pub(crate) bytes: Vec<u8>,
    pub body_length: usize,
    pub(crate) path: String,
    pub(crate) rows: usize,
    /// The expected response, if known.
    pub(crate) expected: Option<Expected>,
}

impl LoadRequest {
    /// Creates a POST request with `rows` rows.
    pub fn post(
        target: &ServerUrl,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
        rows: usize,
    ) -> Self {
        let mut bytes = head("POST", target, path, headers, Some(body.len())).into_bytes();
        bytes.extend_from_slice(body);
        Self { bytes, body_length: body.len(), path: path.to_owned(), rows, expected: None }
    }

    pub fn get(target: &ServerUrl, path: &str, headers: &[(String, String)]) -> Self {
        let bytes = head("GET", target, path, headers, None).into_bytes();
        Self { bytes, body_length: 0, path: path.to_owned(), rows: 0, expected: None }
    }
}

fn head(
    method: &str,
    target: &ServerUrl,
    path: &str,
    headers: &[(String, String)],
    length: Option<usize>,
) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let mut line = |name: &str, value: &str| {
        let _ = write!(head, "{name}: {value}\r\n");
    };
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        line("Host", &target.authority());
    }
    for (name, value) in headers {
        line(name, value);
    }
    if let Some(length) = length {
        line("Content-Length", &length.to_string());
    }
    head.push_str("\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_in_full_and_a_custom_host_header_replaces_the_default() {
        let target = "http://localhost:8000".parse().unwrap();
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let post = LoadRequest::post(&target, "/predict", &headers, b"{}", 1);
        let headers = [("host".to_owned(), "models.example".to_owned())];
        let get = LoadRequest::get(&target, "/v2", &headers);
        let expected = "POST /predict HTTP/1.1\r\nHost: localhost:8000\r\nContent-Type: application/json\r\n\
             Content-Length: 2\r\n\r\n{}";
        assert_eq!(std::str::from_utf8(&post.bytes).unwrap(), expected);
        let expected = "GET /v2 HTTP/1.1\r\nhost: models.example\r\n\r\n";
        assert_eq!(std::str::from_utf8(&get.bytes).unwrap(), expected);
    }
}
