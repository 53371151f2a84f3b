//! Reads HTTP/1.1 answers as they come, at little cost.
//!
//! Of most answers only the status and the end matter. A head that comes in one piece is read where it lies, and
//! bodies are stepped over; only those to be compared are kept.

/// Most bytes of a head.
const HEAD_LIMIT: usize = 64 << 10;
/// Most bytes of a body that are kept.
const KEPT_LIMIT: usize = 64 << 20;
/// Most header lines.
const HEADER_LINES: usize = 96;

/// An answer that is not HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    /// The head cannot be read.
    #[error("the head of the answer is not HTTP/1.1")]
    Head,
    /// The head does not end.
    #[error("the head of the answer is longer than {HEAD_LIMIT} bytes")]
    HeadTooLong,
    /// A length that is none.
    #[error("the length of the answer is not a number")]
    Length,
    /// Chunks that are none.
    #[error("the chunks of the answer are malformed")]
    Chunk,
    /// Bytes behind the end of the answer, which nobody asked for.
    #[error("bytes follow the end of the answer")]
    Trailing,
    /// The connection was closed inside the answer.
    #[error("the connection was closed before the answer was complete")]
    Cut,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Its status.
    pub(crate) status: u16,
    /// Whether the connection is of no more use.
    pub(crate) close: bool,
}

/// What of the answer is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// So many bytes of the body.
    Sized(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    UntilClose,
}

