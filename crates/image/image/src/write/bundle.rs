//! A whole image: its documents and blobs, wherever they are.

use std::collections::{BTreeMap, HashSet};

use super::blob::{BlobData, BundleBlob, BundleDocument};
use super::document::{self, Artifact, NewConfig};
use super::error::WriteError;
use super::layer::LayerBlob;
use crate::manifest::{Descriptor, Document, Platform};
use crate::open::{BundleView, Graph, UnreadableReferrer, select};

/// A manifest or an index with everything below it, and what refers to it. Nothing is fetched until it is written.
#[derive(Clone)]
pub struct Bundle {
    pub(super) top: Descriptor,
    /// Every document after those that it lists.
    pub(super) documents: Vec<BundleDocument>,
    pub(super) blobs: Vec<BundleBlob>,
    /// Documents with a subject, which no other document lists.
    pub(super) referrers: Vec<Descriptor>,
    pub(super) unreadable: Vec<UnreadableReferrer>,
}

impl Bundle {
    /// A new image for one platform.
    pub fn image(config: &NewConfig, layers: &[LayerBlob], annotations: &BTreeMap<String, String>) -> Self {
        let config_blob = BundleBlob::memory(document::CONFIG, &document::config(config, layers));
        let descriptors = layers.iter().map(LayerBlob::descriptor).collect();
        let bytes = document::manifest(config_blob.descriptor.clone(), descriptors, annotations);
        let mut bundle = Self::of(document::MANIFEST, bytes, Some(config.platform.clone()));
        bundle.add(config_blob);
        for layer in layers {
            bundle.add(layer.blob());
        }
        bundle
    }

    /// One document without blobs.
    pub(super) fn of(media_type: &str, bytes: Vec<u8>, platform: Option<Platform>) -> Self {
        let top = Descriptor { platform, ..Descriptor::of(media_type, &bytes) };
        let documents = vec![BundleDocument { descriptor: top.clone(), bytes }];
        Self { top, documents, blobs: Vec::new(), referrers: Vec::new(), unreadable: Vec::new() }
    }

    /// An index of several images.
    pub fn index(images: Vec<Bundle>, annotations: &BTreeMap<String, String>) -> Self {
        let tops: Vec<Descriptor> = images.iter().map(|image| image.top.clone()).collect();
        let mut whole = Self::of(document::INDEX, document::index(&tops, annotations), None);
        let index = whole.documents.pop();
        for image in images {
            whole.merge(image);
        }
        whole.documents.extend(index);
        whole
    }

    /// Takes over the content of another bundle.
    pub(super) fn merge(&mut self, other: Bundle) {
        for document in other.documents {
            if !self.documents.iter().any(|known| known.descriptor.digest == document.descriptor.digest) {
                self.documents.push(document);
            }
        }
        for blob in other.blobs {
            self.add(blob);
        }
        self.referrers.extend(other.referrers);
        self.unreadable.extend(other.unreadable);
    }

    pub(super) fn add(&mut self, blob: BundleBlob) {
        if !self.blobs.iter().any(|known| known.descriptor.digest == blob.descriptor.digest) {
            self.blobs.push(blob);
        }
    }

    /// Annotates the image where an index or a layout lists it.
    pub fn describe(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.top.annotations.insert(key.into(), value.into());
    }

    /// The digest of the image.
    pub fn digest(&self) -> &str {
        &self.top.digest
    }

    /// The descriptor by which an index lists the image.
    pub fn descriptor(&self) -> &Descriptor {
        &self.top
    }

    /// Adds something about the image, or about one of the documents in it.
    pub fn attach(&mut self, subject: Option<&Descriptor>, artifact: &Artifact) -> Descriptor {
        let referrer = Self::referrer(subject.unwrap_or(&self.top), artifact);
        let descriptor = referrer.top.clone();
        self.merge(referrer);
        descriptor
    }

