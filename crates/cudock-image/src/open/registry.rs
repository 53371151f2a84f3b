//! An image in a registry: its documents are fetched now, its layers when they are walked.

use std::sync::Arc;

use cudock_registry::{Client, Reference};

use super::layout::{digest_of, genuine, right_size};
use super::{Image, Layer, OpenOptions, Origin, Place, Store, assemble};
use crate::error::ImageError;
use crate::manifest::{Descriptor, MAX_DOCUMENT};

struct Registry {
    client: Arc<Client>,
    reference: Reference,
}

pub(super) fn open(reference: &Reference, options: &OpenOptions) -> Result<Image, ImageError> {
    let client = options.client.clone().ok_or_else(|| ImageError::NotAnImage {
        subject: reference.to_string(),
        reason: "it is no path, and registries are not asked here".to_owned(),
    })?;
    let top = client.manifest(reference)?;
    let store = Registry { client, reference: reference.clone() };
    assemble(&store, &top.bytes, Origin::Registry, options)
}

impl Store for Registry {
    fn place(&self) -> String {
        self.reference.to_string()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let digest = digest_of(&self.place(), descriptor)?;
        let kind = &descriptor.media_type;
        if kind.contains("manifest") || kind.contains("index") {
            let reference = Reference { tag: None, digest: Some(digest), ..self.reference.clone() };
            return Ok(self.client.manifest(&reference)?.bytes);
        }
        if descriptor.size > MAX_DOCUMENT as u64 {
            let message =
                format!("{digest} is too large for a document of an image ({} bytes)", descriptor.size);
            return Err(ImageError::Document { place: self.place(), message });
        }
        let path = self.client.blob(&self.reference, &digest, descriptor.size)?;
        let bytes = std::fs::read(&path).map_err(|source| ImageError::Io { path, source })?;
        right_size(&self.place(), descriptor, bytes.len())?;
        genuine(&self.place(), descriptor, &bytes)?;
        Ok(bytes)
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let digest = digest_of(&self.place(), descriptor)?;
        let place = Place::Remote { client: self.client.clone(), reference: self.reference.clone(), digest };
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, place })
    }
}
