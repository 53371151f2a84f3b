//! One upstream: its connections, its queue, and whether it gets requests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudock_base::lock;
use cudock_base::text::error_chain;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use crate::availability::Availability;
use crate::body::OutgoingBody;
use crate::metrics::UpstreamMetrics;
use crate::queue::BatchQueue;
use crate::url::UpstreamUrl;

/// Longest time to connect, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Age at which an idle connection is not used again. Servers close idle connections, gunicorn after two seconds, and
/// a request that is sent at that moment may or may not have been processed.
const MAX_IDLE: Duration = Duration::from_millis(1500);
/// Most idle connections to one upstream of a thread.
const MAX_IDLE_CONNECTIONS: usize = 64;
/// Size of a connection's buffer.
const READ_BUFFER: usize = 128 << 10;

thread_local! {
    /// The idle connections of this thread by the index of their upstream. A connection stays on the thread whose runtime
    /// drives it.
    static IDLE: RefCell<HashMap<usize, Vec<UpstreamConnection>>> = RefCell::default();
}

pub(crate) struct Upstream {
    index: usize,
    pub(crate) url: UpstreamUrl,
    /// The address as text, for messages and labels.
    pub(crate) name: String,
    tls: Option<TlsConnector>,
    pub(crate) queue: BatchQueue,
    /// Requests that were given to this upstream and are not finished.
    outstanding: AtomicUsize,
    availability: Mutex<Availability>,
    /// Notified when its health is to be checked now.
    pub(crate) recheck: Notify,
    pub(crate) metrics: UpstreamMetrics,
}

struct UpstreamConnection {
    sender: SendRequest<OutgoingBody>,
    idle_since: Instant,
}

/// Why a request has no response.
pub(crate) enum SendError {
    /// Nothing of it was sent.
    Unsent(Box<Request<OutgoingBody>>),
    /// The upstream may have processed it; this is the reason.
    Lost(String),
}

impl Upstream {
    pub(crate) fn new(index: usize, url: UpstreamUrl, tls: Option<TlsConnector>, queue: BatchQueue) -> Self {
        Self {
            index,
            name: url.to_string(),
            url,
            tls,
            queue,
            outstanding: AtomicUsize::new(0),
            availability: Mutex::default(),
            recheck: Notify::new(),
            metrics: UpstreamMetrics::default(),
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Relaxed)
    }

    pub(crate) fn availability(&self) -> Availability {
        *lock(&self.availability)
    }

    /// Returns whether that is news.
    pub(crate) fn set_reachable(&self, is_reachable: bool) -> bool {
        lock(&self.availability).set_reachable(is_reachable)
    }

    pub(crate) fn on_success(&self) {
        lock(&self.availability).on_success();
    }

    pub(crate) fn on_failure(&self) {
        self.metrics.failed();
        if lock(&self.availability).on_failure(Instant::now()).is_some() {
            self.metrics.ejected();
        }
    }

    /// Opens a connection.
    async fn connect(&self) -> io::Result<UpstreamConnection> {
        let connecting = async {
            let stream = TcpStream::connect((self.url.host.as_str(), self.url.port)).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = self.tls.as_ref().filter(|_| self.url.is_secure) else {
                return start(stream).await;
            };
            let name = ServerName::try_from(self.url.host.clone()).map_err(io::Error::other)?;
            start(tls.connect(name, stream).await?).await
        };
        tokio::time::timeout(CONNECT_TIMEOUT, connecting).await?
    }

    /// Sends a request on a connection of its own, without waiting for its turn or changing what is known about the
    /// upstream.
    pub(crate) async fn send_once(&self, request: Request<OutgoingBody>) -> io::Result<Response<Incoming>> {
        let mut connection = self.connect().await?;
        connection.sender.send_request(request).await.map_err(io::Error::other)
    }

    /// An idle connection of this thread.
    async fn idle_connection(&self) -> Option<UpstreamConnection> {
        loop {
            let mut connection = IDLE.with_borrow_mut(|idle| idle.get_mut(&self.index).and_then(Vec::pop))?;
            let is_fresh = connection.idle_since.elapsed() < MAX_IDLE && !connection.sender.is_closed();
            if is_fresh && connection.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, mut connection: UpstreamConnection) {
        if connection.sender.is_closed() {
            return;
        }
        connection.idle_since = Instant::now();
        IDLE.with_borrow_mut(|idle| {
            let idle = idle.entry(self.index).or_default();
            // The oldest is at the front.
            if idle.len() == MAX_IDLE_CONNECTIONS {
                idle.remove(0);
            }
            idle.push(connection);
        });
    }
}

async fn start(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> io::Result<UpstreamConnection> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(READ_BUFFER);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Errors are those of the request in progress.
    tokio::spawn(async move { _ = connection.await });
    Ok(UpstreamConnection { sender, idle_since: Instant::now() })
}

/// The right to send one request to an upstream, which counts as outstanding meanwhile.
pub(crate) struct Lease {
    pub(crate) upstream: Arc<Upstream>,
}

impl Lease {
    pub(crate) fn new(upstream: &Arc<Upstream>) -> Self {
        upstream.outstanding.fetch_add(1, Ordering::Relaxed);
        Self { upstream: Arc::clone(upstream) }
    }

    /// Sends a request and waits for the head of the answer. Connections that have died while they were idle are replaced.
    pub(crate) async fn send(
        self,
        mut request: Request<OutgoingBody>,
    ) -> Result<(Response<Incoming>, Exchange), SendError> {
        loop {
            let idle = self.upstream.idle_connection().await;
            let is_fresh = idle.is_none();
            let mut connection = match idle {
                Some(connection) => connection,
                None => match self.upstream.connect().await {
                    Ok(connection) => connection,
                    Err(_) => return Err(SendError::Unsent(Box::new(request))),
                },
            };
            match connection.sender.try_send_request(request).await {
                // Nothing asks for another protocol.
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(SendError::Lost("it switched to another protocol".to_owned()));
                }
                Ok(response) => return Ok((response, Exchange { lease: self, connection })),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_fresh => request = unsent,
                    Some(unsent) => return Err(SendError::Unsent(Box::new(unsent))),
                    None => return Err(SendError::Lost(error_chain(error.error()))),
                },
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.upstream.outstanding.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request whose answer has begun. Dropped before the answer is complete, it closes the connection.
pub(crate) struct Exchange {
    lease: Lease,
    connection: UpstreamConnection,
}

impl Exchange {
    /// Keeps the connection for another request.
    pub(crate) fn complete(self) {
        self.lease.upstream.keep(self.connection);
    }

    /// Reports that the answer ended before it was complete.
    pub(crate) fn fail(self) {
        self.lease.upstream.on_failure();
    }
}
