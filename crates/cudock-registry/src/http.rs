//! Requests over the network: which hosts may be asked how, and where a redirect may lead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::{Response, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Proxy};

use crate::env::{Environment, SSL_CERT_FILE};
use crate::error::RegistryError;
use crate::reference::is_loopback;
use crate::secret::Secret;

const MOST_REDIRECTS: usize = 6;
/// Bundles of the system's trusted certificates, by distribution.
const SYSTEM_BUNDLES: [&str; 4] = [
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/ca-bundle.pem",
    "etc/ssl/cert.pem",
];

/// A request that did not lead to an answer. The reasons hold no URL: a redirect's may be signed.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The network; another attempt may fare better.
    Network(String),
    /// The network, in a way that stays as it is: no such host, a certificate that is not trusted.
    Final(String),
    /// An answer that leads where we do not go.
    Refused(String),
}

/// What to send.
#[derive(Default)]
pub struct Get<'a> {
    /// For the first origin, and for no other that it redirects to.
    pub authorization: Option<&'a Secret>,
    /// The media types that are understood.
    pub accept: Option<&'a str>,
    /// Where the part that is asked for begins.
    pub from_byte: Option<u64>,
}

/// An answer, and whether the origin first asked gave it itself. A challenge from elsewhere must not be answered: it
/// would take the registry's sign-in to whomever it names.
pub struct Answer {
    /// The answer itself.
    pub response: Response<Body>,
    /// Whether the origin first asked gave it.
    pub is_of_origin: bool,
    /// Who gave it, after all redirects.
    pub url: Uri,
}

/// How requests are made.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// A bundle of certificates to trust; Mozilla's are trusted where there is none.
    pub certificates: Option<PathBuf>,
    /// A server that says nothing for longer is given up.
    pub patience: Duration,
    /// Hosts, with a port or for all ports, that may speak plain http and whose certificates are not verified. Only
    /// for what is verified otherwise.
    pub trusted: Vec<String>,
    /// The proxy, where it is not for the environment to say.
    pub proxy: Option<Secret>,
}

impl HttpOptions {
    /// Mozilla's certificates, nobody trusted beyond them, the environment's proxies.
    pub fn patient(patience: Duration) -> Self {
        Self { certificates: None, patience, trusted: Vec::new(), proxy: None }
    }
}

/// The bundle to trust: that of `SSL_CERT_FILE`, else the system's.
pub fn trusted_certificates(environment: &Environment) -> Option<PathBuf> {
    let system =
        || SYSTEM_BUNDLES.iter().map(|bundle| environment.system(bundle)).find(|path| path.is_file());
    environment.path(SSL_CERT_FILE).or_else(system)
}

/// Agents for the world, for this machine, which needs no proxy, and for the hosts that are trusted blindly.
pub struct Http {
    world: Agent,
    here: Agent,
    blind: Agent,
    trusted: Vec<String>,
}

impl Http {
    /// Makes the agents. Nothing is asked yet.
    pub fn new(options: &HttpOptions) -> Result<Self, RegistryError> {
        let roots =
            options.certificates.as_deref().map(read_bundle).transpose()?.unwrap_or(RootCerts::WebPki);
        let patience = options.patience;
        // Where nobody names one, the library asks the environment.
        let proxy = options.proxy.as_ref().and_then(|proxy| Proxy::new(proxy.expose()).ok());
        let config = |verified: bool, at_home: bool| {
            let tls = TlsConfig::builder().root_certs(roots.clone()).disable_verification(!verified).build();
            let builder = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .user_agent(concat!("cudock/", env!("CARGO_PKG_VERSION")))
                .timeout_resolve(Some(Duration::from_secs(20)))
                .timeout_connect(Some(Duration::from_secs(20)))
                .timeout_recv_response(Some(patience))
                .timeout_per_read(Some(patience))
                .tls_config(tls);
            let builder = match &proxy {
                _ if at_home => builder.proxy(None),
                Some(proxy) => builder.proxy(Some(proxy.clone())),
                None => builder,
            };
            builder.build().new_agent()
        };
        Ok(Self {
            world: config(true, false),
            here: config(true, true),
            blind: config(false, false),
            trusted: options.trusted.clone(),
        })
    }

