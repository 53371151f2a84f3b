//! Everything that an image consists of, for taking it elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cudock_base::{Codec, Digest, try_parallel};

use super::image::{Bytes, Image, Layer, LayerData};
use super::listing::{Listed, MAX_PARTS};
use super::select::{MAX_DEPTH, open};
use super::{BlobSource, UnreadableReferrer};
use crate::error::ImageError;
use crate::manifest::{Descriptor, Document, DocumentKind};
use crate::write::{BlobData, BundleBlob, BundleDocument, Compression, WriteError, image_documents};

/// The documents and blobs of an image.
#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) top: Descriptor,
    /// Every document after those that it lists.
    pub(crate) documents: Vec<BundleDocument>,
    pub(crate) blobs: Vec<BundleBlob>,
    pub(crate) referrers: Vec<Descriptor>,
    /// Referrers that were left out.
    pub(crate) unreadable: Vec<UnreadableReferrer>,
    /// The kinds of its documents and blobs, by digest. Blobs have no kind.
    known: HashMap<String, Option<DocumentKind>>,
}

impl Default for Graph {
    fn default() -> Self {
        let top = Descriptor::of("", b"");
        let (documents, blobs, referrers) = (Vec::new(), Vec::new(), Vec::new());
        Self { top, documents, blobs, referrers, unreadable: Vec::new(), known: HashMap::new() }
    }
}

impl Graph {
    /// Everything of the image that was found. Its layers are fetched when they are needed.
    pub(super) fn of(store: &dyn BlobSource, listed: &Listed) -> Result<Self, ImageError> {
        let mut graph = Self::default();
        graph.add_document(store, listed.top.clone(), listed.bytes.clone(), 0)?;
        if let Some(last) = graph.documents.last() {
            graph.top = last.descriptor.clone();
        }
        let mut candidates = listed.referrers.clone();
        let documents = graph.documents.iter().filter_map(|document| document.descriptor.digest.parse().ok());
        for subject in documents.collect::<Vec<Digest>>() {
            candidates.extend(store.referrers(&subject)?);
        }
        let mut seen = HashSet::new();
        for candidate in candidates.into_iter().filter(|candidate| seen.insert(candidate.digest.clone())) {
            if let Err(error) = graph.add_referrer(store, &candidate) {
                graph.unreadable.push(UnreadableReferrer::new(&candidate, &error));
            }
        }
        Ok(graph)
    }

