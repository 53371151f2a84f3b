//! Requests over the network: which hosts may be contacted how, and where a redirect may lead.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cudock_base::Secret;
use serde::de::DeserializeOwned;
use ureq::config::ConfigBuilder;
use ureq::http::{HeaderValue, Request as HttpRequest, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::{Agent, Proxy, SendBody};

use crate::certificates::{CertificateError, read_bundle};
use crate::connect;
use crate::error::{HttpError, HttpErrorKind};
use crate::request::Request;
use crate::response::Response;
use crate::url::{self, is_link_local, is_loopback, is_same_origin};

const MAX_REDIRECTS: usize = 6;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const METADATA_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// A bundle of certificates to trust; Mozilla's are trusted where there is none.
    pub certificates: Option<PathBuf>,
    /// How long a server may be silent.
    pub timeout: Duration,
    /// Hosts, with a port or for all ports, that may speak plain http and whose certificates are not verified. Only for
    /// content that is verified otherwise.
    pub trusted_hosts: Vec<String>,
    /// The proxy; that of the environment (`HTTPS_PROXY`, `NO_PROXY`, …) where there is none.
    pub proxy: Option<Secret>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { certificates: None, timeout: Duration::from_secs(60), trusted_hosts: Vec::new(), proxy: None }
    }
}

/// Sends requests. It may be shared by threads, and keeps connections open for the next request.
pub struct Client {
    network: Agent,
    /// Agent for this machine, which needs no proxy.
    loopback: Agent,
    /// Agent for trusted hosts, whose certificates are not verified.
    unverified: Agent,
    trusted_hosts: Vec<String>,
}

impl Client {
    /// Makes a client. Nothing is contacted yet.
    pub fn new(options: &ClientOptions) -> Result<Self, CertificateError> {
        let roots =
            options.certificates.as_deref().map(read_bundle).transpose()?.unwrap_or(RootCerts::WebPki);
        let proxy = options.proxy.as_ref().and_then(|proxy| Proxy::new(proxy.expose()).ok());
        let agent = |verify: bool, use_proxy: bool| {
            let tls = TlsConfig::builder().root_certs(roots.clone()).disable_verification(!verify).build();
            let config = base_config(options.timeout)
                .timeout_resolve(Some(CONNECT_TIMEOUT))
                .timeout_connect(Some(CONNECT_TIMEOUT))
                .timeout_recv_response(Some(options.timeout))
                .tls_config(tls);
            let config = match &proxy {
                _ if !use_proxy => config.proxy(None),
                Some(proxy) => config.proxy(Some(proxy.clone())),
                None => config,
            };
            config.build().new_agent()
        };
        Ok(Self {
            network: agent(true, true),
            loopback: agent(true, false),
            unverified: agent(false, true),
            trusted_hosts: options.trusted_hosts.clone(),
        })
    }

    /// A client whose every connection goes to this unix socket. Its URLs begin with `http://localhost/`.
    pub fn over_unix_socket(socket: &Path, timeout: Duration) -> Self {
        Self::with_agent(connect::unix_agent(base_config(timeout), socket))
    }

    /// A client for probes of servers on this machine: it connects to `127.0.0.1` and then to `::1`, whatever `localhost`
    /// resolves to, and accepts any certificate. Every connection is made by the calling thread, so that it may
    /// first enter a network namespace.
    pub fn for_probes() -> Self {
        Self::with_agent(connect::probe_agent(base_config(CONNECT_TIMEOUT)))
    }

    /// A client for the metadata service of a cloud: no proxy is used, plain http is allowed if the host is a link-local
    /// address, and where the service does not exist that is known within a second.
    pub fn for_metadata(host: &str, timeout: Duration) -> Self {
        let config = base_config(timeout)
            .proxy(None)
            .timeout_connect(Some(METADATA_CONNECT_TIMEOUT))
            .timeout_recv_response(Some(timeout));
        let client = Self::with_agent(config.build().new_agent());
        Self { trusted_hosts: is_link_local(host).then(|| host.to_owned()).into_iter().collect(), ..client }
    }

