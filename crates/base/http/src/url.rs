//! URLs: which ones may be contacted, which have the same origin, and what a relative reference leads to.
//!
//! A URL keeps the text that it was written with, as [`Uri`] does: a query may be signed, and a host may be trusted at
//! one port. The crate `url` cannot resolve the references, because it changes both: it encodes quotes, decodes dots, and
//! drops default ports.

use std::net::{Ipv4Addr, Ipv6Addr};

use ureq::http::Uri;

use crate::error::{HttpError, HttpErrorKind};

/// Whether a host, with or without a port, is this machine by its very name. Nothing is resolved.
pub fn is_loopback(host_and_port: &str) -> bool {
    let host = match host_and_port.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host_and_port.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether a host is an address that no router forwards, as those of clouds' metadata services are.
pub(crate) fn is_link_local(host: &str) -> bool {
    host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_link_local())
}

/// Whether two URLs have the same scheme, host and port.
pub fn is_same_origin(a: &Uri, b: &Uri) -> bool {
    fn origin(url: &Uri) -> (Option<&str>, Option<String>, u16) {
        let default_port = if url.scheme_str() == Some("https") { 443 } else { 80 };
        let host = url.host().map(str::to_ascii_lowercase);
        (url.scheme_str(), host, url.port_u16().unwrap_or(default_port))
    }
    origin(a) == origin(b)
}

/// Whether a URL holds a user name or password.
pub fn has_user(url: &Uri) -> bool {
    url.authority().is_some_and(|authority| authority.as_str().contains('@'))
}

/// Whether a URL may be contacted: https anywhere, plain http only on this machine; and this machine only if
/// `from_loopback`, that is, if the user named a server on this machine in the first place.
pub fn check(url: &Uri, from_loopback: bool) -> Result<(), HttpError> {
    let Some(host) = url.host().filter(|host| !host.is_empty()) else {
        return Err(HttpError::refused("refused a URL without a host"));
    };
    if has_user(url) {
        return Err(HttpError::refused("refused a URL with a user name in it"));
    }
    match url.scheme_str() {
        _ if is_loopback(host) && !from_loopback => {
            Err(HttpError::refused("refused a redirect to a loopback address"))
        }
        Some("https") => Ok(()),
        Some("http") if is_loopback(host) => Ok(()),
        Some("http") => {
            Err(HttpError::new(HttpErrorKind::PlainHttp, "refused plain http, which anybody can alter"))
        }
        _ => Err(HttpError::refused("refused a URL that is not http")),
    }
}

pub(crate) fn parse(url: &str) -> Result<Uri, HttpError> {
    url.parse().map_err(|_| HttpError::refused("invalid URL"))
}

/// Resolves a reference on a page or in a `Location` header, and drops its fragment (RFC 3986,
/// section 5.2).
pub fn join(base: &Uri, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default().trim();
    let scheme = base.scheme_str().unwrap_or("https");
    let authority = base.authority().map_or("", |authority| authority.as_str());
    if reference.split(['/', '?']).next().is_some_and(|first| first.contains(':')) {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (reference, String::new()),
    };
    let path = match path {
        "" => base.path().to_owned(),
        path if path.starts_with('/') => without_dot_segments(path),
        path => {
            let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            without_dot_segments(&format!("{directory}/{path}"))
        }
    };
    format!("{scheme}://{authority}{path}{query}")
}

fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let ends_in_dots = path.ends_with("/..") || path.ends_with("/.");
    format!("/{}{}", kept.join("/"), if ends_in_dots && !kept.is_empty() { "/" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_relative_to_where_it_came_from() {
        let from: Uri = "https://a.com:5000/v2/x/blobs/y?z".parse().unwrap();
        for (location, to) in [
            ("https://b.com/c?d=e", "https://b.com/c?d=e"),
            ("//b.com/c", "https://b.com/c"),
            ("/c:d", "https://a.com:5000/c:d"),
            ("c?u=http://x", "https://a.com:5000/v2/x/blobs/c?u=http://x"),
            ("../.././c", "https://a.com:5000/v2/c"),
            ("../../../../c/..", "https://a.com:5000/"),
            ("?d", "https://a.com:5000/v2/x/blobs/y?d"),
            ("", "https://a.com:5000/v2/x/blobs/y"),
        ] {
            assert_eq!(join(&from, location), to);
        }
        assert!(parse(&join(&from, "https://")).is_err());
    }

    #[test]
    fn what_a_reference_does_not_change_stays_as_it_is_written() {
        let from: Uri = "https://A.com:443/v2/x".parse().unwrap();
        for (location, to) in [
            ("https://B.com:443/c/./d?sig=it's", "https://B.com:443/c/./d?sig=it's"),
            ("y?sig=it's", "https://A.com:443/v2/y?sig=it's"),
            ("/%2e%2E/c|d", "https://A.com:443/%2e%2E/c|d"),
        ] {
            assert_eq!(join(&from, location), to);
        }
    }

    #[test]
    fn no_redirect_leads_from_the_network_to_this_machine_or_to_plain_http() {
        let may = |url: &str, from_loopback| check(&url.parse().unwrap(), from_loopback).is_ok();
        assert!(may("https://a.com/", false) && may("https://a.com/", true));
        assert!(may("http://127.0.0.1:5000/", true));
        for url in
            ["http://a.com/", "http://127.0.0.1/", "https://localhost/", "https://u:p@a.com/", "ftp://a.com/"]
        {
            assert!(!may(url, false), "{url}");
        }
        assert!(!may("http://a.com/", true));
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| is_same_origin(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(same("https://A.com/x", "https://a.com:443/y"));
        assert!(!same("https://a.com", "https://a.com:444"));
        assert!(!same("http://a.com", "https://a.com"));
        assert!(!same("https://a.com", "https://b.a.com"));
    }

    #[test]
    fn loopback_is_known_by_name() {
        for host in ["localhost", "LOCALHOST:5000", "127.0.0.1", "127.1.2.3:80", "[::1]:5000", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "10.0.0.1", "[::2]:1", "127.example.com", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
