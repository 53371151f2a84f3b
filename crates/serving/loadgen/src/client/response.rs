//! Parses HTTP/1.1 responses incrementally and cheaply.
//!
//! Of most responses only the status and the end matter. A head that arrives in one piece is parsed in place, and
//! bodies are skipped; only those to be verified are kept.

/// Longest head in bytes.
const HEAD_LIMIT: usize = 64 << 10;
/// Longest kept body in bytes.
const KEPT_LIMIT: usize = 64 << 20;
/// Maximum number of header lines.
const HEADER_LINES: usize = 96;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    #[error("the head of the response is not HTTP/1.1")]
    Head,
    #[error("the head of the response is longer than {HEAD_LIMIT} bytes")]
    HeadTooLong,
    #[error("the length of the response is not a number")]
    Length,
    #[error("the chunks of the response are malformed")]
    Chunk,
    #[error("bytes follow the end of the response")]
    Trailing,
    #[error("the connection was closed before the response was complete")]
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletedResponse {
    pub(crate) status: u16,
    /// Whether the connection must be closed.
    pub(crate) close: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponsePart {
    #[default]
    Head,
    /// This many bytes of the body.
    Sized(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    UntilClose,
}

/// Parses one response after the other.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    part: ResponsePart,
    status: u16,
    close: bool,
    /// A head or a line of the chunked form that is not complete yet.
    held: Vec<u8>,
    keep: bool,
    body: Vec<u8>,
    /// Bytes of the header section before a binary body, as the Open Inference Protocol's extension counts them.
    json_length: Option<usize>,
}

impl ResponseReader {
    /// Prepares for the next response; its body is kept if `keep`.
    pub(crate) fn begin(&mut self, keep: bool) {
        self.part = ResponsePart::Head;
        self.held.clear();
        self.body.clear();
        self.keep = keep;
        self.json_length = None;
    }

    /// The body, if it was kept.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Where the JSON of the response ends and its binary part begins, if the response says so.
    pub(crate) fn json_length(&self) -> Option<usize> {
        self.json_length
    }

    /// Whether any byte of the response has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.part != ResponsePart::Head || !self.held.is_empty()
    }

    /// Parses the next bytes; returns the response if it is complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<CompletedResponse>, BadResponse> {
        loop {
            let rest = match self.part {
                ResponsePart::Head => match self.head(bytes)? {
                    Some(rest) => rest,
                    None => return Ok(None),
                },
                ResponsePart::Sized(left) | ResponsePart::ChunkData(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let (data, rest) = bytes.split_at(here);
                    self.take(data);
                    let left = left - here as u64;
                    self.part = match self.part {
                        ResponsePart::ChunkData(_) if left == 0 => ResponsePart::ChunkEnd,
                        ResponsePart::ChunkData(_) => ResponsePart::ChunkData(left),
                        _ => ResponsePart::Sized(left),
                    };
                    rest
                }
                ResponsePart::UntilClose => {
                    self.take(bytes);
                    return Ok(None);
                }
                ResponsePart::ChunkSize | ResponsePart::ChunkEnd | ResponsePart::Trailer => {
                    match self.line(bytes)? {
                        Some((rest, true)) => return self.complete(rest),
                        Some((rest, false)) => rest,
                        None => return Ok(None),
                    }
                }
            };
            if self.part == ResponsePart::Sized(0) {
                return self.complete(rest);
            }
            if rest.is_empty() {
                return Ok(None);
            }
            bytes = rest;
        }
    }

    /// Handles the end of the connection; returns the response if that is how it ends.
    pub(crate) fn closed(&mut self) -> Result<CompletedResponse, BadResponse> {
        match self.part {
            ResponsePart::UntilClose => Ok(CompletedResponse { status: self.status, close: true }),
            _ => Err(BadResponse::Cut),
        }
    }

    fn complete(&mut self, rest: &[u8]) -> Result<Option<CompletedResponse>, BadResponse> {
        self.part = ResponsePart::Head;
        self.held.clear();
        if rest.is_empty() {
            Ok(Some(CompletedResponse { status: self.status, close: self.close }))
        } else {
            Err(BadResponse::Trailing)
        }
    }

    fn take(&mut self, data: &[u8]) {
        if self.keep && self.body.len() + data.len() <= KEPT_LIMIT {
            self.body.extend_from_slice(data);
        }
    }

    /// Parses the head; returns the remaining bytes, or `None` if it is incomplete.
    fn head<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<&'b [u8]>, BadResponse> {
        let mut held = std::mem::take(&mut self.held);
        let before = held.len();
        let taken = if before == 0 {
            self.read_head(bytes)?
        } else {
            held.extend_from_slice(bytes);
            self.read_head(&held)?
        };
        match taken {
            Some(_) => held.clear(),
            None if before == 0 => held.extend_from_slice(bytes),
            None => {}
        }
        self.held = held;
        Ok(taken.and_then(|taken| bytes.get(taken.saturating_sub(before)..)))
    }

    /// Length of the head, if it is complete.
    fn read_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, BadResponse> {
        let mut lines = [httparse::EMPTY_HEADER; HEADER_LINES];
        let mut head = httparse::Response::new(&mut lines);
        let taken = match head.parse(bytes) {
            Ok(httparse::Status::Complete(taken)) => taken,
            Ok(httparse::Status::Partial) if bytes.len() > HEAD_LIMIT => {
                return Err(BadResponse::HeadTooLong);
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(BadResponse::Head),
        };
        self.status = head.code.ok_or(BadResponse::Head)?;
        self.close = head.version == Some(0);
        let (mut length, mut chunked) = (None, false);
        for line in head.headers.iter() {
            if line.name.eq_ignore_ascii_case("content-length") {
                length = Some(number(line.value).ok_or(BadResponse::Length)?);
            } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = has_token(line.value, b"chunked");
            } else if line.name.eq_ignore_ascii_case("connection") {
                self.close =
                    (self.close && !has_token(line.value, b"keep-alive")) || has_token(line.value, b"close");
            } else if line.name.eq_ignore_ascii_case("inference-header-content-length") {
                self.json_length = number(line.value).and_then(|length| usize::try_from(length).ok());
            }
        }
        self.part = match (self.status, length) {
            // An interim response: the real one follows.
            (100..200, _) => ResponsePart::Head,
            (204 | 304, _) => ResponsePart::Sized(0),
            _ if chunked => ResponsePart::ChunkSize,
            (_, Some(length)) => ResponsePart::Sized(length),
            (_, None) => ResponsePart::UntilClose,
        };
        Ok(Some(taken))
    }

    /// Parses a line of the chunked encoding; returns the remaining bytes and whether the response ended, or `None` if
    /// the line is incomplete.
    fn line<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<(&'b [u8], bool)>, BadResponse> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.held.extend_from_slice(bytes);
            return if self.held.len() > HEAD_LIMIT { Err(BadResponse::Chunk) } else { Ok(None) };
        };
        let (line, rest) = bytes.split_at(end + 1);
        self.held.extend_from_slice(line);
        let line = self.held.trim_ascii();
        let ended = match self.part {
            ResponsePart::ChunkSize => {
                let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
                self.part = match size.ok_or(BadResponse::Chunk)? {
                    0 => ResponsePart::Trailer,
                    size => ResponsePart::ChunkData(size),
                };
                false
            }
            ResponsePart::ChunkEnd if line.is_empty() => {
                self.part = ResponsePart::ChunkSize;
                false
            }
            ResponsePart::Trailer => line.is_empty(),
            _ => return Err(BadResponse::Chunk),
        };
        self.held.clear();
        Ok(Some((rest, ended)))
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response in pieces of every size; they must agree.
    fn read(text: &str) -> Result<(Option<CompletedResponse>, Vec<u8>), BadResponse> {
        let mut results = (1..=text.len()).map(|size| {
            let mut reader = ResponseReader::default();
            reader.begin(true);
            let mut completed = None;
            for piece in text.as_bytes().chunks(size) {
                assert_eq!(completed, None, "complete before its end, in pieces of {size}");
                completed = reader.feed(piece)?;
            }
            Ok((completed, reader.body().to_vec()))
        });
        let first = results.next().unwrap();
        assert!(results.all(|result| result == first));
        first
    }

    fn done(status: u16, close: bool) -> CompletedResponse {
        CompletedResponse { status, close }
    }

    #[test]
    fn responses_end_at_their_length_and_respect_connection_close() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\nB\r\n, my\r\nworld\r\n0\r\nX: y\r\n\r\n";
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx";
        for (text, completed, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Some(done(200, false)), "hello"),
            ("HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n", Some(done(429, false)), ""),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some(done(204, false)), ""),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", None, "hell"),
            (chunked, Some(done(200, false)), "hello, my\r\nworld"),
            (interim, Some(done(201, false)), "x"),
            ("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", Some(done(200, true)), ""),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", Some(done(200, true)), ""),
            (
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
                Some(done(200, false)),
                "",
            ),
        ] {
            assert_eq!(read(text), Ok((completed, body.as_bytes().to_vec())), "{text}");
        }
    }

    #[test]
    fn a_response_without_a_length_ends_with_the_connection() {
        let mut reader = ResponseReader::default();
        reader.begin(true);
        assert_eq!(reader.feed(b"HTTP/1.0 200 OK\r\n\r\nall of it").unwrap(), None);
        assert_eq!(reader.closed().unwrap(), CompletedResponse { status: 200, close: true });
        assert_eq!(reader.body(), b"all of it");
        reader.begin(true);
        reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").unwrap();
        assert_eq!(reader.closed(), Err(BadResponse::Cut));
    }

    #[test]
    fn malformed_responses_are_rejected() {
        assert_eq!(read("SSH-2.0-OpenSSH\r\n"), Err(BadResponse::Head));
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), Err(BadResponse::Length));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(&format!("{chunked}x\r\n")), Err(BadResponse::Chunk));
        assert_eq!(read(&format!("{chunked}2\r\nabc\r\n")), Err(BadResponse::Chunk));
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab";
        assert_eq!(ResponseReader::default().feed(two), Err(BadResponse::Trailing));
        let endless = vec![b'a'; HEAD_LIMIT + 2];
        let mut reader = ResponseReader::default();
        reader.feed(b"HTTP/1.1 200 OK\r\nX: ").unwrap();
        assert_eq!(reader.feed(&endless), Err(BadResponse::HeadTooLong));
    }

    #[test]
    fn the_start_of_the_binary_part_is_parsed() {
        let mut reader = ResponseReader::default();
        reader.begin(true);
        let text = b"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}ab";
        assert!(reader.feed(text).unwrap().is_some());
        assert_eq!((reader.json_length(), &reader.body()[2..]), (Some(2), b"ab".as_slice()));
    }
}
