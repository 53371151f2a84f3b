//! Encodes response messages.

use bytes::Bytes;
use cudock_server::{MAX_INLINE_PARSE, Reservation, SMALL_BODY, WorkerPool};

use crate::grpc::encoding::GrpcEncoding;
use crate::grpc::frames::frame;
use crate::grpc::status::GrpcStatus;

/// Frames a message; a long one is compressed on a worker thread.
pub(crate) async fn encode_message(
    workers: &WorkerPool,
    parts: Vec<Bytes>,
    encoding: GrpcEncoding,
) -> Result<Vec<Bytes>, GrpcStatus> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    if encoding == GrpcEncoding::Identity || length <= MAX_INLINE_PARSE {
        return frame(parts, encoding);
    }
    workers.run(move || frame(parts, encoding)).await?
}

/// Keeps the reservation of a large response until its client has read it. Tensors that were not compressed have their
/// own.
pub(crate) fn hold_until_sent(
    mut pieces: Vec<Bytes>,
    mut held: Reservation,
    encoding: GrpcEncoding,
) -> Result<Vec<Bytes>, GrpcStatus> {
    let total: usize = pieces.iter().map(Bytes::len).sum();
    if total > SMALL_BODY && encoding != GrpcEncoding::Identity {
        held.resize(total)?;
        if let Some(largest) = pieces.iter_mut().max_by_key(|piece| piece.len()) {
            *largest = held.attach(std::mem::take(largest));
        }
    }
    Ok(pieces)
}
