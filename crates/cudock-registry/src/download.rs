//! One blob: taken up where an earlier run ended, over connections that break.

use std::io::{self, Read};
use std::path::PathBuf;

use ureq::Body;
use ureq::http::Response;

use crate::client::Client;
use crate::digest::Digest;
use crate::error::{Asked, RegistryError};
use crate::http::{broken, header};
use crate::mirrors::Place;
use crate::reference::Reference;
use crate::retry::{Again, Failure, Retries};
use crate::store::{Begun, Finished, Partial};

const CHUNK: usize = 128 * 1024;
/// An attempt that adds this much is progress, and the count of failures starts anew: a large blob over a poor line
/// shall arrive, a server that sends a few bytes each time shall not keep us.
const PROGRESS: u64 = 1 << 20;

/// See [`Client::blob`].
pub(crate) fn blob(
    client: &Client,
    reference: &Reference,
    digest: &Digest,
    size: u64,
) -> Result<PathBuf, RegistryError> {
    let what = format!("blob {digest}");
    let asked = || {
        let Reference { registry, repository, .. } = reference;
        Box::new(Asked { registry: registry.clone(), repository: repository.clone(), what: what.clone() })
    };
    let of_right_size = |path: PathBuf| {
        let there = path
            .metadata()
            .map_err(|source| RegistryError::Store { doing: "read", path: path.clone(), source })?
            .len();
        if there == size {
            return Ok(path);
        }
        let reason = format!("it has {there} bytes, and {size} were announced");
        Err(RegistryError::WrongSize { asked: asked(), reason })
    };
    if let Some(path) = client.store.path_of(digest) {
        return of_right_size(path);
    }
    client.at_some_place(reference, true, &what, |place, retries, asked| {
        let mut partial =
            match client.store.begin(digest, size, &|| client.progress.waiting(&digest.to_string()))? {
                Begun::Complete(path) => return of_right_size(path),
                Begun::Partial(partial) => partial,
            };
        let mut transfer = Transfer { client, place, digest, size, asked, is_of_one_piece: false };
        transfer.run(&mut partial, retries)
    })
}

struct Transfer<'a> {
    client: &'a Client,
    place: &'a Place,
    digest: &'a Digest,
    size: u64,
    asked: &'a Asked,
    /// Whether all bytes came from this place in this run. If not, a wrong digest may be the fault of what was
    /// there before, and the blob is fetched whole once before anybody is blamed.
    is_of_one_piece: bool,
}

impl Transfer<'_> {
    fn run(&mut self, partial: &mut Partial, retries: Retries) -> Result<PathBuf, RegistryError> {
        let name = self.digest.to_string();
        if partial.is_full()
            && let Finished::Complete(path) = partial.finish()?
        {
            return Ok(path);
        }
        self.is_of_one_piece = partial.written() == 0;
        self.client.progress.started(&name, Some(self.size), partial.written());
        let (mut failed, mut best) = (0, partial.written());
        loop {
            match self.attempt(partial, &name) {
                Ok(()) => match partial.finish()? {
                    Finished::Complete(path) => {
                        self.client.progress.finished(&name);
                        return Ok(path);
                    }
                    Finished::WrongDigest { .. } if !self.is_of_one_piece => self.is_of_one_piece = true,
                    Finished::WrongDigest { got } => {
                        let (wanted, got) = (Box::new(self.digest.clone()), Box::new(got));
                        return Err(RegistryError::WrongDigest {
                            asked: Box::new(self.asked.clone()),
                            wanted,
                            got,
                        });
                    }
                },
                Err(Failure { error, again: Again::Never }) => return Err(error),
                Err(Failure { error, again: Again::After(after) }) => {
                    if partial.written() >= best.saturating_add(PROGRESS) {
                        failed = 0;
                        best = partial.written();
                    }
                    if failed >= retries.most {
                        return Err(error);
                    }
                    self.client.pause(retries, failed, after, &name, &error);
                    failed += 1;
                }
            }
        }
    }

    /// One request; fine if the partial is full afterwards.
    fn attempt(&mut self, partial: &mut Partial, name: &str) -> Result<(), Failure> {
        let from = partial.written();
        let below = format!("blobs/{}", self.digest);
        let asked_from = (from > 0).then_some(from);
        let answer = self.client.session.get(self.place, &below, None, asked_from, self.asked)?;
        match answer.status().as_u16() {
            206 => self.check_part(&answer, from, partial)?,
            416 => {
                self.start_over(partial)?;
                return Err(self.broken("the registry does not have the part asked for".to_owned()));
            }
            _ => {
                self.check_whole(&answer)?;
                if from > 0 {
                    self.start_over(partial)?;
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
                    return Err(self.broken(format!(
                        "after {} of {} bytes: {reason}",
                        partial.written(),
                        self.size
                    )));
                }
            };
            if !partial.append(buffer.get(..count).unwrap_or_default())? {
                // What came before cannot be trusted either.
                partial.restart()?;
                return Err(self.wrong_size(format!("more bytes come than the {} announced", self.size)));
            }
            self.client.progress.at(name, partial.written());
        }
        if partial.is_full() {
            Ok(())
        } else {
            Err(self.broken(format!("the body ended after {} of {} bytes", partial.written(), self.size)))
        }
    }

    fn start_over(&mut self, partial: &mut Partial) -> Result<(), RegistryError> {
        self.is_of_one_piece = true;
        partial.restart()
    }

    fn check_whole(&self, answer: &Response<Body>) -> Result<(), Failure> {
        match answer.body().content_length() {
            Some(length) if length != self.size => {
                Err(self
                    .wrong_size(format!("the registry has {length} bytes, and {} were announced", self.size)))
            }
            _ => Ok(()),
        }
    }

    /// A part must begin where we are, and be one of a blob of the right size.
    fn check_part(
        &mut self,
        answer: &Response<Body>,
        from: u64,
        partial: &mut Partial,
    ) -> Result<(), Failure> {
        let range = header(answer, "content-range").and_then(content_range);
        match range {
            Some((_, Some(total))) if total != self.size => {
                Err(self
                    .wrong_size(format!("the registry has {total} bytes, and {} were announced", self.size)))
            }
            Some((first, _)) if first == from => Ok(()),
            _ => {
                self.start_over(partial)?;
                Err(self.broken("the registry sent another part than the one asked for".to_owned()))
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
