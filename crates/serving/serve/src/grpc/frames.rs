//! Framing of messages: a compression flag, a length and the message.

use bytes::{Buf, Bytes, BytesMut};

use super::encoding::{GrpcEncoding, too_long};
use super::status::GrpcStatus;

const PREFIX: usize = 5;
/// Largest buffer that is reserved because of a claimed length; beyond that, bytes must arrive.
const MAX_UPFRONT_RESERVE: usize = 1 << 20;
/// Shorter messages are not worth compressing.
const WORTH_COMPRESSING: usize = 1 << 10;
/// Parts up to this size are copied together; larger ones are sent without a copy.
const WORTH_COPYING: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawMessage {
    pub(crate) compressed: bool,
    pub(crate) bytes: Bytes,
}

/// Extracts messages from the chunks of a body. A message within one chunk is not copied.
pub(crate) struct Deframer {
    limit: usize,
    /// A chunk that is not consumed completely; empty while `partial` is not.
    chunk: Bytes,
    /// The start of a message that arrives in several chunks.
    partial: BytesMut,
}

impl Deframer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, chunk: Bytes::new(), partial: BytesMut::new() }
    }

    /// Adds the next chunk of the body, after [`Deframer::next`] has returned `None`.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        if self.partial.is_empty() && self.chunk.is_empty() {
            self.chunk = chunk;
            return;
        }
        if self.partial.is_empty() {
            self.partial.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
        }
        if let Some((_, length)) = head(&self.partial) {
            let missing = (PREFIX + length).saturating_sub(self.partial.len());
            self.partial.reserve(missing.min(self.partial.len() + MAX_UPFRONT_RESERVE));
        }
        self.partial.extend_from_slice(&chunk);
    }

    /// The next message; `None` if more of the body is needed.
    pub(crate) fn next(&mut self) -> Result<Option<RawMessage>, GrpcStatus> {
        let bytes: &[u8] = if self.partial.is_empty() { &self.chunk } else { &self.partial };
        let Some((flag, length)) = head(bytes) else { return Ok(None) };
        if flag > 1 {
            return Err(GrpcStatus::internal(format!("invalid compression flag {flag}: expected 0 or 1")));
        }
        if length > self.limit {
            return Err(too_long(self.limit));
        }
        let whole = PREFIX + length;
        if bytes.len() < whole {
            return Ok(None);
        }
        let mut message = if self.partial.is_empty() {
            self.chunk.split_to(whole)
        } else {
            let message = self.partial.split_to(whole).freeze();
            // The rest is parsed in place.
            self.chunk = std::mem::take(&mut self.partial).freeze();
            message
        };
        message.advance(PREFIX);
        Ok(Some(RawMessage { compressed: flag == 1, bytes: message }))
    }

    /// Number of received bytes that are not part of a message yet.
    pub(crate) fn buffered(&self) -> usize {
        self.chunk.len() + self.partial.len()
    }

    /// Whether the body may end here.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.buffered() == 0
    }
}

fn head(bytes: &[u8]) -> Option<(u8, usize)> {
    let (&[flag, ref length @ ..], _) = bytes.split_first_chunk::<PREFIX>()?;
    Some((flag, usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX)))
}

/// Frames a message, given as parts.
pub(crate) fn frame(parts: Vec<Bytes>, encoding: GrpcEncoding) -> Result<Vec<Bytes>, GrpcStatus> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    let compressed = if length < WORTH_COMPRESSING { None } else { encoding.compress(&parts) };
    match compressed {
        Some(compressed) => chunks(1, compressed.len(), vec![compressed.into()]),
        None => chunks(0, length, parts),
    }
}