    fn with_agent(agent: Agent) -> Self {
        let [network, loopback, unverified] = [agent.clone(), agent.clone(), agent];
        Self { network, loopback, unverified, trusted_hosts: Vec::new() }
    }

    pub(crate) fn agent_for(&self, url: &Uri) -> &Agent {
        match url.host().unwrap_or_default() {
            host if is_loopback(host) => &self.loopback,
            _ if self.is_trusted(url) => &self.unverified,
            _ => &self.network,
        }
    }

    /// Whether a host is trusted without a certificate.
    pub fn is_trusted(&self, url: &Uri) -> bool {
        let Some(host) = url.host() else { return false };
        self.trusted_hosts.iter().any(|trusted| {
            trusted.eq_ignore_ascii_case(host)
                || url.port_u16().is_some_and(|port| trusted.eq_ignore_ascii_case(&format!("{host}:{port}")))
        })
    }

    pub(crate) fn check(&self, url: &Uri, from_loopback: bool) -> Result<(), HttpError> {
        match url.scheme_str() {
            Some("http") if self.is_trusted(url) && url.host().is_some_and(|host| !is_loopback(host)) => {
                Ok(())
            }
            _ => url::check(url, from_loopback),
        }
    }

    /// Sends a request. Redirects of GET and HEAD are followed: the authorization goes to the first origin only, and
    /// no redirect leads from the network to this machine or to plain http. Redirects of other methods are returned.
    pub fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let first = url::parse(&request.url)?;
        let from_loopback = is_loopback(first.host().unwrap_or_default());
        let mut url = first.clone();
        for _ in 0..MAX_REDIRECTS {
            self.check(&url, from_loopback)?;
            let is_from_origin = is_same_origin(&url, &first);
            let response = match &request.body {
                Some(bytes) => self.exchange(request, url, is_from_origin, bytes.as_slice(), None)?,
                None => self.exchange(request, url, is_from_origin, (), None)?,
            };
            if !request.follow_redirects || !matches!(response.status(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            let target = response.linked_url("location");
            url = url::parse(&target.ok_or_else(|| HttpError::refused("redirect without a location"))?)?;
        }
        Err(HttpError::refused("too many redirects"))
    }

    /// Sends a request for a file from a byte on, as a download does that goes on where an earlier one ended. Besides a
    /// success, only the response that nothing follows is not an error.
    pub fn send_from(&self, request: &Request, from_byte: Option<u64>) -> Result<Response, HttpError> {
        let response = self.send(&request.clone().range_from(from_byte))?;
        match response.status() {
            200 | 206 => Ok(response),
            416 if from_byte.is_some() => Ok(response),
            _ => Err(response.into_status_error()),
        }
    }

    /// Sends a request whose body is read from `body`: `length` bytes, or in chunks to its end. Redirects are returned,
    /// since what was read cannot be sent again.
    pub fn send_stream(
        &self,
        request: &Request,
        body: &mut dyn Read,
        length: Option<u64>,
    ) -> Result<Response, HttpError> {
        let url = url::parse(&request.url)?;
        self.check(&url, is_loopback(url.host().unwrap_or_default()))?;
        match length {
            Some(length) => {
                let mut body = body.take(length);
                self.exchange(request, url, true, SendBody::from_reader(&mut body), Some(length))
            }
            None => self.exchange(request, url, true, SendBody::from_reader(body), None),
        }
    }

    /// Sends a request and reads a successful response as JSON of at most `limit` bytes.
    pub fn send_for_json<T: DeserializeOwned>(&self, request: &Request, limit: u64) -> Result<T, HttpError> {
        self.send(request)?.error_for_status()?.json(limit)
    }

    fn exchange(
        &self,
        request: &Request,
        url: Uri,
        is_from_origin: bool,
        body: impl ureq::AsSendBody,
        length: Option<u64>,
    ) -> Result<Response, HttpError> {
        let agent = self.agent_for(&url);
        // Hashes are of the bytes as they are, so that nothing may compress them on the way.
        let mut builder = HttpRequest::builder()
            .method(request.method.clone())
            .uri(url.clone())
            .header("Accept-Encoding", "identity");
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(length) = length {
            builder = builder.header("Content-Length", length);
        }
        let authorization = request.authorization.as_ref().filter(|_| is_from_origin);
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::from_str(authorization.expose()).map_err(|_| {
                HttpError::new(HttpErrorKind::Permanent, "the credentials cannot be sent in a header")
            })?;
            value.set_sensitive(true);
            builder = builder.header("Authorization", value);
        }
        let message = builder
            .body(body)
            .map_err(|_| HttpError::new(HttpErrorKind::Permanent, "the request has an invalid header"))?;
        let message = match request.deadline {
            Some(deadline) => agent.configure_request(message).timeout_global(Some(deadline)).build(),
            None => message,
        };
        let started = Instant::now();
        let result = agent.run(message).map_err(|error| HttpError::from(&error));
        if let Some(observer) = OBSERVER.get() {
            let outcome = match &result {
                Ok(response) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            };
            let seconds = started.elapsed().as_secs_f64();
            observer(&format!("{} {}: {outcome} in {seconds:.3} s", request.method, without_secrets(&url)));
        }
        let inner = result?;
        Ok(Response { inner, url, is_from_origin, authorization: authorization.cloned() })
    }
}

