//! A download into a [`PartialFile`]: continued where an earlier process ended, over connections that break.

use cudock_base::bug::Parts;
use std::io::{self, Read};
use std::path::PathBuf;

use cudock_base::{Digest, FileError};

use crate::error::{HttpError, HttpErrorKind};
use crate::response::{Response, describe_read_error};
use crate::retry::{Retry, RetryPolicy, Retryable};
use crate::transfer::partial::{Finished, PartialFile};
use crate::transfer::progress::Progress;

const CHUNK: usize = 128 * 1024;
/// An attempt that adds this much resets the count of failures: a large file over a poor connection shall arrive, and a
/// server that sends a few bytes each time shall not keep us.
const PROGRESS: u64 = 1 << 20;

/// Why a download failed. `E` is the error of the caller's requests.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError<E: std::error::Error + 'static> {
    /// A request failed.
    #[error(transparent)]
    Request(E),
    /// The response broke off, or is not for the requested range.
    #[error(transparent)]
    Body(HttpError),
    /// There are more or fewer bytes than expected.
    #[error("{0}")]
    WrongSize(String),
    /// The bytes are not those that were requested.
    #[error("digest mismatch: expected {expected}, got {actual}")]
    WrongDigest {
        /// The digest that was requested.
        expected: Box<Digest>,
        /// The digest of what came.
        actual: Box<Digest>,
    },
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl<E: Retryable + std::error::Error + 'static> Retryable for DownloadError<E> {
    fn retry(&self) -> Retry {
        match self {
            Self::Request(error) => error.retry(),
            Self::Body(error) => error.retry(),
            _ => Retry::Never,
        }
    }
}

/// How a file is downloaded.
pub struct Download<'a> {
    /// The name under which progress is reported.
    pub name: &'a str,
    /// The observer of the transfer.
    pub progress: &'a dyn Progress,
    /// How failures are repeated.
    pub retries: RetryPolicy,
}

impl Download<'_> {
    /// Fills the file, verifies it and renames it to its final path.
    ///
    /// `request` requests the bytes from the given offset on. Its response must be 200, 206, or 416
    /// if a range was requested; it must turn any other into an error.
    pub fn run<E: Retryable + std::error::Error>(
        &self,
        partial: &mut PartialFile,
        request: impl Fn(Option<u64>) -> Result<Response, E>,
    ) -> Result<PathBuf, DownloadError<E>> {
        if partial.is_full()
            && let Finished::Complete(path) = partial.finish()?
        {
            return Ok(path);
        }
        // If some bytes are from an earlier process, they may be the reason for a wrong digest. The file is then
        // downloaded once more from the start before the server is blamed.
        let mut is_in_one_piece = partial.written() == 0;
        self.progress.started(self.name, Some(partial.size()), partial.written());
        let (mut failures, mut best) = (0, partial.written());
        loop {
            match self.attempt(partial, &mut is_in_one_piece, &request) {
                Ok(()) => match partial.finish()? {
                    Finished::Complete(path) => {
                        self.progress.finished(self.name);
                        return Ok(path);
                    }
                    Finished::WrongDigest { .. } if !is_in_one_piece => is_in_one_piece = true,
                    Finished::WrongDigest { actual } => {
                        return Err(DownloadError::WrongDigest {
                            expected: Box::new(partial.digest().clone()),
                            actual: Box::new(actual),
                        });
                    }
                },
                Err(error) => {
                    if partial.written() >= best.saturating_add(PROGRESS) {
                        (failures, best) = (0, partial.written());
                    }
                    self.retries.pause(self.progress, self.name, &mut failures, error)?;
                }
            }
        }
    }

    /// One request; the file is full if it succeeds.
    fn attempt<E: Retryable + std::error::Error>(
        &self,
        partial: &mut PartialFile,
        is_in_one_piece: &mut bool,
        request: impl Fn(Option<u64>) -> Result<Response, E>,
    ) -> Result<(), DownloadError<E>> {
        let (from, size) = (partial.written(), partial.size());
        let response = request((from > 0).then_some(from)).map_err(DownloadError::Request)?;
        let restart_reason = match response.status() {
            206 => match response.header("content-range").and_then(parse_content_range) {
                Some((_, Some(total))) if total != size => return Err(other_size(total, size)),
                Some((first, _)) if first == from => None,
                _ => Some("the server sent another range than the requested one"),
            },
            416 => Some("the server does not have the requested range"),
            _ => {
                if let Some(length) = response.content_length().filter(|length| *length != size) {
                    return Err(other_size(length, size));
                }
                if from > 0 {
                    *is_in_one_piece = true;
                    partial.restart()?;
                }
                None
            }
        };
        if let Some(reason) = restart_reason {
            *is_in_one_piece = true;
            partial.restart()?;
            return Err(broken_off(reason));
        }
        let mut body = response.into_reader();
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let (written, reason) = (partial.written(), describe_read_error(&error));
                    return Err(broken_off(format!("after {written} of {size} bytes: {reason}")));
                }
            };
            if !partial.append(buffer.part(..count))? {
                // The bytes before it cannot be trusted either.
                partial.restart()?;
                return Err(DownloadError::WrongSize(format!(
                    "the server sends more than the expected {size} bytes"
                )));
            }
            self.progress.at(self.name, partial.written());
        }
        if partial.is_full() {
            Ok(())
        } else {
            Err(broken_off(format!("the response ended after {} of {size} bytes", partial.written())))
        }
    }
}

fn other_size<E: std::error::Error>(actual: u64, expected: u64) -> DownloadError<E> {
    DownloadError::WrongSize(format!("the server has {actual} bytes, expected {expected}"))
}

fn broken_off<E: std::error::Error>(reason: impl Into<String>) -> DownloadError<E> {
    DownloadError::Body(HttpError::new(HttpErrorKind::Transient, reason))
}

/// The first byte, and the size of the whole where it is known, of `bytes 5-9/10`.
fn parse_content_range(header: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = header.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_gives_the_first_byte_and_the_whole() {
        assert_eq!(parse_content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_content_range("bytes 5-9/*"), Some((5, None)));
        for wrong in ["bytes */10", "5-9/10", "bytes 5", "bytes -5/10", "bytes 99999999999999999999-1/2", ""]
        {
            assert_eq!(parse_content_range(wrong), None, "{wrong}");
        }
    }
}
