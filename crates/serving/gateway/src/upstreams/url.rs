//! The address of an upstream.

use std::fmt;
use std::str::FromStr;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::PathAndQuery;

/// The address of an upstream, as `http://localhost:5000` or `https://models.example/team`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamUrl {
    pub(crate) is_secure: bool,
    /// Name or address, without the brackets of IPv6.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of the Host header.
    pub(crate) authority: HeaderValue,
    /// Path before that of each request, without a slash at its end; empty if it has none.
    prefix: String,
    pub(crate) prefix_path: PathAndQuery,
}

/// A text that is not the address of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid upstream `{text}`: {reason}")]
pub struct UrlError {
    text: String,
    reason: &'static str,
}

impl UpstreamUrl {
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl FromStr for UpstreamUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let error = |reason| UrlError { text: text.to_owned(), reason };
        let trimmed = text.trim();
        let with_scheme =
            if trimmed.contains("://") { trimmed.to_owned() } else { format!("http://{trimmed}") };
        let uri: Uri = with_scheme.parse().map_err(|_| error("not a URL"))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(error("the scheme must be http or https")),
        };
        let authority = uri.authority().ok_or_else(|| error("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(error("credentials are not supported"));
        }
        if uri.query().is_some() {
            return Err(error("it must not have a query"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(error("it has no host"));
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() != authority.host() => {
                return Err(error("the port is not a number up to 65535"));
            }
            None if is_secure => 443,
            None => 80,
        };
        let value = HeaderValue::from_str(authority.as_str()).map_err(|_| error("not a URL"))?;
        let prefix = uri.path().trim_end_matches('/').to_owned();
        let prefix_path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        Ok(Self { is_secure, host, port, authority: value, prefix, prefix_path })
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority.to_str().unwrap_or("?"), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_people_write_them() {
        for (text, shown, host, port) in [
            ("localhost:5000", "http://localhost:5000", "localhost", 5000),
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000", "127.0.0.1", 8000),
            ("https://models.example/team/", "https://models.example/team", "models.example", 443),
            ("http://[::1]:80", "http://[::1]:80", "::1", 80),
            ("http://model", "http://model", "model", 80),
        ] {
            let url: UpstreamUrl = text.parse().unwrap();
            assert_eq!(
                (url.to_string().as_str(), url.host.as_str(), url.port),
                (shown, host, port),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_an_upstream_is_rejected_with_the_reason() {
        for (text, reason) in [
            ("", "not a URL"),
            ("http://", "not a URL"),
            ("ftp://host", "the scheme must be http or https"),
            ("http://user:secret@host", "credentials are not supported"),
            ("http://host/?a=1", "it must not have a query"),
            ("http://host:70000", "the port is not a number up to 65535"),
            ("http://[::1]:80O0/", "the port is not a number up to 65535"),
        ] {
            let error = text.parse::<UpstreamUrl>().unwrap_err().to_string();
            assert_eq!(error, format!("invalid upstream `{text}`: {reason}"));
        }
    }
}
