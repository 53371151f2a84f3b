//! Messages in the bytes of a body: each is a mark (compressed or not), a length and the message.

use bytes::{Buf, Bytes, BytesMut};

use super::encoding::{Encoding, too_long};
use super::status::{Code, Status};

const PREFIX: usize = 5;
/// Room made for a message on its word; for more, bytes must come.
const ON_TRUST: usize = 1 << 20;
/// Messages shorter than this are not compressed: it would cost more than it saves.
const WORTH_COMPRESSING: usize = 1 << 10;
/// Parts of a message up to this size are put together; larger ones are sent from where they are.
const WORTH_COPYING: usize = 16 << 10;

/// A message as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawMessage {
    pub(crate) compressed: bool,
    pub(crate) bytes: Bytes,
}

/// Finds messages in a body that comes in pieces. A message that lies in one piece is not copied.
pub(crate) struct Deframer {
    limit: usize,
    /// A piece that has not been looked at to its end; empty while `partial` is not.
    piece: Bytes,
    /// The beginning of a message that came in several pieces.
    partial: BytesMut,
}

impl Deframer {
    /// For messages of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, piece: Bytes::new(), partial: BytesMut::new() }
    }

    /// Takes the next piece of the body. [`Deframer::next`] must have said that it needs one.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if self.partial.is_empty() && self.piece.is_empty() {
            self.piece = piece;
            return;
        }
        if self.partial.is_empty() {
            self.partial.extend_from_slice(&self.piece);
            self.piece = Bytes::new();
        }
        if let Some((_, length)) = head(&self.partial) {
            let missing = (PREFIX + length).saturating_sub(self.partial.len());
            self.partial.reserve(missing.min(self.partial.len() + ON_TRUST));
        }
        self.partial.extend_from_slice(&piece);
    }

    /// The next message; none if more of the body is needed.
    pub(crate) fn next(&mut self) -> Result<Option<RawMessage>, Status> {
        let bytes: &[u8] = if self.partial.is_empty() { &self.piece } else { &self.partial };
        let Some((mark, length)) = head(bytes) else { return Ok(None) };
        if mark > 1 {
            return Err(Status::new(
                Code::Internal,
                format!("a message is marked with {mark}, neither 0 nor 1"),
            ));
        }
        if length > self.limit {
            return Err(too_long(self.limit));
        }
        let whole = PREFIX + length;
        if bytes.len() < whole {
            return Ok(None);
        }
        let mut message = if self.partial.is_empty() {
            self.piece.split_to(whole)
        } else {
            let message = self.partial.split_to(whole).freeze();
            // What follows it is looked at where it is.
            self.piece = std::mem::take(&mut self.partial).freeze();
            message
        };
        message.advance(PREFIX);
        Ok(Some(RawMessage { compressed: mark == 1, bytes: message }))
    }

    /// Bytes that came and are not part of a message yet.
    pub(crate) fn buffered(&self) -> usize {
        self.piece.len() + self.partial.len()
    }

    /// Whether the body may end here.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.buffered() == 0
    }
}

fn head(bytes: &[u8]) -> Option<(u8, usize)> {
    let (&[mark, ref length @ ..], _) = bytes.split_first_chunk::<PREFIX>()?;
    Some((mark, usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX)))
}

/// A message as pieces of a body, from its parts.
pub(crate) fn frame(parts: Vec<Bytes>, encoding: Encoding) -> Result<Vec<Bytes>, Status> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    let compressed = if length < WORTH_COMPRESSING { None } else { encoding.compress(&parts) };
    match compressed {
        Some(compressed) => pieces(1, compressed.len(), vec![compressed.into()]),
        None => pieces(0, length, parts),
    }
}

