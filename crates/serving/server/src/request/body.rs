//! Reads request bodies with limits on size, speed and memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::header::HeaderMap;

use crate::connection::monitor::ConnectionActivity;
use crate::connection::stall::StallDetector;
use crate::limits::memory::{Reservation, SMALL_BODY};
use crate::limits::worker_pool::MAX_INLINE_PARSE;
use crate::request::compression::InflateError;
use crate::request::content_encoding::ContentEncoding;
use crate::request::rejection::HttpRejection;
use crate::resources::ServerResources;

/// Size of a connection's buffers while a large body passes through them.
pub(crate) const CONNECTION_BUFFERS: usize = 128 << 10;
/// Initial capacity for a body, however long it claims to be.
const INITIAL_CAPACITY: usize = 1 << 20;
/// Everything made from a small body takes at most this many times its size.
const SMALL_BODY_FACTOR: usize = 4;

/// A body and its memory reservation.
pub struct RequestBody {
    /// The body, decompressed.
    pub bytes: Bytes,
    pub held: Reservation,
}

impl ServerResources {
    pub async fn read_body(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        activity: &ConnectionActivity,
    ) -> Result<RequestBody, HttpRejection> {
        let limit = self.body_limit;
        let claimed = usize::try_from(body.size_hint().lower()).ok().filter(|&claimed| claimed <= limit);
        let claimed = claimed.ok_or(HttpRejection::BodyTooLarge { limit })?;
        let encoding = ContentEncoding::of_body(headers)?;
        let mut held = Reservation::new(&self.budget);
        let bytes = self.collect(body, claimed, &mut held).await?;
        activity.body_read();
        match encoding {
            None => Ok(RequestBody { bytes, held }),
            Some(encoding) => self.decompress(encoding, bytes, held).await,
        }
    }

    async fn collect(
        &self,
        mut body: Incoming,
        claimed: usize,
        held: &mut Reservation,
    ) -> Result<Bytes, HttpRejection> {
        let limit = self.body_limit;
        let mut stall = StallDetector::new(self.client_timeout);
        let mut first: Option<Bytes> = None;
        let mut gathered = BytesMut::new();
        loop {
            let so_far = gathered.len() + first.as_ref().map_or(0, Bytes::len);
            let frame = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(frame) => Poll::Ready(Ok(frame)),
                Poll::Pending => stall
                    .poll_stalled(context, so_far, || self.drain.has_begun())
                    .map(|()| Err(HttpRejection::BodyTooSlow)),
            });
            let frame = match frame.await? {
                None => break,
                Some(Err(error)) => {
                    return Err(HttpRejection::BadRequest(format!("the body is incomplete: {error}")));
                }
                Some(Ok(frame)) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            let total = so_far + data.len();
            if total > limit {
                return Err(HttpRejection::BodyTooLarge { limit });
            }
            if so_far == 0 {
                // The usual body arrives in one chunk and is used without a copy.
                let whole = total <= SMALL_BODY && body.is_end_stream();
                held.cover(if whole { total * SMALL_BODY_FACTOR } else { total })?;
                first = Some(data);
                continue;
            }
            held.cover(if total > SMALL_BODY { total + CONNECTION_BUFFERS } else { total })?;
            if let Some(first) = first.take() {
                gathered.reserve(claimed.clamp(total, INITIAL_CAPACITY.max(total)));
                gathered.extend_from_slice(&first);
            }
            gathered.extend_from_slice(&data);
        }
        let bytes = first.unwrap_or_else(|| gathered.freeze());
        if bytes.len() > SMALL_BODY {
            held.shrink(bytes.len());
        }
        Ok(bytes)
    }

    /// Decompresses a body: a short one here, one that grows long on a worker thread.
    async fn decompress(
        &self,
        encoding: ContentEncoding,
        compressed: Bytes,
        mut held: Reservation,
    ) -> Result<RequestBody, HttpRejection> {
        let limit = self.body_limit;
        if compressed.len() <= MAX_INLINE_PARSE {
            match encoding.inflate(&compressed, limit.min(MAX_INLINE_PARSE), |bytes| held.cover(bytes)) {
                Err(InflateError::TooLong) if limit > MAX_INLINE_PARSE => {}
                result => {
                    let bytes = Bytes::from(result.map_err(|error| inflate_error(error, limit))?);
                    held.cover(bytes.len() * SMALL_BODY_FACTOR)?;
                    return Ok(RequestBody { bytes, held });
                }
            }
        }
        let decompressing = move || {
            let bytes = encoding
                .inflate(&compressed, limit, |bytes| held.cover(bytes))
                .map_err(|error| inflate_error(error, limit))?;
            drop(compressed);
            held.shrink(bytes.len());
            Ok(RequestBody { bytes: bytes.into(), held })
        };
        self.workers.run(decompressing).await?
    }
}

fn inflate_error(error: InflateError, limit: usize) -> HttpRejection {
    match error {
        InflateError::Corrupt(error) => {
            HttpRejection::BadRequest(format!("cannot decompress the body: {error}"))
        }
        InflateError::TooLong => HttpRejection::BodyTooLarge { limit },
        InflateError::NoMemory(error) => error,
    }
}
