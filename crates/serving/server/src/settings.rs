//! Settings of a server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudock_trace::{ExportSettings, Exporter, ReadMetrics};
use hyper::header::HeaderMap;

use crate::connection::monitor::ConnectionActivity;
use crate::limits::rate_limit::RateLimiter;
use crate::metrics::log::{Log, LogFormat};
use crate::request::keys::ApiKeys;
use crate::request::rejection::HttpRejection;

#[derive(Clone)]
pub struct ServerSettings {
    /// Addresses to listen on; HTTP/1.1 and HTTP/2 share each of them.
    pub listen: Vec<SocketAddr>,
    /// Names of this server besides those of the loopback address, whose web pages are trusted.
    pub allow_hosts: Vec<String>,
    /// Threads that read and write connections.
    pub io_threads: usize,
    /// Memory budget: most bytes that requests and responses hold at once, from the first byte read to the last one
    /// written.
    pub memory: usize,
    pub connections: usize,
    /// Longest time a client may take for the head, for a chunk of the body, and to read its response.
    pub client_timeout: Duration,
    /// Longest time that running requests get when the server shuts down.
    pub drain_timeout: Duration,
    pub keys: ApiKeys,
    /// Limit of the requests of each client.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Certificate and key, for TLS.
    pub tls: Option<TlsFiles>,
    pub log: Log,
    /// Where traces of requests go.
    pub exporter: Option<Exporter>,
}

impl ServerSettings {
    /// The default settings, without keys and TLS, and with a log that is off.
    pub fn new(listen: Vec<SocketAddr>) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            listen,
            allow_hosts: Vec::new(),
            io_threads: (processors / 2).clamp(1, 8),
            memory: 1 << 30,
            connections: 10_000,
            client_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            keys: ApiKeys::default(),
            tls: None,
            log: Log::new(LogFormat::Off, false, io::sink()),
            rate_limiter: None,
            exporter: None,
        }
    }

    /// Sends traces of requests, and these metrics, to a collector from now on.
    pub fn export(&mut self, settings: ExportSettings, metrics: ReadMetrics) -> io::Result<()> {
        let log = self.log.clone();
        let report = move |error: &str| log.event("telemetry_not_sent", &[("error", error)]);
        self.exporter = Some(Exporter::start(settings, metrics, Box::new(report))?);
        Ok(())
    }

    /// Rejects a request without a valid key, and one that its client sends too soon. For all requests but probes.
    pub fn admit(&self, headers: &HeaderMap, activity: &ConnectionActivity) -> Result<(), HttpRejection> {
        let key = self.keys.identify(headers);
        if key.is_none() && self.keys.are_required() {
            return Err(HttpRejection::Unauthorized);
        }
        match &self.rate_limiter {
            Some(limiter) => limiter.check(key, activity.peer()),
            None => Ok(()),
        }
    }
}

/// Certificate chain and private key, PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}
