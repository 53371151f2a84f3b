//! Resources shared by the requests of a server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::response::Parts;

use crate::connection::drain::DrainSignal;
use crate::limits::memory::{Budget, Reservation};
use crate::limits::worker_pool::{MAX_INLINE_PARSE, WorkerPool};
use crate::request::content_encoding::ContentEncoding;
use crate::settings::ServerSettings;

/// Shorter bodies are not worth compressing.
const WORTH_COMPRESSING: usize = 1024;

/// Resources shared by the requests of a server: memory, worker threads, limits, and whether the
/// server shuts down.
pub struct ServerResources {
    pub budget: Arc<Budget>,
    /// Threads for jobs that would block an I/O thread.
    pub workers: WorkerPool,
    pub drain: DrainSignal,
    pub(crate) body_limit: usize,
    pub(crate) client_timeout: Duration,
}

impl ServerResources {
    /// Creates the resources of a server that accepts bodies of at most `body_limit` bytes, after decompression.
    pub fn new(settings: &ServerSettings, body_limit: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            budget: Arc::new(Budget::new(settings.memory)),
            workers: WorkerPool::new((processors / 2).clamp(1, 8)),
            drain: DrainSignal::default(),
            body_limit,
            client_timeout: settings.client_timeout,
        }
    }

    /// Compresses the body of a response if its client accepts that and it is long enough. Without memory for that, it
    /// is returned as it is.
    pub async fn compress(&self, head: &mut Parts, body: Bytes, accepted: &HeaderValue) -> Bytes {
        if body.len() < WORTH_COMPRESSING {
            return body;
        }
        let Some(encoding) = accepted.to_str().ok().and_then(ContentEncoding::preferred) else { return body };
        let compressed = if body.len() <= MAX_INLINE_PARSE {
            encoding.compress([&body[..]]).ok().map(Bytes::from)
        } else {
            let (whole, mut reservation) = (body.clone(), Reservation::new(&self.budget));
            let compressing = move || {
                reservation.cover(whole.len() / 2).ok()?;
                let compressed = encoding.compress([&whole[..]]).ok()?;
                drop(whole);
                reservation.resize(compressed.len()).ok()?;
                Some(reservation.attach(compressed.into()))
            };
            self.workers.run(compressing).await.ok().flatten()
        };
        let Some(compressed) = compressed else { return body };
        head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        compressed
    }
}
