//! The client: documents and blobs of images, from the cache, mirrors or the registry itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cudock_base::{Algorithm, Digest, Environment};
use cudock_http::{
    BlobStore, Client as HttpClient, ClientOptions, HttpError, HttpErrorKind, NoProgress, Progress,
    RetryPolicy, trusted_certificates,
};

use crate::credentials::Credentials;
use crate::documents::{Document, MAX_DOCUMENT};
use crate::error::{Error, Resource};
use crate::mirrors::{Mirrors, Source};
use crate::reference::Reference;
use crate::session::Session;
use crate::{documents, tags};

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                      application/vnd.docker.distribution.manifest.list.v2+json, \
                      application/vnd.docker.distribution.manifest.v2+json";

pub struct Options {
    pub store: BlobStore,
    pub mirrors: Mirrors,
    pub credentials: Credentials,
    /// A bundle of certificates to trust; Mozilla's are trusted where there is none.
    pub certificates: Option<PathBuf>,
    pub progress: Option<Arc<dyn Progress>>,
    /// Never use the network.
    pub offline: bool,
    /// Use the digest of a tag when it was last fetched, and send a request to the registry only if
    /// it never was.
    pub prefer_kept_tags: bool,
    pub retries: RetryPolicy,
    /// How long a registry may be silent.
    pub timeout: Duration,
}

impl Options {
    /// Only a store: no mirrors, no credentials, Mozilla's certificates.
    pub fn new(store: BlobStore) -> Self {
        Self {
            store,
            mirrors: Mirrors::default(),
            credentials: Credentials::default(),
            certificates: None,
            progress: None,
            offline: false,
            prefer_kept_tags: false,
            retries: RetryPolicy::default(),
            timeout: Duration::from_secs(60),
        }
    }

    /// Options as the user and the system have configured them; the store is the user's cache.
    pub fn from_environment(environment: &Environment) -> Result<Self, Error> {
        Ok(Self {
            mirrors: Mirrors::from_environment(environment)?,
            credentials: Credentials::from_environment(environment),
            certificates: trusted_certificates(environment),
            ..Self::new(user_store(environment)?)
        })
    }
}

/// The store in the user's cache.
pub fn user_store(environment: &Environment) -> Result<BlobStore, Error> {
    Ok(BlobStore::open(environment.cache_directory().ok_or(Error::NoCache)?)?)
}

/// Fetches from registries into a [`BlobStore`]. It may be shared by threads.
pub struct Client {
    pub(crate) session: Session,
    pub(crate) store: BlobStore,
    pub(crate) mirrors: Mirrors,
    pub(crate) progress: Arc<dyn Progress>,
    pub(crate) offline: bool,
    prefer_kept_tags: bool,
    pub(crate) retries: RetryPolicy,
}

impl Client {
    /// Makes a client. Nothing is contacted yet.
    pub fn new(options: Options) -> Result<Self, Error> {
        let http = HttpClient::new(&ClientOptions {
            certificates: options.certificates,
            timeout: options.timeout,
            ..ClientOptions::default()
        })?;
        Ok(Self {
            session: Session::new(http, options.credentials),
            store: options.store,
            mirrors: options.mirrors,
            progress: options.progress.unwrap_or_else(|| Arc::new(NoProgress)),
            offline: options.offline,
            prefer_kept_tags: options.prefer_kept_tags,
            retries: options.retries,
        })
    }

    pub fn store(&self) -> &BlobStore {
        &self.store
    }

    /// The document of an image's name, which is then kept. One requested by digest is verified against it; one requested
    /// by tag is fetched each time, since tags move, unless the options prefer what was kept.
    pub fn manifest(&self, reference: &Reference) -> Result<Document, Error> {
        let kept =
            (self.offline || self.prefer_kept_tags).then(|| tags::find(&self.store, reference)).flatten();
        let kept = kept.map(|tag| Reference { digest: Some(tag.digest), ..reference.clone() });
        let reference = kept.as_ref().unwrap_or(reference);
        if let Some(document) =
            reference.digest.as_ref().and_then(|digest| documents::read(&self.store, digest))
        {
            return Ok(document);
        }
        let item = format!("manifest {}", reference.manifest_name());
        let by_digest = reference.digest.is_some();
        let document = self.try_sources(reference, by_digest, &item, |source, retries, resource| {
            retries.run(&*self.progress, &item, || self.fetch_document(source, reference, resource))
        })?;
        let kept = documents::write(&self.store, &document);
        if by_digest {
            kept?;
        } else {
            // For later calls that prefer what is kept; this one works without it.
            let _ = kept.and_then(|()| tags::write(&self.store, reference, &document.digest));
        }
        Ok(document)
    }

