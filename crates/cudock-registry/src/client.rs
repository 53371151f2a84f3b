//! The client: documents and blobs of images, from the cache, mirrors or the registry itself.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ureq::Body;
use ureq::http::Response;

use crate::credentials::Credentials;
use crate::digest::{Algorithm, Digest};
use crate::env::Environment;
use crate::error::{Asked, RegistryError};
use crate::http::{Http, HttpOptions, broken, header, trusted_certificates};
use crate::mirrors::{Mirrors, Place};
use crate::progress::{Progress, Silent};
use crate::reference::Reference;
use crate::retry::{Again, Failure, Retries};
use crate::session::Session;
use crate::store::BlobStore;

/// No manifest or index is larger; the distribution specification has registries refuse larger ones.
pub const LARGEST_DOCUMENT: u64 = 4 << 20;

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                      application/vnd.docker.distribution.manifest.list.v2+json, \
                      application/vnd.docker.distribution.manifest.v2+json";

/// All that a [`Client`] depends on.
pub struct Options {
    /// Where blobs are kept.
    pub store: BlobStore,
    /// Where images really lie.
    pub mirrors: Mirrors,
    /// Where sign-ins are kept.
    pub credentials: Credentials,
    /// A bundle of trusted certificates; Mozilla's are taken where there is none.
    pub certificates: Option<PathBuf>,
    /// Who wants to know how far transfers are.
    pub progress: Option<Arc<dyn Progress>>,
    /// Never ask the network.
    pub offline: bool,
    /// Take what a tag stood for when it was last fetched, and ask the registry only where it never was.
    pub prefer_kept_tags: bool,
    /// How failures are repeated.
    pub retries: Retries,
    /// How long a registry may say nothing before it counts as failed.
    pub patience: Duration,
}

impl Options {
    /// Only a store: no mirrors, no sign-ins, Mozilla's certificates.
    pub fn new(store: BlobStore) -> Self {
        Self {
            store,
            mirrors: Mirrors::default(),
            credentials: Credentials::default(),
            certificates: None,
            progress: None,
            offline: false,
            prefer_kept_tags: false,
            retries: Retries::default(),
            patience: Duration::from_secs(60),
        }
    }

    /// As the user and the system have it configured; the store is the user's cache.
    pub fn from_environment(environment: &Environment) -> Result<Self, RegistryError> {
        Ok(Self {
            mirrors: Mirrors::from_environment(environment)?,
            credentials: Credentials::from_environment(environment),
            certificates: trusted_certificates(environment),
            ..Self::new(BlobStore::user_cache_in(environment)?)
        })
    }
}

/// A manifest or index: its bytes just as the registry has them, since their digest is the image's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The digest of the bytes.
    pub digest: Digest,
    /// The registry's word for what it is, without parameters; `application/octet-stream` where it has none.
    pub media_type: String,
    /// The bytes, of which the digest has been verified.
    pub bytes: Vec<u8>,
}

/// Fetches from registries into a [`BlobStore`]. It may be shared by threads.
pub struct Client {
    pub(crate) session: Session,
    pub(crate) store: BlobStore,
    mirrors: Mirrors,
    pub(crate) progress: Arc<dyn Progress>,
    offline: bool,
    prefer_kept_tags: bool,
    retries: Retries,
}

impl Client {
    /// Makes a client. Nothing is asked yet.
    pub fn new(options: Options) -> Result<Self, RegistryError> {
        let http = Http::new(&HttpOptions {
            certificates: options.certificates,
            ..HttpOptions::patient(options.patience)
        })?;
        Ok(Self {
            session: Session::new(http, options.credentials),
            store: options.store,
            mirrors: options.mirrors,
            progress: options.progress.unwrap_or_else(|| Arc::new(Silent)),
            offline: options.offline,
            prefer_kept_tags: options.prefer_kept_tags,
            retries: options.retries,
        })
    }

    /// The store that blobs are fetched into.
    pub fn store(&self) -> &BlobStore {
        &self.store
    }

    /// The document an image's name stands for, which is kept. One asked for by digest is verified against it; one asked
    /// for by tag is asked for anew each time, since tags move, unless the options prefer what was kept.
    pub fn manifest(&self, reference: &Reference) -> Result<Document, RegistryError> {
        let kept = (self.offline || self.prefer_kept_tags).then(|| self.store.tag(reference)).flatten();
        let kept = kept.map(|tag| Reference { digest: Some(tag.digest), ..reference.clone() });
        let reference = kept.as_ref().unwrap_or(reference);
        if let Some(digest) = &reference.digest
            && let Some((media_type, bytes)) = self.store.document(digest, LARGEST_DOCUMENT)
        {
            return Ok(Document { digest: digest.clone(), media_type, bytes });
        }
        let what = format!("manifest {}", reference.manifest_name());
        let document =
            self.at_some_place(reference, reference.digest.is_some(), &what, |place, retries, asked| {
                retries.repeated(&*self.progress, &what, || self.fetch_document(place, reference, asked))
            })?;
        if reference.digest.is_some() {
            self.store.keep_document(&document.digest, &document.media_type, &document.bytes)?;
        } else {
            // For later calls that prefer what is here; without a place to keep it, this one works all the same.
            let kept = self.store.keep_document(&document.digest, &document.media_type, &document.bytes);
            let _ = kept.and_then(|()| self.store.keep_tag(reference, &document.digest));
        }
        Ok(document)
    }

