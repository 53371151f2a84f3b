//! Reading a body: all of it, but no more than is taken, no slower than is borne, and counted as it arrives.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap};

use super::activity::Activity;
use super::answer::Encoding;
use crate::ServeError;
use crate::aside::INLINE;
use crate::inflate::{InflateError, inflate};
use crate::memory::{FLAT, Reservation};
use crate::pace::Pace;
use crate::service::Service;

/// What the buffers of a connection hold while a large body goes through them.
pub(crate) const BUFFERS: usize = 128 << 10;
/// A body is given room as it arrives, however long it claims to be.
const FIRST_ROOM: usize = 1 << 20;
/// Everything that is made from a small body takes at most so many times its size.
const FLAT_FACTOR: usize = 4;

/// A body and what it holds of the memory budget.
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) held: Reservation,
}

/// Reads a body whole.
pub(crate) async fn read(
    service: &Service,
    headers: &HeaderMap,
    body: Incoming,
    activity: &Activity,
) -> Result<ReadBody, ServeError> {
    let limit = service.limits().body;
    let claimed = usize::try_from(body.size_hint().lower()).ok().filter(|&claimed| claimed <= limit);
    let claimed = claimed.ok_or(ServeError::BodyTooLarge { limit })?;
    let encoding = encoding_of(headers)?;
    let mut held = Reservation::new(&service.budget);
    let bytes = collect(service, body, claimed, &mut held).await?;
    activity.body_read();
    match encoding {
        None => Ok(ReadBody { bytes, held }),
        Some(encoding) => unpack(service, encoding, bytes, held).await,
    }
}

fn encoding_of(headers: &HeaderMap) -> Result<Option<Encoding>, ServeError> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    let name = value.to_str().unwrap_or("?").trim();
    if name.is_empty() || name == "identity" {
        return Ok(None);
    }
    Encoding::from_name(name).map(Some).ok_or_else(|| {
        ServeError::UnsupportedMediaType(format!(
            "content-encoding `{name}` is not read; gzip, deflate and zstd are"
        ))
    })
}

async fn collect(
    service: &Service,
    mut body: Incoming,
    claimed: usize,
    held: &mut Reservation,
) -> Result<Bytes, ServeError> {
    let limit = service.limits().body;
    let mut pace = Pace::new(service.settings.client_timeout);
    let mut first: Option<Bytes> = None;
    let mut gathered = BytesMut::new();
    loop {
        let so_far = gathered.len() + first.as_ref().map_or(0, Bytes::len);
        let frame = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => pace
                .poll_stalled(context, so_far, || service.is_draining())
                .map(|()| Err(ServeError::BodyTooSlow)),
        });
        let frame = match frame.await? {
            None => break,
            Some(Err(error)) => {
                return Err(ServeError::BadRequest(format!("the body ended before its end: {error}")));
            }
            Some(Ok(frame)) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let total = so_far + data.len();
        if total > limit {
            return Err(ServeError::BodyTooLarge { limit });
        }
        if so_far == 0 {
            // The usual body comes in one piece and is used where it lies.
            let whole = total <= FLAT && body.is_end_stream();
            held.cover(if whole { total * FLAT_FACTOR } else { total })?;
            first = Some(data);
            continue;
        }
        held.cover(if total > FLAT { total + BUFFERS } else { total })?;
        if let Some(first) = first.take() {
            gathered.reserve(claimed.clamp(total, FIRST_ROOM.max(total)));
            gathered.extend_from_slice(&first);
        }
        gathered.extend_from_slice(&data);
    }
    let bytes = first.unwrap_or_else(|| gathered.freeze());
    if bytes.len() > FLAT {
        held.shrink(bytes.len());
    }
    Ok(bytes)
}

/// Unpacks a body: a short one here, one that grows long on a thread of its own.
async fn unpack(
    service: &Service,
    encoding: Encoding,
    packed: Bytes,
    mut held: Reservation,
) -> Result<ReadBody, ServeError> {
    let (packing, limit) = (encoding.packing(), service.limits().body);
    if packed.len() <= INLINE {
        match inflate(packing, &packed, limit.min(INLINE), |bytes| held.cover(bytes)) {
            Err(InflateError::TooLong) if limit > INLINE => {}
            outcome => {
                let bytes = Bytes::from(outcome.map_err(|error| refusal(error, limit))?);
                held.cover(bytes.len() * FLAT_FACTOR)?;
                return Ok(ReadBody { bytes, held });
            }
        }
    }
    let unpacking = move || {
        let bytes = inflate(packing, &packed, limit, |bytes| held.cover(bytes))
            .map_err(|error| refusal(error, limit))?;
        drop(packed);
        held.shrink(bytes.len());
        Ok(ReadBody { bytes: bytes.into(), held })
    };
    service.aside.run(unpacking).await
}

fn refusal(error: InflateError, limit: usize) -> ServeError {
    match error {
        InflateError::Broken(error) => {
            ServeError::BadRequest(format!("the compressed body cannot be read: {error}"))
        }
        InflateError::TooLong => ServeError::BodyTooLarge { limit },
        InflateError::Refused(error) => error,
    }
}
