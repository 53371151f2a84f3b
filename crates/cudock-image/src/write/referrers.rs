//! What refers to an image: signatures, bills of materials, proofs.

use std::collections::BTreeMap;

use super::bundle::{BlobData, Bundle};
use super::error::WriteError;
use crate::error::ImageError;
use crate::manifest::{Descriptor, Document};
use crate::open::{ImageSource, OpenOptions};

/// The largest part of a referrer that is read.
const MAX_BLOB: u64 = 64 << 20;

/// An artifact about an image.
#[derive(Debug, Clone)]
pub struct Referrer {
    /// Its manifest.
    pub descriptor: Descriptor,
    pub artifact_type: Option<String>,
    pub layers: Vec<Descriptor>,
    pub annotations: BTreeMap<String, String>,
}

/// What refers to a document of an image, of one type or of all.
pub fn referrers(
    source: &ImageSource,
    subject: &str,
    artifact_type: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Referrer>, WriteError> {
    let bundle = Bundle::read(source, options)?;
    let mut found = Vec::new();
    for descriptor in &bundle.referrers {
        let Some(stored) = bundle.document(&descriptor.digest) else { continue };
        let document = Document::read(&descriptor.digest, &stored.bytes)?;
        // Before OCI 1.1 the type was that of the configuration.
        let kind = document.artifact_type.or_else(|| document.config.map(|config| config.media_type));
        let is_about = document.subject.is_some_and(|about| about.digest == subject);
        if is_about && artifact_type.is_none_or(|wanted| kind.as_deref() == Some(wanted)) {
            found.push(Referrer {
                descriptor: stored.descriptor.clone(),
                artifact_type: kind,
                layers: document.layers.unwrap_or_default(),
                annotations: document.annotations,
            });
        }
    }
    Ok(found)
}

/// A part of a referrer, verified.
pub fn referrer_blob(
    source: &ImageSource,
    blob: &Descriptor,
    options: &OpenOptions,
) -> Result<Vec<u8>, WriteError> {
    let bundle = Bundle::read(source, options)?;
    let found = bundle.blob(&blob.digest).filter(|found| found.descriptor.size <= MAX_BLOB);
    let missing = || ImageError::document(&blob.digest, "not found, or too large for a referrer");
    let found = found.ok_or_else(missing)?;
    match &found.data {
        BlobData::Memory(bytes) => Ok(bytes.to_vec()),
        _ => Ok(found.verified()?.to_vec()),
    }
}