fn chunks(flag: u8, length: usize, parts: Vec<Bytes>) -> Result<Vec<Bytes>, GrpcStatus> {
    let length =
        u32::try_from(length).map_err(|_| GrpcStatus::internal("the response is too long for a message"))?;
    let small: usize = parts.iter().map(Bytes::len).take_while(|&length| length <= WORTH_COPYING).sum();
    let mut open = BytesMut::with_capacity(PREFIX + small);
    open.extend_from_slice(&[flag]);
    open.extend_from_slice(&length.to_be_bytes());
    let mut chunks = Vec::new();
    for part in parts {
        if part.len() <= WORTH_COPYING {
            open.extend_from_slice(&part);
            continue;
        }
        if !open.is_empty() {
            chunks.push(open.split().freeze());
        }
        chunks.push(part);
    }
    if !open.is_empty() {
        chunks.push(open.freeze());
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::super::status::GrpcCode;
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        frame(vec![Bytes::copy_from_slice(message)], GrpcEncoding::Identity).unwrap().concat()
    }

    fn all(deframer: &mut Deframer) -> Vec<Bytes> {
        std::iter::from_fn(|| deframer.next().unwrap()).map(|message| message.bytes).collect()
    }

    #[test]
    fn messages_are_found_for_any_chunk_size() {
        let messages = [&b"first"[..], b"", &[9; 300], b"last"];
        let body: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
        for cut in 1..=body.len() {
            let mut deframer = Deframer::new(1000);
            let mut found = Vec::new();
            for chunk in body.chunks(cut) {
                assert_eq!(deframer.next(), Ok(None));
                deframer.push(Bytes::copy_from_slice(chunk));
                found.extend(all(&mut deframer));
            }
            assert_eq!(found, messages, "cut into chunks of {cut}");
            assert!(deframer.is_between_messages());
        }
    }

    #[test]
    fn a_message_in_one_chunk_is_not_copied() {
        let body = Bytes::from(framed(&[7; 100]));
        let mut deframer = Deframer::new(1000);
        deframer.push(body.clone());
        let message = deframer.next().unwrap().unwrap().bytes;
        assert_eq!(message.as_ptr(), body[5..].as_ptr());
    }

    #[test]
    fn a_body_that_ends_inside_a_message_is_detected() {
        for ending in [3, 5, 50] {
            let mut deframer = Deframer::new(1000);
            deframer.push(Bytes::copy_from_slice(&framed(&[7; 100])[..ending]));
            assert_eq!(deframer.next(), Ok(None));
            assert!(!deframer.is_between_messages());
        }
    }

    #[test]
    fn the_buffer_of_a_long_message_grows_as_it_arrives() {
        let mut deframer = Deframer::new(usize::MAX);
        deframer.push(Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]));
        for _ in 0..3 {
            assert_eq!(deframer.next(), Ok(None));
            deframer.push(Bytes::from(vec![0; 1000]));
        }
        assert!(deframer.partial.capacity() < 4 * MAX_UPFRONT_RESERVE);
    }

    #[test]
    fn a_long_message_and_an_invalid_flag_are_rejected_before_the_message_arrives() {
        for (head, code) in
            [([0, 0, 0, 0, 100], GrpcCode::ResourceExhausted), ([2, 0, 0, 0, 0], GrpcCode::Internal)]
        {
            let mut deframer = Deframer::new(99);
            deframer.push(Bytes::copy_from_slice(&head));
            assert_eq!(deframer.next().unwrap_err().code, code);
        }
    }

    #[test]
    fn long_messages_are_compressed_and_short_ones_are_not() {
        for (length, compressed) in [(WORTH_COMPRESSING - 1, false), (WORTH_COMPRESSING, true)] {
            let message = Bytes::from(vec![5; length]);
            let mut deframer = Deframer::new(length);
            for chunk in frame(vec![message.clone()], GrpcEncoding::Gzip).unwrap() {
                deframer.push(chunk);
            }
            let raw = deframer.next().unwrap().unwrap();
            assert_eq!(raw.compressed, compressed);
            let bytes = if compressed {
                GrpcEncoding::Gzip.decompress(&raw.bytes, length, |_| Ok(())).unwrap()
            } else {
                raw.bytes
            };
            assert_eq!(bytes, message);
        }
    }

    #[test]
    fn large_parts_are_sent_without_a_copy() {
        let large = Bytes::from(vec![3; WORTH_COPYING + 1]);
        let [head, a, b] = [&b"head"[..], b"a", b"b"].map(Bytes::from_static);
        let parts = vec![head, large.clone(), a, b];
        let chunks = frame(parts.clone(), GrpcEncoding::Identity).unwrap();
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[1].as_ptr(), large.as_ptr());
        assert_eq!(chunks.concat()[5..], parts.concat());
    }
}
