//! Checks of every request, independent of its handler.

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Request, Version};

use crate::connection::monitor::ConnectionActivity;
use crate::handler::Handler;
use crate::request::host::{HostPort, default_port};
use crate::request::origin::{Listener, PageHeaders, Sender, foreign_page};
use crate::request::rejection::HttpRejection;

/// Rejects a request that others may understand differently, that was sent under a name that this server does not have, or
/// whose page may not do what it does.
pub(crate) fn check<H: Handler>(
    request: &Request<Incoming>,
    activity: &ConnectionActivity,
    listener: Listener<'_>,
    handler: &H,
) -> Result<(), HttpRejection> {
    check_body_length(request.headers(), activity)?;
    let host = requested_host(request)?;
    listener.check_host(host)?;
    let page = PageHeaders::new(host, request.headers());
    let sender = page.sender(listener);
    if sender == Sender::Own || sender.may(handler.effect(request), listener.reach) {
        return Ok(());
    }
    Err(foreign_page(&page))
}

/// The length of a body must be stated once, and in a form that everybody understands: those who disagree about where a
/// request ends take a part of it for the next one (RFC 9112, 11.2).
fn check_body_length(headers: &HeaderMap, activity: &ConnectionActivity) -> Result<(), HttpRejection> {
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(encoding) = encodings.next() else { return Ok(()) };
    if activity.has_two_lengths() {
        return Err(HttpRejection::BadRequest(
            "the request has both Content-Length and Transfer-Encoding".to_owned(),
        ));
    }
    if encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Err(HttpRejection::BadRequest(
            "unsupported transfer-encoding; supported: a single `chunked`".to_owned(),
        ));
    }
    Ok(())
}

/// The host that a request names. It must do so once, because proxies disagree about which of several counts (RFC 9112,
/// 3.2); HTTP/1.0 and HTTP/2 clients need not.
fn requested_host(request: &Request<Incoming>) -> Result<Option<&str>, HttpRejection> {
    let bad = |problem: &str| HttpRejection::BadRequest(format!("the request has {problem}"));
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, authority) = (hosts.next(), request.uri().authority().map(Authority::as_str));
    if hosts.next().is_some() {
        return Err(bad("more than one Host header"));
    }
    let Some(host) = host else {
        let is_needed = request.version() == Version::HTTP_11;
        return if is_needed { Err(bad("no Host header")) } else { Ok(authority) };
    };
    let host = host.to_str().map_err(|_| bad("an invalid Host header"))?;
    let Some(authority) = authority else { return Ok(Some(host)) };
    let port = request.uri().scheme_str().and_then(default_port);
    let is_same = match (HostPort::parse(host), HostPort::parse(authority)) {
        (Some(host), Some(authority)) => host.is_same(&authority, port),
        _ => false,
    };
    if is_same { Ok(Some(host)) } else { Err(bad("a Host header that differs from its URL")) }
}

/// Whether a connection must not be used again after a rejection: what follows may not be a request.
pub(crate) fn closes_connection(rejection: &HttpRejection) -> bool {
    matches!(rejection, HttpRejection::BadRequest(_))
}

/// Makes HTTP/1 close the connection after the response.
pub(crate) fn close_connection(headers: &mut HeaderMap, version: Version) {
    if version <= Version::HTTP_11 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}
