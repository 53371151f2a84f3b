//! Referrers of an image: signatures, bills of materials, proofs.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;

use cudock_base::text::error_chain;
use cudock_base::{Digest, try_parallel};

use super::BlobSource;
use crate::error::ImageError;
use crate::manifest::{Descriptor, Document};

/// The number of referrers that are read. An image has a few; more are a mistake or an attack.
const MAX_REFERRERS: usize = 1000;
/// Registries limit the rate of each connection.
const CONNECTIONS: usize = 4;

/// An artifact about an image.
#[derive(Debug, Clone)]
pub struct Referrer {
    /// Its manifest.
    pub descriptor: Descriptor,
    pub artifact_type: Option<String>,
    pub layers: Vec<Descriptor>,
    pub annotations: BTreeMap<String, String>,
}

/// A referrer that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableReferrer {
    /// The digest of its manifest.
    pub digest: String,
    pub reason: String,
}

/// The referrers of a document.
#[derive(Debug, Clone, Default)]
pub struct Referrers {
    pub found: Vec<Referrer>,
    pub unreadable: Vec<UnreadableReferrer>,
    /// The number of those that were not read because there are too many.
    pub omitted: usize,
}

/// Reads those of some documents that refer to a subject, each once.
pub(super) fn read(
    store: &dyn BlobSource,
    mut candidates: Vec<Descriptor>,
    subject: &Digest,
    artifact_type: Option<&str>,
) -> Referrers {
    let mut seen = HashSet::new();
    candidates.retain(|candidate| {
        let kind = candidate.artifact_type.as_deref();
        let may_be_wanted = kind.is_none() || artifact_type.is_none() || kind == artifact_type;
        may_be_wanted && seen.insert(candidate.digest.clone())
    });
    let omitted = candidates.len().saturating_sub(MAX_REFERRERS);
    candidates.truncate(MAX_REFERRERS);
    let read = try_parallel(&candidates, CONNECTIONS, |candidate| {
        Ok::<_, std::convert::Infallible>(read_one(store, candidate, subject))
    });
    let mut referrers = Referrers { omitted, ..Referrers::default() };
    for (candidate, read) in candidates.iter().zip(read.unwrap_or_default()) {
        match read {
            Ok(Some(found)) => {
                let is_wanted = artifact_type.is_none() || found.artifact_type.as_deref() == artifact_type;
                referrers.found.extend(is_wanted.then_some(found));
            }
            Ok(None) => {}
            Err(error) => referrers.unreadable.push(UnreadableReferrer::new(candidate, &error)),
        }
    }
    referrers
}

/// Reads a document; `None` if it is about something else.
fn read_one(
    store: &dyn BlobSource,
    candidate: &Descriptor,
    subject: &Digest,
) -> Result<Option<Referrer>, ImageError> {
    let document = Document::read_as(&store.location(), candidate, &store.document(candidate)?)?;
    let is_about = document.subject.is_some_and(|about| about.digest == subject.to_string());
    // Before OCI 1.1 the type was that of the configuration.
    let kind = document.artifact_type.or_else(|| document.config.map(|config| config.media_type));
    Ok(is_about.then(|| Referrer {
        descriptor: candidate.clone(),
        artifact_type: kind,
        layers: document.layers.unwrap_or_default(),
        annotations: document.annotations,
    }))
}

impl UnreadableReferrer {
    pub(crate) fn new(descriptor: &Descriptor, error: &dyn Error) -> Self {
        let reason = error_chain(error);
        Self { digest: descriptor.digest.clone(), reason }
    }
}
