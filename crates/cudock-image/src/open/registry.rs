//! Images in a registry. Documents are fetched on opening, layers when they are walked.

use std::sync::Arc;

use cudock_base::Digest;
use cudock_registry::{Client, Document, Reference};

use super::layout::{parse_digest, verify_digest, verify_size};
use super::{BlobSource, Graph, Image, Layer, LayerData, OpenOptions, Origin, assemble};
use crate::error::ImageError;
use crate::layer::Codec;
use crate::manifest::{Descriptor, Document as IndexDocument, MAX_DOCUMENT};

struct Registry {
    client: Arc<Client>,
    reference: Reference,
}

pub(super) fn open(reference: &Reference, options: &OpenOptions) -> Result<Image, ImageError> {
    let (store, top) = connect(reference, options)?;
    assemble(&store, &top.bytes, Origin::Registry, options)
}

fn connect(reference: &Reference, options: &OpenOptions) -> Result<(Registry, Document), ImageError> {
    let client = options.client.clone().ok_or_else(|| ImageError::NotAnImage {
        subject: reference.to_string(),
        reason: "the path does not exist, and registry access is disabled".to_owned(),
    })?;
    let top = client.manifest(reference)?;
    Ok((Registry { client, reference: reference.clone() }, top))
}

/// Everything of an image in a registry, with what refers to its documents.
pub(super) fn graph(reference: &Reference, options: &OpenOptions) -> Result<Graph, ImageError> {
    let (store, top) = connect(reference, options)?;
    let descriptor = Descriptor::of(&top.media_type, &top.bytes);
    let mut graph = Graph::default();
    graph.add_document(&store, Descriptor { digest: top.digest.to_string(), ..descriptor }, top.bytes, 0)?;
    graph.select_last();
    for subject in graph.digests() {
        for referrer in referrers(&store.client, reference, &subject)? {
            graph.add_referrer(&store, referrer)?;
        }
    }
    Ok(graph)
}

/// The descriptors of what refers to a document.
pub(crate) fn referrers(
    client: &Client,
    reference: &Reference,
    subject: &Digest,
) -> Result<Vec<Descriptor>, ImageError> {
    let Some(index) = client.referrers(reference, subject)? else { return Ok(Vec::new()) };
    let location = format!("referrers of {subject}");
    Ok(IndexDocument::read(&location, &index)?.manifests.unwrap_or_default())
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
}
