//! Connections to upstreams, and the idle ones that are used again.
//!
//! A connection is used again only if its last request was sent completely when the response began,
//! the response was read completely, and it was not an error that may have come before the body was
//! read. Otherwise the next request might wait behind an upload that is never read, so the
//! connection is closed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::requests::body::OutgoingBody;
use crate::upstreams::send_progress::{ObservedStream, SendProgress};

/// Age at which an idle connection is not used again. Servers close idle connections, gunicorn after two seconds, and
/// a request that is sent at that moment may or may not have been processed.
const MAX_IDLE: Duration = Duration::from_millis(1500);
/// Maximum number of idle connections to one upstream of a thread.
const MAX_IDLE_CONNECTIONS: usize = 64;
/// Longest time in which the task of an idle connection notices that it is idle.
const READY_TIMEOUT: Duration = Duration::from_millis(100);
/// Size of a connection's buffer.
const READ_BUFFER: usize = 128 << 10;

thread_local! {
    /// The idle connections of this thread by the index of their upstream. A connection stays on the thread whose runtime
    /// drives it.
    static IDLE: RefCell<HashMap<usize, Vec<UpstreamConnection>>> = RefCell::default();
}

/// A connection to an upstream. Dropped, it is closed, whatever it is doing.
pub(crate) struct UpstreamConnection {
    pub(crate) sender: SendRequest<OutgoingBody>,
    progress: Arc<SendProgress>,
    idle_since: Instant,
    task: JoinHandle<()>,
}

impl UpstreamConnection {
    pub(crate) async fn start(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<Self> {
        let progress = Arc::<SendProgress>::default();
        let stream = ObservedStream { stream, progress: Arc::clone(&progress) };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(READ_BUFFER);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Errors are those of the request in progress.
        let task = tokio::spawn(async move { _ = connection.await });
        Ok(Self { sender, progress, idle_since: Instant::now(), task })
    }

    /// Observes how much of a request is sent.
    pub(crate) fn begin(&self, request: &mut Request<OutgoingBody>) {
        request.body_mut().begin(&self.progress);
    }

    /// Whether the connection can have another request after an answer that begins now.
    pub(crate) fn is_reusable_after(&self, status: StatusCode) -> bool {
        let progress = &self.progress;
        let is_sent =
            progress.is_body_taken.load(Ordering::Relaxed) && !progress.has_unsent.load(Ordering::Relaxed);
        // What the system has taken of a request that is rejected may never be read.
        let is_rejected = status.is_client_error() || status.is_server_error();
        is_sent && !(is_rejected && progress.has_body.load(Ordering::Relaxed))
    }

    /// An idle connection of this thread to an upstream.
    pub(crate) async fn idle(upstream: usize) -> Option<Self> {
        loop {
            let mut connection = IDLE.with_borrow_mut(|idle| idle.get_mut(&upstream).and_then(Vec::pop))?;
            let is_fresh = connection.idle_since.elapsed() < MAX_IDLE && !connection.sender.is_closed();
            if is_fresh && connection.is_ready().await {
                return Some(connection);
            }
        }
    }

    async fn is_ready(&mut self) -> bool {
        if self.sender.is_ready() {
            return true;
        }
        matches!(tokio::time::timeout(READY_TIMEOUT, self.sender.ready()).await, Ok(Ok(())))
    }

    /// Keeps the connection for another request of this thread.
    pub(crate) fn keep(mut self, upstream: usize) {
        if self.sender.is_closed() {
            return;
        }
        self.idle_since = Instant::now();
        IDLE.with_borrow_mut(|idle| {
            let idle = idle.entry(upstream).or_default();
            // The oldest is at the front.
            if idle.len() == MAX_IDLE_CONNECTIONS {
                idle.remove(0);
            }
            idle.push(self);
        });
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        // Without this, a slow client's upload would go on after its answer.
        self.task.abort();
    }
}