fn pieces(mark: u8, length: usize, parts: Vec<Bytes>) -> Result<Vec<Bytes>, Status> {
    let length = u32::try_from(length)
        .map_err(|_| Status::new(Code::Internal, "the answer is longer than a message can be"))?;
    let small: usize = parts.iter().map(Bytes::len).take_while(|&length| length <= WORTH_COPYING).sum();
    let mut open = BytesMut::with_capacity(PREFIX + small);
    open.extend_from_slice(&[mark]);
    open.extend_from_slice(&length.to_be_bytes());
    let mut pieces = Vec::new();
    for part in parts {
        if part.len() <= WORTH_COPYING {
            open.extend_from_slice(&part);
            continue;
        }
        if !open.is_empty() {
            pieces.push(open.split().freeze());
        }
        pieces.push(part);
    }
    if !open.is_empty() {
        pieces.push(open.freeze());
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        frame(vec![Bytes::copy_from_slice(message)], Encoding::Identity).unwrap().concat()
    }

    fn all(deframer: &mut Deframer) -> Vec<Bytes> {
        std::iter::from_fn(|| deframer.next().unwrap()).map(|message| message.bytes).collect()
    }

    #[test]
    fn messages_are_found_however_the_body_is_cut() {
        let messages = [&b"first"[..], b"", &[9; 300], b"last"];
        let body: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
        for cut in 1..=body.len() {
            let mut deframer = Deframer::new(1000);
            let mut found = Vec::new();
            for piece in body.chunks(cut) {
                assert_eq!(deframer.next(), Ok(None));
                deframer.push(Bytes::copy_from_slice(piece));
                found.extend(all(&mut deframer));
            }
            assert_eq!(found, messages, "cut into pieces of {cut}");
            assert!(deframer.is_between_messages());
        }
    }

    #[test]
    fn a_message_in_one_piece_is_not_copied() {
        let body = Bytes::from(framed(&[7; 100]));
        let mut deframer = Deframer::new(1000);
        deframer.push(body.clone());
        let message = deframer.next().unwrap().unwrap().bytes;
        assert_eq!(message.as_ptr(), body[5..].as_ptr());
    }

    #[test]
    fn a_body_that_ends_inside_a_message_is_told_from_a_whole_one() {
        for ending in [3, 5, 50] {
            let mut deframer = Deframer::new(1000);
            deframer.push(Bytes::copy_from_slice(&framed(&[7; 100])[..ending]));
            assert_eq!(deframer.next(), Ok(None));
            assert!(!deframer.is_between_messages());
        }
    }

    #[test]
    fn a_message_longer_than_the_limit_is_refused_before_it_comes() {
        let mut deframer = Deframer::new(99);
        deframer.push(Bytes::copy_from_slice(&framed(&[7; 100])[..5]));
        assert_eq!(deframer.next(), Err(too_long(99)));
    }

    #[test]
    fn room_for_a_long_message_is_made_as_it_comes() {
        let mut deframer = Deframer::new(usize::MAX);
        deframer.push(Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]));
        for _ in 0..3 {
            assert_eq!(deframer.next(), Ok(None));
            deframer.push(Bytes::from(vec![0; 1000]));
        }
        assert!(deframer.partial.capacity() < 4 * ON_TRUST);
    }

    #[test]
    fn a_mark_that_does_not_exist_is_refused() {
        let mut deframer = Deframer::new(99);
        deframer.push(Bytes::from_static(&[2, 0, 0, 0, 0]));
        assert_eq!(deframer.next().unwrap_err().code, Code::Internal);
    }

    #[test]
    fn long_messages_are_compressed_and_short_ones_are_not() {
        for (length, compressed) in [(WORTH_COMPRESSING - 1, false), (WORTH_COMPRESSING, true)] {
            let message = Bytes::from(vec![5; length]);
            let mut deframer = Deframer::new(length);
            for piece in frame(vec![message.clone()], Encoding::Gzip).unwrap() {
                deframer.push(piece);
            }
            let raw = deframer.next().unwrap().unwrap();
            assert_eq!(raw.compressed, compressed);
            let bytes = if compressed {
                Encoding::Gzip.decompress(&raw.bytes, length, |_| Ok(())).unwrap()
            } else {
                raw.bytes
            };
            assert_eq!(bytes, message);
        }
    }

    #[test]
    fn large_parts_are_sent_from_where_they_are() {
        let large = Bytes::from(vec![3; WORTH_COPYING + 1]);
        let parts = vec![
            Bytes::from_static(b"head"),
            large.clone(),
            Bytes::from_static(b"a"),
            Bytes::from_static(b"b"),
        ];
        let pieces = frame(parts.clone(), Encoding::Identity).unwrap();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1].as_ptr(), large.as_ptr());
        assert_eq!(pieces.concat()[5..], parts.concat());
    }
}
