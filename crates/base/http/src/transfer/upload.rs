//! An upload in chunks that continues at the offset the server confirms, over connections that break.

use std::io::{self, Read, Seek, SeekFrom};

use cudock_base::Secret;
use ureq::http::{Method, Uri};

use crate::client::Client;
use crate::error::{HttpError, HttpErrorKind};
use crate::request::Request;
use crate::response::Response;
use crate::retry::{Retry, RetryPolicy, Retryable};
use crate::transfer::progress::Progress;
use crate::url::{self, is_loopback, is_same_origin};

/// A chunk's place in the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// The size of the whole.
    pub total: u64,
}

/// A server that takes an upload in chunks.
pub trait UploadTarget {
    /// Why a request failed.
    type Error: Retryable + std::error::Error + 'static;

    /// Sends a chunk. Returns how many bytes of the whole the server has then.
    fn send(&mut self, chunk: &[u8], range: ContentRange) -> Result<u64, Self::Error>;

    /// How many bytes of the whole the server has.
    fn offset(&mut self, total: u64) -> Result<u64, Self::Error>;
}

/// Why an upload failed. `E` is the error of the target's requests.
#[derive(Debug, thiserror::Error)]
pub enum UploadError<E: std::error::Error + 'static> {
    /// A request failed.
    #[error(transparent)]
    Request(E),
    /// The server confirms bytes that were never sent, or forgets those that were.
    #[error("the server confirmed {confirmed} of {sent} bytes sent")]
    Offset {
        /// How many bytes were sent.
        sent: u64,
        /// Number of them that the server has, as it reports.
        confirmed: u64,
    },
    /// The content cannot be read.
    #[error("cannot read the content to upload")]
    Source(#[source] io::Error),
}

impl<E: Retryable + std::error::Error + 'static> Retryable for UploadError<E> {
    fn retry(&self) -> Retry {
        match self {
            Self::Request(error) => error.retry(),
            Self::Offset { sent, confirmed } if confirmed <= sent => Retry::After(None),
            Self::Offset { .. } | Self::Source(_) => Retry::Never,
        }
    }
}

/// How content is uploaded.
pub struct Upload<'a> {
    /// The name under which progress is reported.
    pub name: &'a str,
    /// The observer of the transfer.
    pub progress: &'a dyn Progress,
    /// How failures are repeated. A chunk that arrives resets the count.
    pub retries: RetryPolicy,
    /// The size of a chunk, which is held in memory.
    pub chunk_size: usize,
}

impl Upload<'_> {
    /// Sends all `total` bytes of `source`. With `resume`, first queries the server for the offset
    /// that an earlier run reached.
    pub fn run<T: UploadTarget>(
        &self,
        source: &mut (impl Read + Seek),
        total: u64,
        target: &mut T,
        resume: bool,
    ) -> Result<(), UploadError<T::Error>> {
        let mut failures = 0;
        let mut offset = if resume { self.offset(target, total, &mut failures)? } else { 0 };
        self.progress.started(self.name, Some(total), offset);
        let chunk_size = u64::try_from(self.chunk_size.max(1)).unwrap_or(u64::MAX);
        let mut is_complete = false;
        while !is_complete {
            let end = offset.saturating_add(chunk_size).min(total);
            let chunk = read_chunk(source, offset, end).map_err(UploadError::Source)?;
            let confirmed = match target.send(&chunk, ContentRange { start: offset, end, total }) {
                Ok(confirmed) if confirmed == end => {
                    (failures, offset) = (0, end);
                    is_complete = end == total;
                    self.progress.at(self.name, offset);
                    continue;
                }
                Ok(confirmed) if confirmed > offset && confirmed < end => confirmed,
                Ok(confirmed) => {
                    let error = UploadError::Offset { sent: end, confirmed };
                    self.retries.pause(self.progress, self.name, &mut failures, error)?;
                    confirmed
                }
                Err(error) => {
                    let error = UploadError::Request(error);
                    self.retries.pause(self.progress, self.name, &mut failures, error)?;
                    self.offset(target, total, &mut failures)?
                }
            };
            offset = confirmed;
            is_complete = offset == total && total > 0;
            self.progress.at(self.name, offset);
        }
        self.progress.finished(self.name);
        Ok(())
    }

    fn offset<T: UploadTarget>(
        &self,
        target: &mut T,
        total: u64,
        failures: &mut u32,
    ) -> Result<u64, UploadError<T::Error>> {
        loop {
            let error = match target.offset(total) {
                Ok(offset) if offset <= total => return Ok(offset),
                Ok(confirmed) => UploadError::Offset { sent: total, confirmed },
                Err(error) => UploadError::Request(error),
            };
            self.retries.pause(self.progress, self.name, failures, error)?;
        }
    }
}

fn read_chunk(source: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<Vec<u8>> {
    source.seek(SeekFrom::Start(start))?;
    let mut chunk = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
    source.read_exact(&mut chunk)?;
    Ok(chunk)
}

/// An upload that the server has given a URL.
pub struct UploadSession<'a> {
    client: &'a Client,
    url: String,
    authorization: Option<Secret>,
    /// Whether the server has sent the upload to another origin, which gets no authorization.
    left_origin: bool,
    protocol: Protocol,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Patch,
    Put,
}