    fn agent_for(&self, url: &Uri) -> &Agent {
        match url.host().unwrap_or_default() {
            host if is_loopback(host) => &self.here,
            _ if self.is_trusted(url) => &self.blind,
            _ => &self.world,
        }
    }

    /// Whether a host is to be believed without a certificate.
    pub fn is_trusted(&self, url: &Uri) -> bool {
        let Some(host) = url.host() else { return false };
        self.trusted.iter().any(|trusted| {
            trusted.eq_ignore_ascii_case(host)
                || url.port_u16().is_some_and(|port| trusted.eq_ignore_ascii_case(&format!("{host}:{port}")))
        })
    }

    /// Asks and follows redirects. The authorization goes to the first origin only, and no redirect leads from the
    /// network to this machine or to plain HTTP.
    pub fn get(&self, url: &str, get: &Get<'_>) -> Result<Answer, Trouble> {
        let first = parse(url)?;
        let at_home = is_loopback(first.host().unwrap_or_default());
        let mut url = first.clone();
        for _ in 0..MOST_REDIRECTS {
            self.may_be_asked(&url, at_home)?;
            let mut request = self.agent_for(&url).get(&url);
            let is_of_origin = origin(&url) == origin(&first);
            if let Some(authorization) = get.authorization.filter(|_| is_of_origin) {
                request = request.header("Authorization", authorization.expose());
            }
            if let Some(accept) = get.accept {
                request = request.header("Accept", accept);
            }
            if let Some(byte) = get.from_byte {
                request = request.header("Range", format!("bytes={byte}-"));
            }
            // Hashes are of the bytes as they are; nobody shall pack them for the way.
            let response =
                request.header("Accept-Encoding", "identity").call().map_err(|error| trouble(&error))?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(Answer { response, is_of_origin, url });
            }
            url = target(&url, header(&response, "location"))?;
        }
        Err(Trouble::Refused("it redirects in circles".to_owned()))
    }

    fn may_be_asked(&self, url: &Uri, at_home: bool) -> Result<(), Trouble> {
        match url.scheme_str() {
            Some("http") if self.is_trusted(url) && url.host().is_some_and(|host| !is_loopback(host)) => {
                Ok(())
            }
            _ => may_be_asked(url, at_home),
        }
    }

    /// Posts a form; redirects are not followed.
    pub(crate) fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        at_home: bool,
    ) -> Result<Response<Body>, Trouble> {
        let url = parse(url)?;
        may_be_asked(&url, at_home)?;
        self.agent_for(&url).post(&url).send_form(form.iter().copied()).map_err(|error| trouble(&error))
    }
}

/// A header's text, if it is text.
pub fn header<'a>(answer: &'a Response<Body>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

/// Why reading a body ended before its end.
pub fn broken(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        Some(inner) => match trouble(inner) {
            Trouble::Network(reason) | Trouble::Final(reason) | Trouble::Refused(reason) => reason,
        },
        None => error.to_string(),
    }
}

fn parse(url: &str) -> Result<Uri, Trouble> {
    url.parse().map_err(|_| Trouble::Refused("it sends us to an address that is not one".to_owned()))
}

/// https anywhere; plain http only on this machine, and only if a registry on this machine was asked.
pub(crate) fn may_be_asked(url: &Uri, at_home: bool) -> Result<(), Trouble> {
    let refused = |reason: &str| Err(Trouble::Refused(reason.to_owned()));
    let Some(host) = url.host().filter(|host| !host.is_empty()) else {
        return refused("it sends us to an address without a host");
    };
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return refused("it sends us to an address with a user in it");
    }
    match url.scheme_str() {
        _ if is_loopback(host) && !at_home => refused("it sends us to our own machine"),
        Some("https") => Ok(()),
        Some("http") if is_loopback(host) => Ok(()),
        Some("http") => refused("it sends us to plain http, which anybody can alter"),
        _ => refused("it sends us to an address that is not http"),
    }
}

fn origin(url: &Uri) -> (Option<&str>, Option<String>, Option<u16>) {
    let scheme = url.scheme_str();
    let by_default = if scheme == Some("https") { 443 } else { 80 };
    (scheme, url.host().map(str::to_ascii_lowercase), Some(url.port_u16().unwrap_or(by_default)))
}

