//! The bytes of one blob: taken up where an earlier run ended, over connections that break.

use std::io::{self, Read};
use std::path::PathBuf;

use ureq::Body;
use ureq::http::Response;

use crate::error::{Asked, RegistryError};
use crate::http::{broken, header};
use crate::progress::Progress;
use crate::retry::{Again, Failure, Retries};
use crate::store::{Finished, Partial};

const CHUNK: usize = 128 * 1024;
/// An attempt that adds this much is progress, and the count of failures starts anew: a large blob over a poor line
/// shall arrive, a server that sends a few bytes each time shall not keep us.
const PROGRESS: u64 = 1 << 20;

/// One blob from one place.
pub struct Transfer<'a> {
    /// Asks for the bytes from this one on. An answer is 200 or 206, or 416 where a part was asked for.
    pub get: &'a dyn Fn(Option<u64>) -> Result<Response<Body>, Failure>,
    /// What it is called to those who listen.
    pub name: &'a str,
    /// What it is called in errors.
    pub asked: &'a Asked,
    /// Who listens.
    pub progress: &'a dyn Progress,
    /// How failures are repeated.
    pub retries: Retries,
}

impl Transfer<'_> {
    /// Fills the partial blob, verifies it and puts it in its place.
    pub fn run(&self, partial: &mut Partial) -> Result<PathBuf, RegistryError> {
        if partial.is_full()
            && let Finished::Complete(path) = partial.finish()?
        {
            return Ok(path);
        }
        // If not all bytes come from this place in this run, a wrong digest may be the fault of what was there before,
        // and the blob is fetched whole once before anybody is blamed.
        let mut is_of_one_piece = partial.written() == 0;
        self.progress.started(self.name, Some(partial.size()), partial.written());
        let (mut failed, mut best) = (0, partial.written());
        loop {
            match self.attempt(partial, &mut is_of_one_piece) {
                Ok(()) => match partial.finish()? {
                    Finished::Complete(path) => {
                        self.progress.finished(self.name);
                        return Ok(path);
                    }
                    Finished::WrongDigest { .. } if !is_of_one_piece => is_of_one_piece = true,
                    Finished::WrongDigest { got } => {
                        return Err(RegistryError::WrongDigest {
                            asked: Box::new(self.asked.clone()),
                            wanted: Box::new(partial.digest().clone()),
                            got: Box::new(got),
                        });
                    }
                },
                Err(Failure { error, again: Again::Never }) => return Err(error),
                Err(Failure { error, again: Again::After(after) }) => {
                    if partial.written() >= best.saturating_add(PROGRESS) {
                        failed = 0;
                        best = partial.written();
                    }
                    if failed >= self.retries.most {
                        return Err(error);
                    }
                    self.retries.pause(self.progress, failed, after, self.name, &error);
                    failed += 1;
                }
            }
        }
    }

    /// One request; fine if the partial is full afterwards.
    fn attempt(&self, partial: &mut Partial, is_of_one_piece: &mut bool) -> Result<(), Failure> {
        let (from, size) = (partial.written(), partial.size());
        let answer = (self.get)((from > 0).then_some(from))?;
        match answer.status().as_u16() {
            206 => self.check_part(&answer, partial, is_of_one_piece)?,
            416 => {
                *is_of_one_piece = true;
                partial.restart()?;
                return Err(self.broken("the server does not have the part asked for".to_owned()));
            }
            _ => {
                self.check_whole(&answer, size)?;
                if from > 0 {
                    *is_of_one_piece = true;
                    partial.restart()?;
                }
            }
        }
        let mut body = answer.into_body().into_reader();
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let reason = broken(&error);
                    return Err(self.broken(format!("after {} of {size} bytes: {reason}", partial.written())));
                }
            };
            if !partial.append(buffer.get(..count).unwrap_or_default())? {
                // What came before cannot be trusted either.
                partial.restart()?;
                return Err(self.wrong_size(format!("more bytes come than the {size} announced")));
            }
            self.progress.at(self.name, partial.written());
        }
        if partial.is_full() {
            Ok(())
        } else {
            Err(self.broken(format!("the body ended after {} of {size} bytes", partial.written())))
        }
    }

    fn check_whole(&self, answer: &Response<Body>, size: u64) -> Result<(), Failure> {
        match answer.body().content_length() {
            Some(length) if length != size => {
                Err(self.wrong_size(format!("the server has {length} bytes, and {size} were announced")))
            }
            _ => Ok(()),
        }
    }

    /// A part must begin where we are, and be one of a blob of the right size.
    fn check_part(
        &self,
        answer: &Response<Body>,
        partial: &mut Partial,
        is_of_one_piece: &mut bool,
    ) -> Result<(), Failure> {
        let size = partial.size();
        match header(answer, "content-range").and_then(content_range) {
            Some((_, Some(total))) if total != size => {
                Err(self.wrong_size(format!("the server has {total} bytes, and {size} were announced")))
            }
            Some((first, _)) if first == partial.written() => Ok(()),
            _ => {
                *is_of_one_piece = true;
                partial.restart()?;
                Err(self.broken("the server sent another part than the one asked for".to_owned()))
            }
        }
    }

    fn wrong_size(&self, reason: String) -> Failure {
        RegistryError::WrongSize { asked: Box::new(self.asked.clone()), reason }.into()
    }

    fn broken(&self, reason: String) -> Failure {
        let error = RegistryError::Unreachable { asked: Box::new(self.asked.clone()), reason };
        Failure { error, again: Again::After(None) }
    }
}

/// The first byte, and the size of the whole where it is told, of `bytes 5-9/10`.
fn content_range(header: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = header.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_gives_the_first_byte_and_the_whole() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        for wrong in ["bytes */10", "5-9/10", "bytes 5", "bytes -5/10", "bytes 99999999999999999999-1/2", ""]
        {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
