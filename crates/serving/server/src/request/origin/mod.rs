//! Which requests come from web pages of other origins, and what those may do.
//!
//! A browser sends the requests of any page to any server that its machine can reach, so a server
//! on the loopback address is not private. Three headers identify such requests, because a page
//! cannot choose them: `Origin` is where the page is from, `Sec-Fetch-Site` is how that relates to
//! the server, and `Host` is the name by which the browser knows the server. The last one reveals
//! DNS rebinding, by which a page gives the server's address to a name of its own and thereby
//! becomes a page of the same origin.
//!
//! Browsers send `Origin` with every request that is not GET or HEAD, and `Sec-Fetch-Site` with all requests over HTTPS or to
//! their own machine. Other clients send neither, and may do everything.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::request::host::{HostPort, default_port};
use crate::request::rejection::HttpRejection;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The effect of a request besides its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect on others.
    None,
    /// It may start what it needs, such as a model that is loaded on demand.
    Starts,
    /// It changes what is served.
    Changes,
}

/// The clients that can connect to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Programs of this machine, and clients whose connections they forward.
    Loopback,
    Network,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener<'a> {
    pub(crate) reach: Reach,
    pub(crate) has_tls: bool,
    /// Names of the server, whose pages are trusted.
    pub(crate) allowed: &'a [String],
}

/// The headers by which a browser describes the page that sent a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageHeaders<'a> {
    /// Where the request was sent to, if it says so.
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) site: Option<&'a str>,
}

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A page of this server, or no page.
    Own,
    /// A page of this server according to its browser, but `Host` is another: a proxy may have changed it.
    Unconfirmed,
    /// A page of another origin.
    Foreign,
}

/// The scheme and host of a page.
struct PageOrigin<'a> {
    scheme: &'a str,
    host: HostPort<'a>,
}

impl<'a> PageHeaders<'a> {
    pub(crate) fn new(host: Option<&'a str>, headers: &'a HeaderMap) -> Self {
        Self { host, origin: only(headers, &header::ORIGIN), site: only(headers, &SEC_FETCH_SITE) }
    }

    /// The sender of the request, whose host was checked by [`Listener::check_host`].
    pub(crate) fn sender(&self, listener: Listener<'_>) -> Sender {
        if self.origin.is_none() && self.site.is_none() {
            return Sender::Own;
        }
        let origin = self.origin.map(PageOrigin::parse);
        if origin.iter().flatten().any(|origin| listener.allows(&origin.host)) {
            return Sender::Own;
        }
        if self.site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Sender::Foreign;
        }
        let host = self.host.and_then(HostPort::parse);
        match (origin, host) {
            (None, _) => Sender::Own,
            (Some(Some(origin)), Some(host)) if origin.is_at(&host, listener) => {
                let is_certain = listener.reach == Reach::Loopback || !self.may_be_rebound(&origin, listener);
                if is_certain { Sender::Own } else { Sender::Foreign }
            }
            _ if self.site.is_some() => Sender::Unconfirmed,
            _ => Sender::Foreign,
        }
    }

    /// Whether another origin may have got the name of the server by pointing its own at it. It cannot do so with an
    /// address, and with HTTPS it would need the certificate: that of this server, or that of a proxy before it, to which a
    /// browser sends `Sec-Fetch-Site`.
    fn may_be_rebound(&self, origin: &PageOrigin<'_>, listener: Listener<'_>) -> bool {
        let is_fixed = origin.host.is_named("localhost") || origin.host.address().is_some();
        let is_behind_tls = origin.scheme == "https" && self.site == Some("same-origin");
        !(is_fixed || listener.has_tls || is_behind_tls)
    }
}

impl<'a> PageOrigin<'a> {
    /// Parses the header of that name; `None` for `null`, which stands for pages without an origin.
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        Some(Self { scheme, host: HostPort::parse(host)? })
    }

    /// Whether it is that of a server with this host. A proxy may have added TLS, but not removed it.
    fn is_at(&self, host: &HostPort<'_>, listener: Listener<'_>) -> bool {
        self.host.is_same(host, default_port(self.scheme)) && (self.scheme == "https" || !listener.has_tls)
    }
}

impl Listener<'_> {
    fn allows(&self, host: &HostPort<'_>) -> bool {
        self.allowed.iter().any(|name| host.is_named(name))
    }

    /// Rejects a request to the loopback address under a name that is not this machine's: its page may have rebound the
    /// name. A client without a host is not a browser.
    pub(crate) fn check_host(&self, host: Option<&str>) -> Result<(), HttpRejection> {
        let Some(text) = host.filter(|_| self.reach == Reach::Loopback) else { return Ok(()) };
        let host = HostPort::parse(text);
        if host.is_some_and(|host| host.is_loopback() || self.allows(&host)) {
            return Ok(());
        }
        Err(HttpRejection::Forbidden(format!(
            "host {text:?} is not the name of a loopback address; to serve under another name, start the server with \
             `--allow-host {}`",
            name_or_placeholder(host)
        )))
    }
}

impl Sender {
    pub(crate) fn may(self, effect: Effect, reach: Reach) -> bool {
        match effect {
            Effect::None => true,
            // From a network, every client can send a request that starts a model; browsers there
            // are behind proxies that change hosts.
            Effect::Starts => self != Self::Foreign || reach == Reach::Network,
            Effect::Changes => self == Self::Own,
        }
    }
}

/// The rejection of a request that its sender may not send.
pub(crate) fn foreign_page(page: &PageHeaders<'_>) -> HttpRejection {
    let origin = page.origin.and_then(PageOrigin::parse);
    HttpRejection::Forbidden(format!(
        "a web page of another origin ({}) may not change or start anything here; if the page is yours, start the \
         server with `--allow-host {}`",
        page.origin.unwrap_or("unknown"),
        name_or_placeholder(origin.map(|origin| origin.host))
    ))
}

/// The name in a hint.
fn name_or_placeholder(host: Option<HostPort<'_>>) -> &str {
    host.map(|host| host.name).filter(|name| !name.is_empty()).unwrap_or("NAME")
}

/// The value of a header. Several values, and those that are not text, contradict each other: none of them is right.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first: &HeaderValue = values.next()?;
    Some(if values.next().is_some() { "" } else { first.to_str().unwrap_or_default() })
}

#[cfg(test)]
mod tests;