fn target(from: &Uri, location: Option<&str>) -> Result<Uri, Trouble> {
    let location = location.ok_or_else(|| Trouble::Refused("it redirects to nowhere".to_owned()))?;
    let (scheme, authority) =
        (from.scheme_str().unwrap_or("https"), from.authority().map_or("", |a| a.as_str()));
    let has_scheme = location.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':'));
    parse(&if has_scheme {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    })
}

/// Says what happened without the words that might hold a URL.
fn trouble(error: &ureq::Error) -> Trouble {
    use ureq::Error as E;
    match error {
        E::Io(error) => match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Trouble::Final(error.to_string()),
            io::ErrorKind::ConnectionRefused => Trouble::Network("connection refused".to_owned()),
            io::ErrorKind::UnexpectedEof => Trouble::Network("the connection was closed".to_owned()),
            _ => {
                let said = error.to_string();
                // The resolver's error has no kind of its own. A name that is not known stays so.
                if said.starts_with("failed to lookup address") && !said.contains("Temporary") {
                    Trouble::Final(said)
                } else {
                    Trouble::Network(said)
                }
            }
        },
        E::Timeout(_) => Trouble::Network("no answer in time".to_owned()),
        E::HostNotFound => Trouble::Final("no such host".to_owned()),
        E::ConnectionFailed | E::BodyStalled => Trouble::Network("the connection failed".to_owned()),
        E::ConnectProxyFailed(_) => Trouble::Network("the proxy does not connect us".to_owned()),
        E::Tls(reason) => Trouble::Final(format!("TLS: {reason}")),
        E::Rustls(error) => Trouble::Final(format!("TLS: {error}")),
        E::Protocol(_) => Trouble::Refused("it does not speak HTTP as it should".to_owned()),
        E::LargeResponseHeader(..) => Trouble::Refused("its headers are too large".to_owned()),
        E::InvalidProxyUrl => Trouble::Final("the proxy's address is not one".to_owned()),
        _ => Trouble::Final("the request could not be made".to_owned()),
    }
}

fn read_bundle(file: &Path) -> Result<RootCerts, RegistryError> {
    let wrong = |reason: String| RegistryError::Config { file: file.to_owned(), reason };
    let pem = fs::read(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(wrong("has no certificate in it".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_read_against_where_it_came_from() {
        let from: Uri = "https://a.com:5000/v2/x/blobs/y?z".parse().unwrap();
        for (location, to) in [
            ("https://b.com/c?d=e", "https://b.com/c?d=e"),
            ("//b.com/c", "https://b.com/c"),
            ("/c:d", "https://a.com:5000/c:d"),
            ("c?u=http://x", "https://a.com:5000/v2/x/blobs/c?u=http://x"),
        ] {
            assert_eq!(target(&from, Some(location)).unwrap().to_string(), to);
        }
        assert!(target(&from, None).is_err());
        assert!(target(&from, Some("https://")).is_err());
    }

    #[test]
    fn the_world_cannot_send_us_home_nor_to_plain_http() {
        let may = |url: &str, at_home| may_be_asked(&url.parse().unwrap(), at_home).is_ok();
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
    fn a_host_is_trusted_at_all_ports_or_at_one() {
        let trusted = vec!["a.com".to_owned(), "b.com:81".to_owned()];
        let http =
            Http::new(&HttpOptions { trusted, ..HttpOptions::patient(Duration::from_secs(1)) }).unwrap();
        let may = |url: &str| http.may_be_asked(&url.parse().unwrap(), false).is_ok();
        for url in ["http://a.com/", "http://A.com:8080/", "http://b.com:81/", "https://c.com/"] {
            assert!(may(url), "{url}");
        }
        for url in ["http://b.com/", "http://b.com:82/", "http://x.a.com/", "http://c.com/"] {
            assert!(!may(url), "{url}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| origin(&a.parse().unwrap()) == origin(&b.parse().unwrap());
        assert!(same("https://A.com/x", "https://a.com:443/y"));
        assert!(!same("https://a.com", "https://a.com:444"));
        assert!(!same("http://a.com", "https://a.com"));
        assert!(!same("https://a.com", "https://b.a.com"));
    }
}
