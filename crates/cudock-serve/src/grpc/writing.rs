//! Writing messages.

use bytes::Bytes;

use super::encoding::Encoding;
use super::frames::frame;
use super::status::Status;
use crate::aside::{Aside, INLINE};
use crate::memory::{FLAT, Reservation};

/// A message as pieces of a body, from its parts; a long one is compressed on a thread of its own.
pub(crate) async fn pack(aside: &Aside, parts: Vec<Bytes>, encoding: Encoding) -> Result<Vec<Bytes>, Status> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    if encoding == Encoding::Identity || length <= INLINE {
        return frame(parts, encoding);
    }
    aside.run(move || Ok(frame(parts, encoding))).await?
}

/// The pieces of an answer, counted until its client has taken them if they are large.
pub(crate) fn counted(mut pieces: Vec<Bytes>, mut held: Reservation) -> Result<Vec<Bytes>, Status> {
    let total: usize = pieces.iter().map(Bytes::len).sum();
    if total > FLAT {
        held.resize(total)?;
        if let Some(largest) = pieces.iter_mut().max_by_key(|piece| piece.len()) {
            *largest = held.attach(std::mem::take(largest));
        }
    }
    Ok(pieces)
}