    /// Keeps documents whose blobs are in the store, and what the tag of `reference` stands for: the last of them.
    pub fn keep(&self, reference: &Reference, documents: &[Document]) -> Result<(), Error> {
        for document in documents {
            documents::write(&self.store, document)?;
        }
        if let Some(last) = documents.last() {
            tags::write(&self.store, reference, &last.digest)?;
        }
        Ok(())
    }

    /// Whether a registry has an image. Nothing of it is fetched.
    pub fn exists(&self, reference: &Reference) -> Result<bool, Error> {
        let name = reference.manifest_name();
        let (item, path) = (format!("manifest {name}"), format!("manifests/{name}"));
        let by_digest = reference.digest.is_some();
        let found = self.try_sources(reference, by_digest, &item, |source, retries, resource| {
            retries.run(&*self.progress, &item, || self.session.head(source, &path, ACCEPT, resource))
        });
        match found {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. } | Error::NameUnknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tries the sources of an image in turn and returns the origin's error if all fail.
    pub(crate) fn try_sources<T>(
        &self,
        reference: &Reference,
        by_digest: bool,
        item: &str,
        mut fetch: impl FnMut(&Source, RetryPolicy, &Resource) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let requested = || Box::new(Resource::new(&reference.registry, &reference.repository, item));
        if self.offline {
            return Err(Error::Offline { resource: requested() });
        }
        let mut last = None;
        for source in self.mirrors.sources(reference, by_digest)? {
            let resource = Resource::new(&source.registry, &source.repository, item);
            let retries = if source.is_mirror { self.retries.for_mirror() } else { self.retries };
            match fetch(&source, retries, &resource) {
                Err(error) if source.is_mirror && !is_local(&error) => last = Some(error),
                result => return result,
            }
        }
        // The origin is always among the sources, so that this is not reached.
        Err(last.unwrap_or_else(|| Error::NameUnknown { resource: requested() }))
    }

    fn fetch_document(
        &self,
        source: &Source,
        reference: &Reference,
        resource: &Resource,
    ) -> Result<Document, Error> {
        let failed = |error| Error::http(resource, error);
        let malformed = |reason: String| failed(HttpError::new(HttpErrorKind::Malformed, reason));
        let path = format!("manifests/{}", reference.manifest_name());
        let mut response = self.session.get(source, &path, Some(ACCEPT), None, resource)?;
        let bytes = response.bytes(MAX_DOCUMENT).map_err(failed)?;
        if response.is_web_page() {
            return Err(malformed(
                "got an HTML page, possibly from a proxy that requires authentication".to_owned(),
            ));
        }
        let media_type = response.media_type().unwrap_or_else(|| "application/octet-stream".to_owned());
        let promised: Option<Digest> = match (&reference.digest, response.header("docker-content-digest")) {
            (Some(digest), _) => Some(digest.clone()),
            (None, Some(text)) => Some(
                text.trim()
                    .parse()
                    .map_err(|error| malformed(format!("invalid Docker-Content-Digest: {error}")))?,
            ),
            (None, None) => None,
        };
        let algorithm = promised.as_ref().map_or(Algorithm::Sha256, Digest::algorithm);
        let digest = Digest::of(algorithm, &bytes);
        if let Some(expected) = promised.filter(|promised| *promised != digest) {
            return Err(Error::WrongDigest {
                resource: Box::new(resource.clone()),
                expected: Box::new(expected),
                actual: Box::new(digest),
            });
        }
        Ok(Document { digest, media_type, bytes })
    }
}

/// Whether another source could not help: our disk or our files fail.
fn is_local(error: &Error) -> bool {
    matches!(error, Error::Store(_) | Error::Config { .. })
}
