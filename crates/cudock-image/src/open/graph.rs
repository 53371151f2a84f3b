//! Everything that an image consists of, for taking it elsewhere.

use std::collections::HashSet;
use std::sync::Arc;

use cudock_base::{Digest, try_parallel};

use super::{
    BlobSource, Bytes, Image, ImageSource, Layer, LayerData, OpenOptions, Origin, archive, assemble, layout,
    registry,
};
use crate::error::ImageError;
use crate::layer::Codec;
use crate::manifest::{Descriptor, Document, REF_NAME, REFERRERS};
use crate::write::{BlobData, BundleBlob, BundleDocument, Compression, image_documents};

/// The nesting of indexes.
const MAX_DEPTH: usize = 4;
/// The number of documents and blobs in one image.
const MAX_PARTS: usize = 10_000;

/// The documents and blobs of an image.
pub(crate) struct Graph {
    pub(crate) top: Descriptor,
    /// Every document after those that it lists.
    pub(crate) documents: Vec<BundleDocument>,
    pub(crate) blobs: Vec<BundleBlob>,
    pub(crate) referrers: Vec<Descriptor>,
    known: HashSet<String>,
}

impl Default for Graph {
    fn default() -> Self {
        let top = Descriptor::of("", b"");
        Self { top, documents: Vec::new(), blobs: Vec::new(), referrers: Vec::new(), known: HashSet::new() }
    }
}

/// Reads the documents of an image. Its layers are fetched when they are needed.
pub(crate) fn graph(source: &ImageSource, options: &OpenOptions) -> Result<Graph, ImageError> {
    match source {
        ImageSource::Layout { directory, name } => layout::graph(directory, name.as_deref()),
        ImageSource::Archive { file, name } => archive::graph(file, name.as_deref(), options),
        ImageSource::Daemon { name } => archive::graph_from_daemon(name, options),
        ImageSource::Registry(reference) => registry::graph(reference, options),
    }
}

impl Graph {
    /// The image in a layout or archive with an `index.json`: the only one, or the one with this name; or the whole index,
    /// if that is one image for several platforms.
    pub(super) fn of_index(
        store: &dyn BlobSource,
        index: &[u8],
        name: Option<&str>,
    ) -> Result<Self, ImageError> {
        let location = store.location();
        let mut graph = Self::default();
        let listed = Document::read(&location, index)?.manifests.unwrap_or_default();
        let mut images = Vec::new();
        let mut referrers = Vec::new();
        for descriptor in listed {
            let bytes = store.document(&descriptor)?;
            let document = Document::read(&location, &bytes)?;
            if document.subject.is_some() {
                referrers.push(descriptor);
            } else {
                images.push((descriptor, bytes));
            }
        }
        let name_of = |image: &Descriptor| image.annotations.get(REF_NAME).cloned();
        let mut names: Vec<String> = images.iter().filter_map(|(image, _)| name_of(image)).collect();
        if let Some(name) = name {
            images.retain(|(image, _)| name_of(image).as_deref() == Some(name));
            if images.is_empty() {
                return Err(ImageError::NoName { location, requested: name.to_owned(), names });
            }
        }
        names.sort();
        names.dedup();
        for index in images.iter().filter_map(|(image, _)| image.referrers()) {
            // Tools that do not know it remove it from layouts, as nothing lists it.
            if let Ok(bytes) = store.document(&index) {
                referrers.extend(Document::read(&location, &bytes)?.manifests.unwrap_or_default());
            }
        }
        match images.as_slice() {
            [] => return Err(ImageError::document(&location, "the index is empty")),
            [(image, bytes)] => {
                let mut image = image.clone();
                image.annotations.retain(|key, _| key != REF_NAME && key != REFERRERS);
                graph.add_document(store, image, bytes.clone(), 0)?;
            }
            // One image for several platforms is one image; two names are two images.
            _ if name.is_none() && names.len() > 1 => return Err(ImageError::Several { location, names }),
            _ => {
                let descriptor = Descriptor::of("application/vnd.oci.image.index.v1+json", index);
                graph.add_document(store, descriptor, index.to_vec(), 0)?;
            }
        }
        graph.select_last();
        for referrer in referrers {
            graph.add_referrer(store, referrer)?;
        }
        Ok(graph)
    }

    /// An image of an archive of docker, which has no manifest with digests.
    pub(super) fn of_docker(config: &Bytes, layers: Vec<(String, Bytes)>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let digests = try_parallel(&layers, cores, |(_, bytes)| {
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
            let layer = Layer { digest, size, data: LayerData::Mapped(bytes) };
            BundleBlob { descriptor, data: BlobData::Layer(Arc::new(layer)) }
        });
        let blobs: Vec<BundleBlob> = [config].into_iter().chain(blobs).collect();
        Self { top: manifest.descriptor.clone(), documents: vec![manifest], blobs, ..Self::default() }
    }

    /// Adds a document after everything below it.
    pub(super) fn add_document(
        &mut self,
        store: &dyn BlobSource,
        mut descriptor: Descriptor,
        bytes: Vec<u8>,
        depth: usize,
    ) -> Result<(), ImageError> {
        let location = store.location();
        if !self.known.insert(descriptor.digest.clone()) {
            return Ok(());
        }
        if depth > MAX_DEPTH || self.known.len() > MAX_PARTS {
            return Err(ImageError::document(
                &location,
                "indexes are nested too deeply, or have too many entries",
            ));
        }
        let document = Document::read(&location, &bytes)?;
        if descriptor.media_type.is_empty() || descriptor.media_type == "application/octet-stream" {
            let kind = if document.manifests.is_some() { "index" } else { "manifest" };
            descriptor.media_type = format!("application/vnd.oci.image.{kind}.v1+json");
        }
        for child in document.manifests.iter().flatten() {
            let bytes = store.document(child)?;
            self.add_document(store, child.clone(), bytes, depth + 1)?;
        }
        if let Some(config) = &document.config
            && self.known.insert(config.digest.clone())
        {
            let data = BlobData::Memory(store.document(config)?.into());
            self.blobs.push(BundleBlob { descriptor: config.clone(), data });
        }
        for layer in document.layers.iter().flatten() {
            if self.known.insert(layer.digest.clone()) {
                let data = BlobData::Layer(Arc::new(store.layer(layer)?));
                self.blobs.push(BundleBlob { descriptor: layer.clone(), data });
            }
        }
        self.documents.push(BundleDocument { descriptor, bytes });
        Ok(())
    }

    /// The document that was added last is the image.
    pub(super) fn select_last(&mut self) {
        if let Some(last) = self.documents.last() {
            self.top = last.descriptor.clone();
        }
    }

    pub(super) fn digests(&self) -> Vec<Digest> {
        self.documents.iter().filter_map(|document| document.descriptor.digest.parse().ok()).collect()
    }

    /// Adds a document that refers to one in the graph, unless its subject is another image's.
    pub(super) fn add_referrer(
        &mut self,
        store: &dyn BlobSource,
        descriptor: Descriptor,
    ) -> Result<(), ImageError> {
        if self.referrers.iter().any(|known| known.digest == descriptor.digest) {
            return Ok(());
        }
        let bytes = store.document(&descriptor)?;
        let document = Document::read(&store.location(), &bytes)?;
        if document.subject.is_some_and(|subject| self.known.contains(&subject.digest)) {
            self.add_document(store, descriptor.clone(), bytes, 0)?;
            self.referrers.push(descriptor);
        }
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
    pub(crate) fn open(&self, manifest: &[u8], options: &OpenOptions) -> Result<Image, ImageError> {
        assemble(self, manifest, Origin::Layout, options)
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
