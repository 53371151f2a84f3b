//! Connections other than for requests to a host of the network: unix sockets, this machine's loopback addresses, and
//! connections that are used for something else than requests.
//!
//! They are connectors and resolvers of `ureq`, so that requests and bodies are framed by the same code as everywhere
//! else. `ureq` excludes these traits from its promise of stability; a change shows when this file is compiled.

use cudock_base::bug::Parts;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cudock_base::lock;
use ureq::config::{Config, ConfigBuilder};
use ureq::http::Uri;
use ureq::tls::TlsConfig;
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Error};

use crate::error::HttpError;
use crate::url::is_same_origin;

/// An agent whose every connection goes to this socket, whatever host a URL names.
pub(crate) fn unix_agent(config: ConfigBuilder<AgentScope>, socket: &Path) -> Agent {
    Agent::with_parts(config.proxy(None).build(), UnixConnector { socket: socket.to_owned() }, NoResolver)
}

/// An agent that connects to this machine only and accepts any certificate.
pub(crate) fn probe_agent(config: ConfigBuilder<AgentScope>) -> Agent {
    let tls = TlsConfig::builder().disable_verification(true).build();
    // A probe is one request; the connection must not outlive it.
    let config = config.proxy(None).tls_config(tls).max_idle_connections(0).build();
    Agent::with_parts(config, DefaultConnector::new(), LoopbackResolver)
}

/// Connects to the host of a URL as a request would, by way of the proxy and with TLS, and sends nothing.
pub(crate) fn open(config: Config, url: &Uri) -> Result<Box<dyn Transport>, HttpError> {
    let opened = Arc::new(Mutex::new(None));
    let handover = Handover { url: url.clone(), opened: Arc::clone(&opened) };
    let agent =
        Agent::with_parts(config, DefaultConnector::new().chain(handover), DefaultResolver::default());
    let result = agent.get(url.clone()).call();
    let opened = lock(&opened).take();
    match (opened, result) {
        (Some(transport), _) => Ok(transport),
        (None, Err(error)) => Err(HttpError::from(&error)),
        (None, Ok(_)) => Err(HttpError::refused("the connection is not known")),
    }
}

/// Takes the connection to a URL's host away from the request that it was made for, which then fails.
#[derive(Debug)]
struct Handover {
    url: Uri,
    opened: Arc<Mutex<Option<Box<dyn Transport>>>>,
}

impl<In: Transport> Connector<In> for Handover {
    type Out = In;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<In>, Error> {
        // A proxy is connected to by the same connectors.
        if !is_same_origin(details.uri, &self.url) {
            return Ok(chained);
        }
        if let Some(transport) = chained {
            *lock(&self.opened) = Some(Box::new(transport));
        }
        Err(Error::ConnectionFailed)
    }
}

/// Resolves every host to the loopback addresses, IPv4 first: most servers listen there. The
/// library's resolver would use the system's, whose result for `localhost` differs between
/// machines.
#[derive(Debug)]
struct LoopbackResolver;

impl Resolver for LoopbackResolver {
    fn resolve(&self, url: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
        let mut addresses = self.empty();
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            addresses.push(SocketAddr::new(ip, port));
        }
        Ok(addresses)
    }
}

#[derive(Debug)]
struct UnixConnector {
    socket: PathBuf,
}

impl<In: Transport> Connector<In> for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<In>,
    ) -> Result<Option<UnixTransport>, Error> {
        let stream = UnixStream::connect(&self.socket)?;
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// A unix socket has nothing to look up.
#[derive(Debug)]
struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        Ok(self.empty())
    }
}

struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl fmt::Debug for UnixTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixTransport").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(timeout.not_zero().map(|wait| *wait))?;
        let output = self.buffers.output().part(..amount);
        self.stream.write_all(output).map_err(|error| timed_out(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(timeout.not_zero().map(|wait| *wait))?;
        let count = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result.map_err(|error| timed_out(error, timeout))?,
            }
        };
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    /// A connection serves one request: a daemon gets two or three in all.
    fn is_open(&mut self) -> bool {
        false
    }
}

fn timed_out(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}
