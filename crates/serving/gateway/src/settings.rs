//! Settings of a gateway: the user's options with every default resolved.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::ParseIntError;
use std::sync::Arc;
use std::time::Duration;

use cudock_base::{ErrorKind, Report};
use cudock_batcher::BatcherSettings;
use cudock_project::{ByteSize, GatewayOptions, TimeSpan};
use cudock_server::{RateLimiter, ServerSettings};
use cudock_trace::ExportSettings;
use hyper::header::HeaderName;
use hyper::http::uri::PathAndQuery;
use tokio_rustls::TlsConnector;

use crate::batching::batch_headers::{IgnoredHeaders, SharedHeaders};
use crate::batching::rows::RowFormat;
use crate::requests::path::ConfinedPath;
use crate::upstreams::tls::{self, UpstreamTlsError};
use crate::upstreams::url::{UpstreamUrl, UrlError};

/// The port of common model servers.
const DEFAULT_PORT: u16 = 8080;
const DEFAULT_HEALTH_PATH: &str = "/health";
/// Least time in which a health check can be answered.
const MIN_HEALTH_TIMEOUT: Duration = Duration::from_millis(100);
/// Least memory budget in bytes.
const MIN_MEMORY: usize = 1 << 20;

/// Options that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GatewaySettingsError {
    #[error("no upstream to forward requests to")]
    NoUpstream,
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Tls(#[from] UpstreamTlsError),
    #[error("--{flag} `{text}` must begin with / and have no query")]
    Path { flag: &'static str, text: String },
    #[error("--health-path `{text}` leaves the path of an upstream")]
    HealthPath { text: String },
    #[error("--{flag} `{text}` is not the name of a header")]
    Header { flag: &'static str, text: String },
    #[error("PORT is `{text}`, which is not a port")]
    Port { text: String, source: ParseIntError },
    #[error("--{flag} {value} is too large")]
    TooLarge { flag: &'static str, value: usize },
}

impl Report for GatewaySettingsError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoUpstream => vec!["name one with `--to http://HOST:PORT` or in INFERENCE_URL".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// Settings of a gateway.
#[derive(Clone)]
pub struct GatewaySettings {
    pub server: ServerSettings,
    /// Where traces go.
    pub telemetry: Option<ExportSettings>,
    pub(crate) upstreams: Vec<UpstreamUrl>,
    pub(crate) tls: Option<TlsConnector>,
    /// Path of the requests that share batches.
    pub(crate) path: String,
    pub(crate) format: RowFormat,
    pub(crate) ignored_headers: IgnoredHeaders,
    pub(crate) shared_headers: SharedHeaders,
    /// Settings of the queue of each upstream.
    pub(crate) batcher: BatcherSettings,
    /// Longest time of an upstream to answer, and between two chunks of an answer.
    pub(crate) timeout: Duration,
    /// Longest time that a request waits for an upstream.
    pub(crate) hold: Duration,
    pub(crate) health_path: ConfinedPath,
    /// Longest time without a sign of life from an upstream that has requests.
    pub(crate) health_timeout: Duration,
    /// Whether an upstream must have the path.
    pub(crate) requires_health_path: bool,
    /// Whether a POST may be sent again although it may have been processed.
    pub(crate) retry_posts: bool,
    /// Program and arguments that start an upstream.
    pub(crate) wake: Option<Vec<String>>,
    /// The same that stop one, after this time without a request.
    pub(crate) idle_stop: Option<Vec<String>>,
    pub(crate) idle_after: Duration,
    pub(crate) max_body: usize,
}

impl GatewaySettings {
    /// Resolves options. `port` is the variable `PORT`, by which platforms choose the port of a container.
    pub fn new(options: &GatewayOptions, port: Option<&str>) -> Result<Self, GatewaySettingsError> {
        check_limits(options)?;
        let urls = options.to.as_deref().unwrap_or_default();
        let upstreams: Vec<UpstreamUrl> = urls.iter().map(|url| url.parse()).collect::<Result<_, _>>()?;
        if upstreams.is_empty() {
            return Err(GatewaySettingsError::NoUpstream);
        }
        let is_secure = upstreams.iter().any(|url| url.is_secure);
        let path = path("path", options.path.as_deref().unwrap_or("/predict"))?;
        let server = ServerSettings::new(listen(options, port)?);
        let memory = bytes_or(options.memory, server.memory).max(MIN_MEMORY);
        let format = RowFormat::default();
        Ok(Self {
            server: ServerSettings {
                allow_hosts: options
                    .allow_hosts
                    .iter()
                    .flatten()
                    .map(|host| host.as_str().to_owned())
                    .collect(),
                io_threads: options.io_threads.unwrap_or(server.io_threads),
                memory,
                connections: options.connections.unwrap_or(server.connections).max(1),
                client_timeout: options.client_timeout.map_or(server.client_timeout, |time| time.0),
                drain_timeout: options.drain_timeout.map_or(server.drain_timeout, |time| time.0),
                rate_limiter: options
                    .rate_limit
                    .map(|limit| Arc::new(RateLimiter::new(limit.per_second, limit.burst))),
                ..server
            },
            telemetry: None,
            tls: if is_secure { Some(tls::connector(options.upstream_ca.as_deref())?) } else { None },
            path: path.path().to_owned(),
            format: RowFormat {
                input_key: options.input_key.clone().unwrap_or(format.input_key),
                output_keys: options
                    .output_keys
                    .clone()
                    .filter(|keys| !keys.is_empty())
                    .unwrap_or(format.output_keys),
                shared_keys: options.shared_keys.clone().unwrap_or_default(),
                row_rank: options.row_rank.unwrap_or(format.row_rank),
            },
            ignored_headers: IgnoredHeaders(header_names(
                "ignore-header",
                options.ignore_headers.as_deref(),
            )?),
            shared_headers: SharedHeaders(header_names("shared-header", options.shared_headers.as_deref())?),
            batcher: BatcherSettings {
                max_rows: options.max_batch.unwrap_or(32).max(1),
                max_wait: time_or(options.max_wait, 2),
                latency_target: options.latency_target.map(|span| span.0),
                max_queued_rows: options.queue_rows.unwrap_or(4096),
                max_queue_time: time_or(options.queue_time, 5_000),
                // Two batches at once would compete for the interpreter of a Python server.
                lanes: options.concurrency.unwrap_or(1).max(1),
                ..BatcherSettings::default()
            },
            timeout: time_or(options.timeout, 300_000),
            hold: time_or(options.hold, 60_000),
            health_path: health_path(options, &upstreams)?,
            health_timeout: time_or(options.health_timeout, 30_000).max(MIN_HEALTH_TIMEOUT),
            requires_health_path: options.health_path.is_some(),
            retry_posts: options.retry_posts.unwrap_or(false),
            wake: options.wake.clone().filter(|command| !command.is_empty()),
            idle_stop: options.idle_stop.clone().filter(|command| !command.is_empty()),
            idle_after: time_or(options.idle_after, 900_000),
            max_body: bytes_or(options.max_body, 64 << 20).min(memory),
            upstreams,
        })
    }
}

/// Rejects counts beyond any machine.
fn check_limits(options: &GatewayOptions) -> Result<(), GatewaySettingsError> {
    let limits = [
        ("max-batch", options.max_batch, 65_536),
        ("concurrency", options.concurrency, 1024),
        ("io-threads", options.io_threads, 256),
        ("queue-rows", options.queue_rows, 10_000_000),
        ("row-rank", options.row_rank, 16),
    ];
    for (flag, value, max) in limits {
        if let Some(value) = value.filter(|value| *value > max) {
            return Err(GatewaySettingsError::TooLarge { flag, value });
        }
    }
    Ok(())
}

fn listen(options: &GatewayOptions, port: Option<&str>) -> Result<Vec<SocketAddr>, GatewaySettingsError> {
    if let Some(listen) = options.listen.clone().filter(|listen| !listen.is_empty()) {
        return Ok(listen);
    }
    let Some(text) = port else { return Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))]) };
    let parsed = text.trim().parse();
    let port: u16 = parsed.map_err(|source| GatewaySettingsError::Port { text: text.to_owned(), source })?;
    Ok(vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))])
}

