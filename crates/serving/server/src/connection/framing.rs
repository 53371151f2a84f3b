//! Finds requests that state the length of their body twice.
//!
//! Programs disagree about a request with both `Content-Length` and `Transfer-Encoding`, which lets
//! an attacker hide a second request from a proxy (RFC 9112, 6.1 and 11.2). hyper keeps the second
//! header, drops the first and closes the connection; the handler cannot see that there were two.
//! So the heads are scanned on their way to hyper. The scanner follows where heads begin only for
//! that: the meaning of a request is decided by hyper alone.

use cudock_base::bug::Parts;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::header::{self, HeaderName};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::monitor::ConnectionActivity;

/// Bytes of a line that are kept until the rest arrives. The headers that matter are shorter.
const MAX_LINE: usize = 256;

/// A stream whose incoming heads are scanned.
pub(crate) struct ScannedStream<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
    scanner: FramingScanner,
}

impl<S> ScannedStream<S> {
    pub(crate) fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity, scanner: FramingScanner::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ScannedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Some(head) = this.scanner.scan(buffer.filled().part(before..)) {
            this.activity.set_two_lengths(head);
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ScannedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// Follows the requests of a connection.
#[derive(Debug, Default)]
struct FramingScanner {
    state: State,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// Number of complete heads.
    heads: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    RequestLine,
    Fields(BodyFields),
    /// This many bytes of a body are left.
    Body(u64),
    ChunkSize,
    /// This many bytes of a chunk are left.
    Chunk(u64),
    ChunkEnd,
    Trailers,
    /// A head stated two lengths. hyper closes the connection after it.
    TwoLengths,
    /// HTTP/2, or what hyper does not accept.
    Other,
}

/// The fields of a head that determine the length of its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BodyFields {
    length: Option<u64>,
    is_encoded: bool,
}

impl FramingScanner {
    /// Scans the next bytes. Returns the number of the head that states two lengths, counted from 1, if it ends in them.
    fn scan(&mut self, mut bytes: &[u8]) -> Option<u32> {
        while !bytes.is_empty() {
            match self.state {
                State::TwoLengths | State::Other => return None,
                State::Body(left) => {
                    let left = take(&mut bytes, left);
                    self.state = if left == 0 { State::RequestLine } else { State::Body(left) };
                }
                State::Chunk(left) => {
                    let left = take(&mut bytes, left);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                }
                State::RequestLine
                | State::Fields(_)
                | State::ChunkSize
                | State::ChunkEnd
                | State::Trailers => {
                    let (line, rest) = bytes.split_at_checked(memchr(b'\n', bytes).unwrap_or(bytes.len()))?;
                    let Some((_, rest)) = rest.split_first() else {
                        self.keep(line);
                        return None;
                    };
                    bytes = rest;
                    if self.end_line(line) {
                        return Some(self.heads);
                    }
                }
            }
        }
        None
    }

    /// Goes on after a line, whose beginning may have been kept. Returns whether it ended a head with two lengths.
    fn end_line(&mut self, line: &[u8]) -> bool {
        let was_head = matches!(self.state, State::Fields(_));
        if self.line.is_empty() {
            self.state = self.state.after(line);
        } else {
            self.keep(line);
            self.state = self.state.after(&self.line);
            self.line.clear();
        }
        if was_head && !matches!(self.state, State::Fields(_)) {
            self.heads = self.heads.wrapping_add(1);
        }
        self.state == State::TwoLengths
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len()).min(bytes.len());
        self.line.extend_from_slice(bytes.part(..room));
    }
}

/// Removes up to `wanted` bytes, and returns how many are missing.
fn take(bytes: &mut &[u8], wanted: u64) -> u64 {
    let taken = usize::try_from(wanted).map_or(bytes.len(), |wanted| wanted.min(bytes.len()));
    *bytes = bytes.part(taken..);
    wanted - taken as u64
}

impl State {
    /// The state after a line.
    fn after(self, line: &[u8]) -> Self {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self {
            // Empty lines before a request are skipped.
            Self::RequestLine if line.is_empty() => self,
            Self::RequestLine if line == b"PRI * HTTP/2.0" => Self::Other,
            Self::RequestLine => Self::Fields(BodyFields::default()),
            Self::Fields(fields) if line.is_empty() => fields.body(),
            Self::Fields(fields) => Self::Fields(fields.with(line)),
            Self::ChunkSize => chunk_size(line)
                .map_or(Self::Other, |size| if size == 0 { Self::Trailers } else { Self::Chunk(size) }),
            Self::ChunkEnd if line.is_empty() => Self::ChunkSize,
            Self::Trailers if line.is_empty() => Self::RequestLine,
            Self::Trailers => self,
            _ => Self::Other,
        }
    }
}

impl BodyFields {
    fn with(self, line: &[u8]) -> Self {
        let Some((name, value)) = memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) else {
            return self;
        };
        let is = |known: HeaderName| name.eq_ignore_ascii_case(known.as_str().as_bytes());
        if is(header::CONTENT_LENGTH) {
            let digits = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
            let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            // hyper rejects what is not a number, and nothing follows it.
            return Self { length: Some(length.unwrap_or(u64::MAX)), ..self };
        }
        Self { is_encoded: self.is_encoded || is(header::TRANSFER_ENCODING), ..self }
    }

    /// The state after the head.
    fn body(self) -> State {
        match (self.length, self.is_encoded) {
            (Some(_), true) => State::TwoLengths,
            (None, true) => State::ChunkSize,
            (None | Some(0), false) => State::RequestLine,
            (Some(length), false) => State::Body(length),
        }
    }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    u64::from_str_radix(std::str::from_utf8(line.get(..digits)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of heads, and the one with two lengths, when the bytes arrive in pieces of this size.
    fn scan(text: &str, piece: usize) -> (u32, Option<u32>) {
        let mut scanner = FramingScanner::default();
        let conflicts: Vec<u32> =
            text.as_bytes().chunks(piece).filter_map(|piece| scanner.scan(piece)).collect();
        assert!(conflicts.len() <= 1, "{text:?}");
        (scanner.heads, conflicts.first().copied())
    }

    #[test]
    fn heads_are_found_between_bodies_of_any_form_however_they_arrive() {
        let plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let sized = "POST / HTTP/1.1\r\nContent-Length:  26 \r\n\r\n\r\nTransfer-Encoding: x\r\n\r\n\r\n";
        let bare = "POST / HTTP/1.1\ncontent-length:3\n\nabc";
        let chunked = "POST / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\n\r\n\
                       1a;a=b\r\nContent-Length: 5\r\n\r\n12345\r\n0\r\nContent-Length: 5\r\n\r\n";
        let both = "POST / HTTP/1.1\r\ntransfer-encoding:chunked\r\nA: b\r\ncontent-length: x\r\n\r\n";
        let other_order = "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        for piece in (1..80).chain([10_000]) {
            for (parts, expected) in [
                (vec![plain, plain], (2, None)),
                (vec![sized, plain, bare, chunked, "\r\n\n", plain], (5, None)),
                (vec![plain, chunked, sized, both, plain], (4, Some(4))),
                (vec![bare, other_order, both], (2, Some(2))),
                (vec!["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", both], (0, None)),
                (vec!["POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", both], (1, None)),
            ] {
                assert_eq!(scan(&parts.concat(), piece), expected, "{parts:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut scanner = FramingScanner::default();
        for _ in 0..1000 {
            assert_eq!(scanner.scan(&[b'a'; 1000]), None);
        }
        assert_eq!(scanner.line.len(), MAX_LINE);
    }
}