impl<'a> UploadSession<'a> {
    /// Uploads as OCI registries expect: PATCH with `Content-Range: 0-9`; the response is 202 with
    /// `Range: 0-9` and the URL of the next request; GET returns the offset. [`close`](Self::close)
    /// then ends the upload.
    pub fn patch(client: &'a Client, url: impl Into<String>, authorization: Option<Secret>) -> Self {
        Self { client, url: url.into(), authorization, left_origin: false, protocol: Protocol::Patch }
    }

    /// Uploads as storage services expect: PUT with `Content-Range: bytes 0-9/100`; the response is
    /// 308 with `Range: bytes=0-9`, and at the end 200 or 201; PUT with `Content-Range: bytes
    /// */100` returns the offset.
    pub fn put(client: &'a Client, url: impl Into<String>, authorization: Option<Secret>) -> Self {
        Self { client, url: url.into(), authorization, left_origin: false, protocol: Protocol::Put }
    }

    /// The URL of the next request.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Replaces the authorization, which expires in long uploads. Another origin than the first gets none.
    pub fn authorize(&mut self, authorization: Option<Secret>) {
        self.authorization = authorization.filter(|_| !self.left_origin);
    }

    /// Marks that the URL is not at the origin that the authorization is for.
    pub fn leave_origin(&mut self) {
        (self.authorization, self.left_origin) = (None, true);
    }

    /// Closes an upload by PATCH: the server verifies the digest, and the blob exists.
    pub fn close(&mut self, digest: &str) -> Result<(), HttpError> {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{separator}digest={}", self.url, cudock_base::text::percent::encode(digest));
        let request = Request::new(Method::PUT, url).authorization(self.authorization.clone());
        let response = self.client.send(&request.body("application/octet-stream", []))?;
        match response.status() {
            200..=299 => Ok(()),
            _ => Err(response.into_status_error()),
        }
    }

    fn request(&self, method: Method) -> Request {
        Request::new(method, self.url.clone()).authorization(self.authorization.clone())
    }

    /// Takes up the URL of the next request, by the rules of redirects.
    fn follow(&mut self, response: &Response) -> Result<(), HttpError> {
        let Some(next) = response.linked_url("location") else { return Ok(()) };
        let (from, to): (&Uri, Uri) = (response.url(), url::parse(&next)?);
        url::check(&to, is_loopback(from.host().unwrap_or_default()))?;
        if !is_same_origin(from, &to) {
            self.leave_origin();
        }
        self.url = next;
        Ok(())
    }
}

impl UploadTarget for UploadSession<'_> {
    type Error = HttpError;

    fn send(&mut self, chunk: &[u8], range: ContentRange) -> Result<u64, HttpError> {
        let ContentRange { start, end, total } = range;
        let is_empty = end == start;
        if is_empty && self.protocol == Protocol::Patch {
            return Ok(end);
        }
        let last = end.saturating_sub(1);
        let (method, content_range) = match self.protocol {
            Protocol::Patch => (Method::PATCH, format!("{start}-{last}")),
            Protocol::Put if is_empty => (Method::PUT, format!("bytes */{total}")),
            Protocol::Put => (Method::PUT, format!("bytes {start}-{last}/{total}")),
        };
        let request = self
            .request(method)
            .header("Content-Range", content_range)
            .body("application/octet-stream", chunk);
        let response = self.client.send(&request)?;
        match (self.protocol, response.status()) {
            (Protocol::Patch, 200..=299) => {
                self.follow(&response)?;
                Ok(received(&response).unwrap_or(end))
            }
            (Protocol::Put, 200..=299) => Ok(total),
            (Protocol::Put, 308) => Ok(received(&response).unwrap_or(0)),
            // The server has another offset than this chunk's.
            (_, 416) => self.offset(total),
            _ => Err(response.into_status_error()),
        }
    }

    fn offset(&mut self, total: u64) -> Result<u64, HttpError> {
        let response = match self.protocol {
            Protocol::Patch => self.client.send(&self.request(Method::GET))?,
            Protocol::Put => {
                let query = self.request(Method::PUT).header("Content-Range", format!("bytes */{total}"));
                self.client.send(&query.body("application/octet-stream", []))?
            }
        };
        match (self.protocol, response.status()) {
            (Protocol::Patch, 200..=299) => {
                self.follow(&response)?;
                let missing =
                    || HttpError::new(HttpErrorKind::Malformed, "the server did not report the offset");
                received(&response).ok_or_else(missing)
            }
            (Protocol::Put, 200..=299) => Ok(total),
            (Protocol::Put, 308) => Ok(received(&response).unwrap_or(0)),
            _ => Err(response.into_status_error()),
        }
    }
}

/// How many bytes `Range: 0-9` or `Range: bytes=0-9` confirms. Registries write `0-0` for none.
fn received(response: &Response) -> Option<u64> {
    let range = response.header("range")?.trim();
    let (first, last) = range.strip_prefix("bytes=").unwrap_or(range).split_once('-')?;
    match (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?) {
        (0, 0) => Some(0),
        (0, last) => last.checked_add(1),
        _ => None,
    }
}