/// Reads one answer after the other.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    part: Part,
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
    pub(crate) fn new() -> Self {
        Self {
            part: Part::Head,
            status: 0,
            close: false,
            held: Vec::new(),
            keep: false,
            body: Vec::new(),
            json_length: None,
        }
    }

    /// Makes ready for the next answer; its body is kept if `keep`.
    pub(crate) fn begin(&mut self, keep: bool) {
        self.part = Part::Head;
        self.held.clear();
        self.body.clear();
        self.keep = keep;
        self.json_length = None;
    }

    /// The body, if it was to be kept.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Where the JSON of the answer ends and its binary part begins, if the answer says so.
    pub(crate) fn json_length(&self) -> Option<usize> {
        self.json_length
    }

    /// Whether any byte of the answer has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.part != Part::Head || !self.held.is_empty()
    }

    /// Takes the next bytes of the connection; tells if the answer is complete with them.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<Answered>, BadResponse> {
        loop {
            let rest = match self.part {
                Part::Head => match self.head(bytes)? {
                    Some(rest) => rest,
                    None => return Ok(None),
                },
                Part::Sized(left) | Part::ChunkData(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let (data, rest) = bytes.split_at(here);
                    self.take(data);
                    let left = left - here as u64;
                    self.part = match self.part {
                        Part::ChunkData(_) if left == 0 => Part::ChunkEnd,
                        Part::ChunkData(_) => Part::ChunkData(left),
                        _ => Part::Sized(left),
                    };
                    rest
                }
                Part::UntilClose => {
                    self.take(bytes);
                    return Ok(None);
                }
                Part::ChunkSize | Part::ChunkEnd | Part::Trailer => match self.line(bytes)? {
                    Some((rest, true)) => return self.complete(rest),
                    Some((rest, false)) => rest,
                    None => return Ok(None),
                },
            };
            if self.part == Part::Sized(0) {
                return self.complete(rest);
            }
            if rest.is_empty() {
                return Ok(None);
            }
            bytes = rest;
        }
    }

    /// The connection was closed; tells if that is how the answer ends.
    pub(crate) fn closed(&mut self) -> Result<Answered, BadResponse> {
        match self.part {
            Part::UntilClose => Ok(Answered { status: self.status, close: true }),
            _ => Err(BadResponse::Cut),
        }
    }

    fn complete(&mut self, rest: &[u8]) -> Result<Option<Answered>, BadResponse> {
        self.part = Part::Head;
        self.held.clear();
        if rest.is_empty() {
            Ok(Some(Answered { status: self.status, close: self.close }))
        } else {
            Err(BadResponse::Trailing)
        }
    }

    fn take(&mut self, data: &[u8]) {
        if self.keep && self.body.len() + data.len() <= KEPT_LIMIT {
            self.body.extend_from_slice(data);
        }
    }

    /// Reads the head; what is left of the bytes, or nothing if it is not complete.
    fn head<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<&'b [u8]>, BadResponse> {
        let taken = if self.held.is_empty() {
            let Some(taken) = self.read_head(bytes)? else {
                self.held.extend_from_slice(bytes);
                return Ok(None);
            };
            taken
        } else {
            let before = self.held.len();
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            let Some(taken) = self.read_head(&held)? else {
                self.held = held;
                return Ok(None);
            };
            held.clear();
            self.held = held;
            taken.saturating_sub(before)
        };
        Ok(bytes.get(taken..))
    }

    /// Bytes of the head, if it is complete.
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
            // An interim answer: the real one follows.
            (100..200, _) => Part::Head,
            (204 | 304, _) => Part::Sized(0),
            _ if chunked => Part::ChunkSize,
            (_, Some(length)) => Part::Sized(length),
            (_, None) => Part::UntilClose,
        };
        Ok(Some(taken))
    }

    /// Reads a line of the chunked form; what is left of the bytes and whether the answer ended with the line, or
    /// nothing if the line is not complete.
    fn line<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<(&'b [u8], bool)>, BadResponse> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.held.extend_from_slice(bytes);
            return if self.held.len() > HEAD_LIMIT { Err(BadResponse::Chunk) } else { Ok(None) };
        };
        let (line, rest) = bytes.split_at(end + 1);
        self.held.extend_from_slice(line);
        let line = self.held.trim_ascii();
        let ended = match self.part {
            Part::ChunkSize => {
                let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
                self.part = match size.ok_or(BadResponse::Chunk)? {
                    0 => Part::Trailer,
                    size => Part::ChunkData(size),
                };
                false
            }
            Part::ChunkEnd if line.is_empty() => {
                self.part = Part::ChunkSize;
                false
            }
            Part::Trailer => line.is_empty(),
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
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

    use super::*;

    /// Reads an answer in pieces of every size; they must agree.
    fn read(text: &str) -> Result<(Option<Answered>, Vec<u8>), BadResponse> {
        let mut results = (1..=text.len()).map(|size| {
            let mut reader = ResponseReader::new();
            reader.begin(true);
            let mut answered = None;
            for piece in text.as_bytes().chunks(size) {
                assert_eq!(answered, None, "complete before its end, in pieces of {size}");
                answered = reader.feed(piece)?;
            }
            Ok((answered, reader.body().to_vec()))
        });
        let first = results.next().unwrap();
        assert!(results.all(|result| result == first));
        first
    }

    fn done(status: u16, close: bool) -> Answered {
        Answered { status, close }
    }

    #[test]
    fn an_answer_ends_where_its_length_says() {
        let (answered, body) = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
        assert_eq!(answered, Some(done(200, false)));
        assert_eq!(body, b"hello");
        assert_eq!(read("HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n").unwrap().0, Some(done(429, false)));
        assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n").unwrap().0, Some(done(204, false)));
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell").unwrap().0, None);
    }

    #[test]
    fn chunks_are_joined() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\nB\r\n, my\r\nworld\r\n0\r\nX: y\r\n\r\n";
        let (answered, body) = read(text).unwrap();
        assert_eq!(answered, Some(done(200, false)));
        assert_eq!(body, b"hello, my\r\nworld");
    }

    #[test]
    fn an_answer_without_a_length_ends_with_the_connection() {
        let mut reader = ResponseReader::new();
        reader.begin(true);
        assert_eq!(reader.feed(b"HTTP/1.0 200 OK\r\n\r\nall of it").unwrap(), None);
        assert_eq!(reader.closed().unwrap(), Answered { status: 200, close: true });
        assert_eq!(reader.body(), b"all of it");
        reader.begin(true);
        reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").unwrap();
        assert_eq!(reader.closed(), Err(BadResponse::Cut));
    }

    #[test]
    fn a_server_that_wants_to_close_is_heard() {
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n").unwrap().0,
            Some(done(200, true))
        );
        assert_eq!(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap().0, Some(done(200, true)));
        assert_eq!(
            read("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n").unwrap().0,
            Some(done(200, false))
        );
    }

    #[test]
    fn an_interim_answer_is_passed_over() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx";
        assert_eq!(read(text).unwrap(), (Some(done(201, false)), b"x".to_vec()));
    }

    #[test]
    fn malformed_answers_are_refused() {
        assert_eq!(read("SSH-2.0-OpenSSH\r\n"), Err(BadResponse::Head));
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), Err(BadResponse::Length));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(&format!("{chunked}x\r\n")), Err(BadResponse::Chunk));
        assert_eq!(read(&format!("{chunked}2\r\nabc\r\n")), Err(BadResponse::Chunk));
        let mut reader = ResponseReader::new();
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab";
        assert_eq!(reader.feed(two), Err(BadResponse::Trailing));
        let endless = vec![b'a'; HEAD_LIMIT + 2];
        let mut reader = ResponseReader::new();
        reader.feed(b"HTTP/1.1 200 OK\r\nX: ").unwrap();
        assert_eq!(reader.feed(&endless), Err(BadResponse::HeadTooLong));
    }

    #[test]
    fn the_place_of_the_binary_part_is_told() {
        let mut reader = ResponseReader::new();
        reader.begin(true);
        let text = b"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}ab";
        assert!(reader.feed(text).unwrap().is_some());
        assert_eq!((reader.json_length(), &reader.body()[2..]), (Some(2), b"ab".as_slice()));
    }
}