fn path(flag: &'static str, text: &str) -> Result<PathAndQuery, GatewaySettingsError> {
    let parsed = text.parse::<PathAndQuery>().ok();
    parsed
        .filter(|path| text.starts_with('/') && path.query().is_none())
        .ok_or_else(|| GatewaySettingsError::Path { flag, text: text.to_owned() })
}

fn health_path(
    options: &GatewayOptions,
    upstreams: &[UpstreamUrl],
) -> Result<ConfinedPath, GatewaySettingsError> {
    let text = options.health_path.as_deref().unwrap_or(DEFAULT_HEALTH_PATH);
    ConfinedPath::new(path("health-path", text)?, upstreams)
        .map_err(|_| GatewaySettingsError::HealthPath { text: text.to_owned() })
}

fn header_names(
    flag: &'static str,
    names: Option<&[String]>,
) -> Result<Vec<HeaderName>, GatewaySettingsError> {
    let error = |name: &String| GatewaySettingsError::Header { flag, text: name.clone() };
    names.unwrap_or_default().iter().map(|name| name.parse().map_err(|_| error(name))).collect()
}

fn time_or(time: Option<TimeSpan>, default_ms: u64) -> Duration {
    time.map_or(Duration::from_millis(default_ms), |time| time.0)
}

fn bytes_or(size: Option<ByteSize>, default: usize) -> usize {
    size.map_or(default, |size| usize::try_from(size.0).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn resolve(toml: &str, port: Option<&str>) -> Result<GatewaySettings, GatewaySettingsError> {
        let text = format!("[gateway]\n{toml}\n");
        GatewaySettings::new(&cudock_project::parse(Path::new("cudock.toml"), &text).unwrap().gateway, port)
    }

    #[test]
    fn the_port_is_that_of_the_options_or_of_the_platform() {
        for (toml, port, address) in [
            ("", None, "127.0.0.1:8080"),
            ("", Some(" 9000"), "0.0.0.0:9000"),
            ("listen = ['[::1]:80']", Some("9000"), "[::1]:80"),
            ("listen = []", None, "127.0.0.1:8080"),
        ] {
            let settings = resolve(&format!("to = ['localhost:1']\n{toml}"), port).unwrap();
            assert_eq!(settings.server.listen, [address.parse().unwrap()], "{toml} {port:?}");
        }
    }

    #[test]
    fn options_that_cannot_be_used_are_rejected() {
        for (toml, port, message) in [
            ("", None, "no upstream to forward requests to"),
            ("to = []", None, "no upstream to forward requests to"),
            ("to = ['ftp://a']", None, "invalid upstream `ftp://a`: the scheme must be http or https"),
            ("to = ['a']\npath = 'predict'", None, "--path `predict` must begin with / and have no query"),
            (
                "to = ['a']\nhealth_path = '/h?a=1'",
                None,
                "--health-path `/h?a=1` must begin with / and have no query",
            ),
            (
                "to = ['a']\nignore_headers = ['a b']",
                None,
                "--ignore-header `a b` is not the name of a header",
            ),
            ("to = ['a']\nshared_headers = ['']", None, "--shared-header `` is not the name of a header"),
            (
                "to = ['a/team']\nhealth_path = '/../h'",
                None,
                "--health-path `/../h` leaves the path of an upstream",
            ),
            ("to = ['a']\nconcurrency = 5000", None, "--concurrency 5000 is too large"),
            ("to = ['a']", Some("http"), "PORT is `http`, which is not a port"),
            (
                "to = ['https://a']\nupstream_ca = '/nonexistent'",
                None,
                "cannot read the certificates /nonexistent",
            ),
        ] {
            let error = resolve(toml, port).map(drop).unwrap_err().to_string();
            assert!(error.starts_with(message), "{toml}: {error}");
        }
    }

    #[test]
    fn a_health_path_that_users_name_must_exist() {
        assert!(!resolve("to = ['a']", None).unwrap().requires_health_path);
        assert!(resolve("to = ['a']\nhealth_path = '/health'", None).unwrap().requires_health_path);
    }
}