static OBSERVER: OnceLock<fn(&str)> = OnceLock::new();

/// Describes every request of this process to `observer`: method, URL, status and time. The first call counts.
pub fn observe_requests(observer: fn(&str)) {
    let _ = OBSERVER.set(observer);
}

/// A URL without user, password and query, which may hold a signature.
fn without_secrets(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let query = if url.query().is_some() { "?…" } else { "" };
    format!("{}://{host}{port}{}{query}", url.scheme_str().unwrap_or_default(), url.path())
}

/// Configuration common to all agents. Redirects are followed here, because the library applies
/// other rules.
fn base_config(timeout: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("cudock/", env!("CARGO_PKG_VERSION")))
        .timeout_per_read(Some(timeout))
        .timeout_per_write(Some(timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_trusted_at_all_ports_or_at_one() {
        let trusted_hosts = vec!["a.com".to_owned(), "b.com:81".to_owned()];
        let client = Client::new(&ClientOptions { trusted_hosts, ..ClientOptions::default() }).unwrap();
        let may = |url: &str| client.check(&url.parse().unwrap(), false).is_ok();
        for url in ["http://a.com/", "http://A.com:8080/", "http://b.com:81/", "https://c.com/"] {
            assert!(may(url), "{url}");
        }
        for url in ["http://b.com/", "http://b.com:82/", "http://x.a.com/", "http://c.com/"] {
            assert!(!may(url), "{url}");
        }
    }

    #[test]
    fn only_a_link_local_metadata_service_may_speak_plain_http() {
        for (host, allowed) in [("169.254.169.254", true), ("10.0.0.1", false), ("example.com", false)] {
            let client = Client::for_metadata(host, CONNECT_TIMEOUT);
            let url = format!("http://{host}/").parse().unwrap();
            assert_eq!(client.check(&url, false).is_ok(), allowed, "{host}");
        }
        let other = "http://169.254.1.1/".parse().unwrap();
        assert!(Client::for_metadata("169.254.169.254", CONNECT_TIMEOUT).check(&other, false).is_err());
    }

    #[test]
    fn observed_urls_hold_no_secrets() {
        for (url, shown) in [
            ("https://u:p@a.com:81/v2/x?sig=1", "https://a.com:81/v2/x?…"),
            ("http://[::1]/", "http://[::1]/"),
        ] {
            assert_eq!(without_secrets(&url.parse().unwrap()), shown);
        }
    }
}
