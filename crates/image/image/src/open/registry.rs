//! Images in a registry. Documents are fetched on opening, layers when they are walked.

use std::sync::Arc;

use cudock_base::{Codec, Digest};
use cudock_registry::{Client, Reference};

use super::content::Content;
use super::image::{Layer, LayerData};
use super::layout::{parse_digest, verify_digest, verify_size};
use super::listing::Listed;
use super::{BlobSource, OpenOptions};
use crate::error::ImageError;
use crate::manifest::{Descriptor, Document, MAX_DOCUMENT};

struct Registry {
    client: Arc<Client>,
    reference: Reference,
}

pub(super) fn find(reference: &Reference, options: &OpenOptions) -> Result<Content, ImageError> {
    let client = options.client.clone().ok_or_else(|| ImageError::NotAnImage {
        subject: reference.to_string(),
        reason: "the path does not exist, and registry access is disabled".to_owned(),
    })?;
    let top = client.manifest(reference)?;
    let described = Descriptor::of(&top.media_type, &top.bytes);
    let described = Descriptor { digest: top.digest.to_string(), ..described };
    let listed = Listed { top: described, bytes: top.bytes, referrers: Vec::new() };
    let store = Box::new(Registry { client, reference: reference.clone() });
    Ok(Content::Documents { store, listed })
}

impl BlobSource for Registry {
    fn location(&self) -> String {
        self.reference.to_string()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let digest = parse_digest(&self.location(), descriptor)?;
        let kind = &descriptor.media_type;
        if kind.contains("manifest") || kind.contains("index") {
            let reference = Reference { tag: None, digest: Some(digest), ..self.reference.clone() };
            return Ok(self.client.manifest(&reference)?.bytes);
        }
        if descriptor.size > MAX_DOCUMENT as u64 {
            let message = format!("{digest} is too large for an image document ({} bytes)", descriptor.size);
            return Err(ImageError::document(&self.location(), message));
        }
        let path = self.client.blob(&self.reference, &digest, descriptor.size)?;
        let bytes = std::fs::read(&path).map_err(|source| ImageError::Io { path, source })?;
        verify_size(&self.location(), descriptor, bytes.len())?;
        verify_digest(&self.location(), descriptor, &bytes)?;
        Ok(bytes)
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let digest = parse_digest(&self.location(), descriptor)?;
        let data = LayerData::Remote {
            client: self.client.clone(),
            reference: self.reference.clone(),
            digest,
            codec: Codec::of_media_type(&descriptor.media_type),
        };
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, data })
    }

    fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, ImageError> {
        let Some(index) = self.client.referrers(&self.reference, subject)? else { return Ok(Vec::new()) };
        let location = format!("referrers of {subject}");
        Ok(Document::read(&location, &index)?.manifests.unwrap_or_default())
    }
}
