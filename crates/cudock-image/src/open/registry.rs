//! Images in a registry. Documents are fetched on opening, layers when they are walked.

use std::sync::Arc;

use cudock_registry::{Client, Reference};

use super::layout::{parse_digest, verify_digest, verify_size};
use super::{BlobSource, Image, Layer, LayerData, OpenOptions, Origin, assemble};
use crate::error::ImageError;
use crate::manifest::{Descriptor, MAX_DOCUMENT};

struct Registry {
    client: Arc<Client>,
    reference: Reference,
}

pub(super) fn open(reference: &Reference, options: &OpenOptions) -> Result<Image, ImageError> {
    let client = options.client.clone().ok_or_else(|| ImageError::NotAnImage {
        subject: reference.to_string(),
        reason: "the path does not exist, and registry access is disabled".to_owned(),
    })?;
    let top = client.manifest(reference)?;
    let store = Registry { client, reference: reference.clone() };
    assemble(&store, &top.bytes, Origin::Registry, options)
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
        let data =
            LayerData::Remote { client: self.client.clone(), reference: self.reference.clone(), digest };
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, data })
    }
}
