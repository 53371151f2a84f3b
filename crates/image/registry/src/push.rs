//! Blobs and documents to a registry.
//!
//! A tag is written after everything that it names, so that a push that is killed leaves nothing but blobs that the
//! registry cleans up, and that the next push finds.

use std::io::{Read, Seek};

use cudock_base::text::percent;
use cudock_base::{Digest, Secret};
use cudock_http::{
    ContentRange, HttpError, HttpErrorKind, Response, Retry, Retryable, Upload, UploadError, UploadSession,
    UploadTarget,
};

use crate::client::Client;
use crate::documents::MAX_DOCUMENT;
use crate::error::{Error, Resource};
use crate::mirrors::Source;
use crate::reference::Reference;
use crate::session::Session;

/// Held in memory for each blob that is being sent.
const CHUNK: usize = 16 << 20;

/// A blob to push.
#[derive(Debug, Clone, Copy)]
pub struct PushedBlob<'a> {
    pub digest: &'a Digest,
    pub size: u64,
    /// A repository that may have it; used if it is in the same registry.
    pub from: Option<&'a Reference>,
}

/// How a blob came to a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushOutcome {
    /// It was there.
    Present,
    /// The registry took it from another repository.
    Mounted,
    Sent,
}

impl Client {
    /// Where an image is pushed to: mirrors are only for pulling.
    fn push_source(&self, reference: &Reference, item: &str) -> Result<(Source, Resource), Error> {
        let resource = Resource::new(&reference.registry, &reference.repository, item);
        if self.offline {
            return Err(Error::Offline { resource: Box::new(resource) });
        }
        let origin = self.mirrors.sources(reference, false)?.pop();
        let source = origin.ok_or_else(|| Error::NameUnknown { resource: Box::new(resource.clone()) })?;
        let resource = Resource::new(&source.registry, &source.repository, item);
        Ok((source, resource))
    }

    /// Makes sure that a repository has a blob. `content` is called only if it must be sent.
    pub fn push_blob<R: Read + Seek, E: From<Error>>(
        &self,
        reference: &Reference,
        blob: PushedBlob<'_>,
        content: impl FnOnce() -> Result<R, E>,
    ) -> Result<PushOutcome, E> {
        let digest = blob.digest;
        let (source, resource) = self.push_source(reference, &format!("blob {digest}"))?;
        let name = digest.to_string();
        let path = format!("blobs/{digest}");
        let exists = || self.session.exists(&source, &path, &resource);
        if self.retries.run(&*self.progress, &name, exists)? {
            return Ok(PushOutcome::Present);
        }
        let from = blob
            .from
            .filter(|from| from.registry == reference.registry && from.repository != reference.repository);
        let mount = from.map_or(String::new(), |from| {
            format!("?mount={}&from={}", percent::encode(&name), percent::encode(&from.repository))
        });
        let begin = |query: &str| {
            let path = format!("blobs/uploads/{query}");
            self.retries.run(&*self.progress, &name, || self.session.post(&source, &path, &resource))
        };
        // A user without the right to pull from the other repository may still push to this one.
        let response = match begin(&mount) {
            Err(Error::Unauthorized { .. } | Error::Forbidden { .. } | Error::NotFound { .. })
                if !mount.is_empty() =>
            {
                begin("")?
            }
            other => other?,
        };
        if response.status() == 201 {
            return Ok(PushOutcome::Mounted);
        }
        let mut target = BlobUpload::new(&self.session, &source, &resource, &response)?;
        let upload = Upload {
            name: &name,
            progress: &*self.progress,
            retries: self.retries,
            chunk_size: CHUNK.max(minimum_chunk(&response)),
        };
        drop(response);
        upload.run(&mut content()?, blob.size, &mut target, false).map_err(|error| match error {
            UploadError::Request(error) => error,
            other => {
                let kind = if other.retry() == Retry::Never {
                    HttpErrorKind::Permanent
                } else {
                    HttpErrorKind::Transient
                };
                Error::http(&resource, HttpError::new(kind, describe(&other)))
            }
        })?;
        self.retries.run(&*self.progress, &name, || match target.close(&name) {
            // The response of an earlier attempt may have been lost.
            Err(error) if exists().unwrap_or(false) => {
                drop(error);
                Ok(())
            }
            other => other,
        })?;
        Ok(PushOutcome::Sent)
    }