    /// Something about an image that is already where this is going to be written.
    pub fn referrer(subject: &Descriptor, artifact: &Artifact) -> Self {
        let layers = artifact.layers.iter().map(|layer| {
            let mut blob = BundleBlob::memory(&layer.media_type, &layer.bytes);
            blob.descriptor.annotations.clone_from(&layer.annotations);
            blob
        });
        let layers: Vec<BundleBlob> = layers.collect();
        let descriptors = layers.iter().map(|layer| layer.descriptor.clone()).collect();
        let (bytes, (config, content)) = document::artifact(artifact, descriptors, subject);
        let mut bundle = Self::of(document::MANIFEST, bytes, None);
        bundle.top.artifact_type = Some(artifact.artifact_type.clone());
        bundle.top.annotations.clone_from(&artifact.annotations);
        bundle.add(BundleBlob { descriptor: config, data: BlobData::Memory(content.into()) });
        for layer in layers {
            bundle.add(layer);
        }
        for document in &mut bundle.documents {
            document.descriptor = bundle.top.clone();
        }
        bundle.referrers.push(bundle.top.clone());
        bundle
    }

    /// An existing image with all its platforms, and what refers to it.
    pub(crate) fn of_graph(graph: Graph) -> Self {
        let Graph { top, documents, blobs, referrers, unreadable, .. } = graph;
        Self { top, documents, blobs, referrers, unreadable }
    }

    /// Referrers of the image that could not be read, and so are not part of this.
    pub fn unreadable_referrers(&self) -> &[UnreadableReferrer] {
        &self.unreadable
    }

    /// Whether it is only something about an image that is elsewhere.
    pub(super) fn is_referrer(&self) -> bool {
        self.referrers.iter().any(|referrer| referrer.digest == self.top.digest)
    }

    /// The digest of what the top document is about.
    pub(super) fn subject(&self) -> Result<String, WriteError> {
        let missing = || WriteError::damaged(&self.top.digest, "it has no subject");
        let stored = self.document(&self.top.digest).ok_or_else(missing)?;
        let subject = Document::read(&self.top.digest, &stored.bytes)?.subject;
        Ok(subject.ok_or_else(missing)?.digest)
    }

    pub(super) fn document(&self, digest: &str) -> Option<&BundleDocument> {
        self.documents.iter().find(|document| document.descriptor.digest == digest)
    }

    pub(super) fn blob(&self, digest: &str) -> Option<&BundleBlob> {
        self.blobs.iter().find(|blob| blob.descriptor.digest == digest)
    }

    /// The images in it, one for each platform: their manifests, and what these say.
    pub(super) fn images(&self) -> Result<Vec<(Descriptor, Document)>, WriteError> {
        let mut images = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![self.top.clone()];
        while let Some(descriptor) = open.pop() {
            let Some(stored) =
                self.document(&descriptor.digest).filter(|_| seen.insert(descriptor.digest.clone()))
            else {
                continue;
            };
            let document = Document::read(&descriptor.digest, &stored.bytes)?;
            match &document.manifests {
                Some(manifests) => open.extend(manifests.iter().rev().filter(|one| one.is_image()).cloned()),
                None => images.push((descriptor, document)),
            }
        }
        Ok(images)
    }

    /// The part for one platform: the only image, or that of this platform.
    pub(super) fn select(&self, platform: Option<&Platform>) -> Result<(Descriptor, Document), WriteError> {
        let missing = || WriteError::damaged(&self.top.digest, "not found");
        let top = self.document(&self.top.digest).ok_or_else(missing)?;
        let selected = select(&self.view(&self.top.digest), &top.descriptor, &top.bytes, platform)?;
        Ok((selected.descriptor, selected.document))
    }

    /// A view to read it through.
    pub(super) fn view<'a>(&'a self, name: &'a str) -> BundleView<'a> {
        BundleView { name, documents: &self.documents, blobs: &self.blobs }
    }

    /// The stored size of all blobs.
    pub fn size(&self) -> u64 {
        self.blobs.iter().map(|blob| blob.descriptor.size).sum()
    }

    /// The number of images in it.
    pub fn image_count(&self) -> Result<usize, WriteError> {
        Ok(self.images()?.len())
    }
}