    /// An image of an archive of docker, which has no manifest with digests.
    pub(super) fn of_docker(config: &Bytes, layers: &[(String, Bytes)]) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let digests = try_parallel(layers, cores, |(_, bytes)| {
            let codec = match Codec::detect(bytes) {
                Codec::Plain => Compression::None,
                Codec::Gzip => Compression::default(),
                Codec::Zstd => Compression::ZSTD,
            };
            Ok::<_, std::convert::Infallible>(Descriptor::of(codec.media_type(), bytes))
        });
        let descriptors = digests.unwrap_or_default();
        let (config, manifest) = image_documents(config, descriptors.clone());
        let blobs = descriptors.into_iter().zip(layers).map(|(descriptor, (_, bytes))| {
            let (digest, size) = (descriptor.digest.clone(), descriptor.size);
            let layer = Layer { digest, size, data: LayerData::Mapped(bytes.clone()) };
            BundleBlob { descriptor, data: BlobData::Layer(Arc::new(layer)) }
        });
        let blobs: Vec<BundleBlob> = [config].into_iter().chain(blobs).collect();
        Self { top: manifest.descriptor.clone(), documents: vec![manifest], blobs, ..Self::default() }
    }

    /// Adds a document after everything below it.
    fn add_document(
        &mut self,
        store: &dyn BlobSource,
        mut descriptor: Descriptor,
        bytes: Vec<u8>,
        depth: usize,
    ) -> Result<(), ImageError> {
        let location = store.location();
        let document = Document::read_as(&location, &descriptor, &bytes)?;
        if self.known.insert(descriptor.digest.clone(), Some(document.kind())).is_some() {
            return Ok(());
        }
        if depth >= MAX_DEPTH || self.known.len() > MAX_PARTS {
            return Err(ImageError::document(
                &location,
                "indexes are nested too deeply, or have too many entries",
            ));
        }
        if descriptor.media_type.is_empty() || descriptor.media_type == "application/octet-stream" {
            let kind = if document.manifests.is_some() { "index" } else { "manifest" };
            descriptor.media_type = format!("application/vnd.oci.image.{kind}.v1+json");
        }
        for child in document.manifests.iter().flatten() {
            // Listed again: it must be the same thing, and is not read again.
            if let Some(kind) = self.known.get(&child.digest) {
                kind.map_or(Ok(()), |kind| kind.check(&location, &child.media_type))?;
                continue;
            }
            let bytes = store.document(child)?;
            self.add_document(store, child.clone(), bytes, depth + 1)?;
        }
        if let Some(config) = &document.config
            && self.add_blob(config)
        {
            let data = BlobData::Memory(store.document(config)?.into());
            self.blobs.push(BundleBlob { descriptor: config.clone(), data });
        }
        for layer in document.layers.iter().flatten() {
            if self.add_blob(layer) {
                let data = BlobData::Layer(Arc::new(store.layer(layer)?));
                self.blobs.push(BundleBlob { descriptor: layer.clone(), data });
            }
        }
        self.documents.push(BundleDocument { descriptor, bytes });
        Ok(())
    }

    /// Whether a blob is new.
    fn add_blob(&mut self, blob: &Descriptor) -> bool {
        let is_new = !self.known.contains_key(&blob.digest);
        if is_new {
            self.known.insert(blob.digest.clone(), None);
        }
        is_new
    }

    /// Adds a document that refers to one in the graph, with all of its parts, unless its subject is another image's.
    fn add_referrer(&mut self, store: &dyn BlobSource, descriptor: &Descriptor) -> Result<(), WriteError> {
        let bytes = store.document(descriptor)?;
        let document = Document::read_as(&store.location(), descriptor, &bytes)?;
        if !document.subject.is_some_and(|subject| self.known.contains_key(&subject.digest)) {
            return Ok(());
        }
        let mut referrer = Self::default();
        referrer.add_document(store, descriptor.clone(), bytes, 0)?;
        for blob in &referrer.blobs {
            blob.verified()?;
        }
        if self.known.len() + referrer.known.len() > MAX_PARTS {
            return Err(ImageError::document(&store.location(), "too many referrers").into());
        }
        let is_new = |descriptor: &Descriptor| !self.known.contains_key(&descriptor.digest);
        self.documents.extend(referrer.documents.into_iter().filter(|stored| is_new(&stored.descriptor)));
        self.blobs.extend(referrer.blobs.into_iter().filter(|blob| is_new(&blob.descriptor)));
        self.known.extend(referrer.known);
        self.referrers.push(descriptor.clone());
        Ok(())
    }
}

/// The documents and blobs of an image that is being written, to read it before it is anywhere.
pub(crate) struct BundleView<'a> {
    pub(crate) name: &'a str,
    pub(crate) documents: &'a [BundleDocument],
    pub(crate) blobs: &'a [BundleBlob],
}

impl BundleView<'_> {
    /// Opens one of the images in it.
    pub(crate) fn open(&self, manifest: &BundleDocument) -> Result<Image, ImageError> {
        open(self, &manifest.descriptor, &manifest.bytes, None, None)
    }

    fn blob(&self, descriptor: &Descriptor) -> Result<&BundleBlob, ImageError> {
        let found = self.blobs.iter().find(|blob| blob.descriptor.digest == descriptor.digest);
        found.ok_or_else(|| ImageError::document(self.name, format!("{} not found", descriptor.digest)))
    }
}

impl BlobSource for BundleView<'_> {
    fn location(&self) -> String {
        self.name.to_owned()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let known = self.documents.iter().find(|known| known.descriptor.digest == descriptor.digest);
        match (known, known.is_none().then(|| self.blob(descriptor)).transpose()?.map(|blob| &blob.data)) {
            (Some(known), _) => Ok(known.bytes.clone()),
            (None, Some(BlobData::Memory(bytes))) => Ok(bytes.to_vec()),
            _ => Err(ImageError::document(self.name, format!("{} is not a document", descriptor.digest))),
        }
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let blob = self.blob(descriptor)?;
        let data = match &blob.data {
            BlobData::File(path) => LayerData::Mapped(Bytes::of_file(path)?),
            BlobData::Layer(layer) => layer.data.clone(),
            BlobData::Memory(_) => {
                return Err(ImageError::document(self.name, format!("{} is not a layer", descriptor.digest)));
            }
        };
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, data })
    }
}
