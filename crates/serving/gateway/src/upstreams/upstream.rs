//! One upstream: its connections, its queue, and whether it gets requests.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudock_base::lock;
use cudock_base::text::error_chain;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use crate::batching::forms::AnswerForms;
use crate::batching::queue::BatchQueue;
use crate::error::GatewayError;
use crate::metrics::UpstreamMetrics;
use crate::requests::body::OutgoingBody;
use crate::upstreams::availability::Availability;
use crate::upstreams::connection::UpstreamConnection;
use crate::upstreams::url::UpstreamUrl;

/// Longest time to connect, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Upstream {
    index: usize,
    pub(crate) url: UpstreamUrl,
    /// The address as text, for messages and labels.
    pub(crate) name: String,
    tls: Option<TlsConnector>,
    pub(crate) queue: BatchQueue,
    /// Which answers can be split.
    pub(crate) forms: AnswerForms,
    /// Requests that were given to this upstream and are not finished.
    outstanding: AtomicUsize,
    availability: Mutex<Availability>,
    start: Instant,
    /// When anything of an answer last arrived, in milliseconds from `start`.
    heard: AtomicU64,
    /// Notified when its health is to be checked now.
    pub(crate) recheck: Notify,
    pub(crate) metrics: UpstreamMetrics,
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
            forms: AnswerForms::default(),
            outstanding: AtomicUsize::new(0),
            availability: Mutex::default(),
            start: Instant::now(),
            heard: AtomicU64::new(0),
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

    /// Returns whether that is news. Nothing waits in the queue of an upstream that cannot be reached.
    pub(crate) fn set_reachable(&self, is_reachable: bool) -> bool {
        // Locked meanwhile, so that a reachable upstream never has a closed queue.
        let mut availability = lock(&self.availability);
        let is_news = availability.set_reachable(is_reachable);
        match (is_news, is_reachable) {
            (true, true) => {
                self.queue.open();
                self.forms.clear();
            }
            (true, false) => self.queue.close(),
            (false, _) => {}
        }
        is_news
    }

    /// Records that something of an answer has arrived.
    pub(crate) fn on_heard(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    /// The time since anything of an answer arrived.
    pub(crate) fn silence(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.heard.load(Ordering::Relaxed)))
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

    /// The error of a request that the upstream did not answer.
    pub(crate) fn failure(&self, reason: String) -> GatewayError {
        GatewayError::UpstreamFailed { upstream: self.name.clone(), reason }
    }

    /// Opens a connection.
    async fn connect(&self) -> io::Result<UpstreamConnection> {
        let connecting = async {
            let stream = TcpStream::connect((self.url.host.as_str(), self.url.port)).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = self.tls.as_ref().filter(|_| self.url.is_secure) else {
                return UpstreamConnection::start(stream).await;
            };
            let name = ServerName::try_from(self.url.host.clone()).map_err(io::Error::other)?;
            UpstreamConnection::start(tls.connect(name, stream).await?).await
        };
        tokio::time::timeout(CONNECT_TIMEOUT, connecting).await?
    }

    /// Sends a request on a connection of its own, without waiting for its turn, and returns the status of the answer.
    pub(crate) async fn send_once(&self, request: Request<OutgoingBody>) -> io::Result<StatusCode> {
        let mut connection = self.connect().await?;
        let response = connection.sender.send_request(request).await.map_err(io::Error::other)?;
        self.on_heard();
        Ok(response.status())
    }
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
            let idle = UpstreamConnection::idle(self.upstream.index).await;
            let is_fresh = idle.is_none();
            let mut connection = match idle {
                Some(connection) => connection,
                None => match self.upstream.connect().await {
                    Ok(connection) => connection,
                    Err(_) => return Err(SendError::Unsent(Box::new(request))),
                },
            };
            connection.begin(&mut request);
            match connection.sender.try_send_request(request).await {
                // Forwarded requests never request another protocol.
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(SendError::Lost("it switched to another protocol".to_owned()));
                }
                Ok(response) => {
                    self.upstream.on_heard();
                    let is_reusable = connection.is_reusable_after(response.status());
                    return Ok((response, Exchange { lease: self, connection, is_reusable }));
                }
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
    /// Whether the connection can have another request after this answer. That is decided when the answer begins: an
    /// upstream that answers before it has a whole request may not read the rest of it, nor another one behind it.
    is_reusable: bool,
}

impl Exchange {
    /// Records that a part of the answer has arrived.
    pub(crate) fn on_heard(&self) {
        self.lease.upstream.on_heard();
    }

    /// Keeps the connection for another request, if it can have one.
    pub(crate) fn complete(self) {
        if self.is_reusable {
            self.connection.keep(self.lease.upstream.index);
        }
    }

    /// Reports that the answer ended before it was complete.
    pub(crate) fn fail(self) {
        self.lease.upstream.on_failure();
    }
}