    /// The path of a blob in the store, fetched if it is not there. `size` is what the manifest says; not a byte more
    /// is written.
    pub fn blob(&self, reference: &Reference, digest: &Digest, size: u64) -> Result<PathBuf, RegistryError> {
        crate::download::blob(self, reference, digest, size)
    }

    /// Tries the places of an image in turn and gives the origin's error if all fail.
    pub(crate) fn at_some_place<T>(
        &self,
        reference: &Reference,
        by_digest: bool,
        what: &str,
        mut fetch: impl FnMut(&Place, Retries, &Asked) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        if self.offline {
            return Err(RegistryError::Offline {
                asked: Box::new(asked_of(&reference.registry, &reference.repository, what)),
            });
        }
        let mut last = None;
        for place in self.mirrors.places(reference, by_digest)? {
            let asked = asked_of(&place.registry, &place.repository, what);
            let retries = if place.is_mirror { self.retries.for_mirror() } else { self.retries };
            match fetch(&place, retries, &asked) {
                Err(error) if place.is_mirror && !is_ours(&error) => last = Some(error),
                result => return result,
            }
        }
        // The origin is always among the places, so that this is not reached.
        Err(last.unwrap_or_else(|| RegistryError::NameUnknown {
            asked: Box::new(asked_of(&reference.registry, &reference.repository, what)),
        }))
    }

    fn fetch_document(
        &self,
        place: &Place,
        reference: &Reference,
        asked: &Asked,
    ) -> Result<Document, Failure> {
        let below = format!("manifests/{}", reference.manifest_name());
        let mut answer = self.session.get(place, &below, Some(ACCEPT), None, asked)?;
        let bytes = read_document(&mut answer, asked)?;
        let media_type = media_type(&answer);
        if media_type == "text/html" {
            let reason = "it answers with a web page, as proxies do that want a sign-in".to_owned();
            return Err(RegistryError::Protocol { asked: Box::new(asked.clone()), reason }.into());
        }
        let promised = match (&reference.digest, header(&answer, "docker-content-digest")) {
            (Some(digest), _) => Some(digest.clone()),
            (None, Some(text)) => Some(text.trim().parse().map_err(|error| RegistryError::Protocol {
                asked: Box::new(asked.clone()),
                reason: format!("its Docker-Content-Digest cannot be read: {error}"),
            })?),
            (None, None) => None,
        };
        let algorithm = promised.as_ref().map_or(Algorithm::Sha256, Digest::algorithm);
        let digest = Digest::of(algorithm, &bytes);
        if let Some(wanted) = promised.filter(|promised| *promised != digest) {
            let (wanted, got) = (Box::new(wanted), Box::new(digest));
            return Err(RegistryError::WrongDigest { asked: Box::new(asked.clone()), wanted, got }.into());
        }
        Ok(Document { digest, media_type, bytes })
    }
}

/// Whether another place could not help: it is our disk or our files that fail.
fn is_ours(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Store { .. } | RegistryError::Config { .. })
}

fn asked_of(registry: &str, repository: &str, what: &str) -> Asked {
    Asked { registry: registry.to_owned(), repository: repository.to_owned(), what: what.to_owned() }
}

fn read_document(answer: &mut Response<Body>, asked: &Asked) -> Result<Vec<u8>, Failure> {
    let too_large = || RegistryError::WrongSize {
        asked: Box::new(asked.clone()),
        reason: format!("it is larger than the {LARGEST_DOCUMENT} bytes a manifest may have"),
    };
    if answer.body().content_length().is_some_and(|length| length > LARGEST_DOCUMENT) {
        return Err(too_large().into());
    }
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().take(LARGEST_DOCUMENT + 1).read_to_end(&mut bytes).map_err(|error| {
        Failure {
            error: RegistryError::Unreachable { asked: Box::new(asked.clone()), reason: broken(&error) },
            again: Again::After(None),
        }
    })?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= LARGEST_DOCUMENT) {
        Ok(bytes)
    } else {
        Err(too_large().into())
    }
}

fn media_type(answer: &Response<Body>) -> String {
    let bare = header(answer, "content-type").and_then(|text| text.split(';').next()).map(str::trim);
    bare.filter(|text| !text.is_empty()).unwrap_or("application/octet-stream").to_ascii_lowercase()
}
