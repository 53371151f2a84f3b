//! Settings of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::keys::ApiKeys;
use crate::log::Log;

#[derive(Clone)]
pub struct ServerSettings {
    /// Addresses to listen on; HTTP/1.1 and HTTP/2 share each of them.
    pub listen: Vec<SocketAddr>,
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
    /// Certificate and key, for TLS.
    pub tls: Option<TlsFiles>,
    pub log: Log,
}

/// Certificate chain and private key, PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}