    /// Puts a manifest or an index under a tag, or under its digest without one. Everything that it names must be there.
    /// Returns whether the registry lists it as a referrer of its subject, if it has one.
    pub fn push_document(
        &self,
        reference: &Reference,
        media_type: &str,
        digest: &Digest,
        bytes: &[u8],
    ) -> Result<bool, Error> {
        let name = reference.tag.clone().unwrap_or_else(|| digest.to_string());
        let item = format!("manifest {name}");
        let (source, resource) = self.push_source(reference, &item)?;
        let path = format!("manifests/{name}");
        let put = || self.session.put(&source, &path, media_type, bytes, &resource);
        let response = self.retries.run(&*self.progress, &item, put)?;
        let stored = response.header("docker-content-digest").map(str::trim);
        if let Some(actual) =
            stored.and_then(|text| text.parse::<Digest>().ok()).filter(|actual| actual != digest)
        {
            let (expected, actual) = (Box::new(digest.clone()), Box::new(actual));
            return Err(Error::WrongDigest { resource: Box::new(resource), expected, actual });
        }
        Ok(response.header("oci-subject").is_some())
    }

    /// The index of what refers to a document: from the referrers API, or else under the tag that stands in for it. `None`
    /// if there is neither.
    pub fn referrers(&self, reference: &Reference, subject: &Digest) -> Result<Option<Vec<u8>>, Error> {
        if self.offline {
            return Ok(None);
        }
        let item = format!("referrers of {subject}");
        let (source, resource) = self.push_source(reference, &item)?;
        for path in [format!("referrers/{subject}"), format!("manifests/{}", Self::referrers_tag(subject))] {
            let accept = Some("application/vnd.oci.image.index.v1+json");
            let get = || {
                let mut response = self.session.get(&source, &path, accept, None, &resource)?;
                if response.is_web_page() {
                    return Ok(None);
                }
                response.bytes(MAX_DOCUMENT).map(Some).map_err(|error| Error::http(&resource, error))
            };
            match self.retries.run(&*self.progress, &item, get) {
                Ok(Some(bytes)) => return Ok(Some(bytes)),
                Ok(None) | Err(Error::NotFound { .. } | Error::NameUnknown { .. }) => {}
                // Registries that do not know the API say so in several ways.
                Err(Error::Http { error, .. }) if matches!(error.kind, HttpErrorKind::Status(400..500)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The tag of the index of referrers, in registries without an API for them.
    pub fn referrers_tag(subject: &Digest) -> String {
        format!("{}-{}", subject.algorithm().name(), subject.hex())
    }
}

fn describe<E: std::error::Error>(error: &E) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The smallest chunk that a registry accepts, if it says so.
fn minimum_chunk(response: &Response) -> usize {
    /// Upper bound for a registry's minimum, because chunks are held in memory.
    const MOST: usize = 256 << 20;
    let minimum = response.header("oci-chunk-min-length").and_then(|text| text.trim().parse().ok());
    minimum.unwrap_or(0).min(MOST)
}

/// An upload that outlives its tokens.
struct BlobUpload<'a> {
    upload: UploadSession<'a>,
    session: &'a Session,
    source: &'a Source,
    resource: &'a Resource,
}

impl<'a> BlobUpload<'a> {
    fn new(
        session: &'a Session,
        source: &'a Source,
        resource: &'a Resource,
        begun: &Response,
    ) -> Result<Self, Error> {
        let missing =
            || HttpError::new(HttpErrorKind::Malformed, "the registry began an upload without a URL");
        let url =
            begun.linked_url("location").ok_or_else(missing).map_err(|error| Error::http(resource, error))?;
        // The upload may be at another origin from the start, which gets no authorization.
        let next = url.parse().map_err(|_| Error::http(resource, missing()))?;
        let mut upload = UploadSession::patch(session.http(), url, None);
        if !cudock_http::url::is_same_origin(begun.url(), &next) {
            upload.leave_origin();
        }
        Ok(Self { upload, session, source, resource })
    }

    fn authorize(&mut self, refused: bool) -> Result<(), Error> {
        let authorization: Option<Secret> =
            self.session.authorization(self.source, refused, self.resource)?;
        self.upload.authorize(authorization);
        Ok(())
    }

    /// Sends a request, and once more with a new token if the registry refuses the first.
    fn request<T>(
        &mut self,
        mut send: impl FnMut(&mut UploadSession<'a>) -> Result<T, HttpError>,
    ) -> Result<T, Error> {
        self.authorize(false)?;
        match send(&mut self.upload) {
            Err(error) if error.kind == HttpErrorKind::Status(401) => {
                self.authorize(true)?;
                send(&mut self.upload)
            }
            other => other,
        }
        .map_err(|error| Error::http(self.resource, error))
    }

    fn close(&mut self, digest: &str) -> Result<(), Error> {
        self.request(|upload| upload.close(digest))
    }
}

impl UploadTarget for BlobUpload<'_> {
    type Error = Error;

    fn send(&mut self, chunk: &[u8], range: ContentRange) -> Result<u64, Error> {
        self.request(|upload| upload.send(chunk, range))
    }

    fn offset(&mut self, total: u64) -> Result<u64, Error> {
        self.request(|upload| upload.offset(total))
    }
}
