//! Existing images with other layers.

use cudock_base::bug::Parts;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use cudock_base::{Codec, FileError, ScratchDir};
use cudock_http::BlobStore;
use serde_json::{Value, json};

use super::blob::{BlobBytes, BundleBlob, BundleDocument};
use super::bundle::Bundle;
use super::compress::Compression;
use super::document::{self, CONFIG, History, INDEX, MANIFEST};
use super::error::WriteError;
use super::layer::{LayerBlob, LayerWriter};
use super::tar::{BLOCK, padding, set_size};
use crate::kind::FileKind;
use crate::layer::{EntryHeader, LayerInput, LayerLimits, TarReader, hard_link_targets};
use crate::manifest::{Descriptor, Document};
use crate::open::{Bytes, Image};

/// The change of a file.
pub enum Edit {
    Keep,
    Replace(Vec<u8>),
    Remove,
}

/// New layers by the digests of those that they replace.
pub type LayerChanges = BTreeMap<String, LayerBlob>;

/// One image of a bundle, as it can be read.
pub struct RewrittenImage {
    /// The digest of its manifest.
    pub digest: String,
    pub image: Image,
    /// The digests of its layers, lowest first.
    pub layers: Vec<String>,
}

impl Bundle {
    /// Opens the images in it, one for each platform.
    pub fn open(&self, name: &str) -> Result<Vec<RewrittenImage>, WriteError> {
        let view = self.view(name);
        let open = |(descriptor, document): (Descriptor, Document)| {
            let missing = || WriteError::damaged(&descriptor.digest, "not found");
            let manifest = self.document(&descriptor.digest).ok_or_else(missing)?;
            let layers = document.layers.into_iter().flatten().map(|layer| layer.digest).collect();
            let image = view.open(manifest)?;
            Ok(RewrittenImage { digest: descriptor.digest, image, layers })
        };
        self.images()?.into_iter().map(open).collect()
    }

    /// The layers of all its images, each once.
    pub fn layers(&self) -> Result<Vec<String>, WriteError> {
        let mut layers: Vec<String> = Vec::new();
        for (_, document) in self.images()? {
            for layer in document.layers.into_iter().flatten() {
                if !layers.contains(&layer.digest) {
                    layers.push(layer.digest);
                }
            }
        }
        Ok(layers)
    }

    fn layer(&self, digest: &str) -> Result<&BundleBlob, WriteError> {
        self.blob(digest).ok_or_else(|| WriteError::damaged(digest, "not found"))
    }

    /// The stored size of a layer.
    pub fn layer_size(&self, digest: &str) -> Result<u64, WriteError> {
        Ok(self.layer(digest)?.descriptor.size)
    }

    /// The compression that a layer has now.
    pub fn compression_of(&self, digest: &str) -> Result<Compression, WriteError> {
        Ok(match Codec::detect(&self.layer(digest)?.bytes()?) {
            Codec::Plain => Compression::None,
            Codec::Gzip => Compression::default(),
            Codec::Zstd => Compression::ZSTD,
        })
    }

    /// Compresses all layers anew that are not compressed in this way. Their content, and so the configuration, stays.
    pub fn recompress(&self, store: &BlobStore, compression: Compression) -> Result<Bundle, WriteError> {
        let mut changes = LayerChanges::new();
        for digest in self.layers()? {
            let same = std::mem::discriminant(&self.compression_of(&digest)?)
                == std::mem::discriminant(&compression);
            if same {
                continue;
            }
            let bytes = self.layer(&digest)?.verified()?;
            let mut writer = LayerWriter::new(store, compression)?;
            decompress(&digest, &bytes, |chunk| writer.raw(&[chunk]))?;
            changes.insert(digest, writer.finish_raw()?);
        }
        self.with_layers(&changes, None)
    }

    /// Writes a layer with some files replaced or removed; `None` if nothing changes. All headers are copied byte by byte,
    /// but for the size of a file whose content has another one. A file that a hard link leads to is never removed.
    pub fn edit_layer(
        &self,
        digest: &str,
        store: &BlobStore,
        compression: Compression,
        edit: &mut dyn FnMut(&EntryHeader, &[u8]) -> io::Result<Edit>,
    ) -> Result<Option<LayerBlob>, WriteError> {
        let bytes = self.layer(digest)?.verified()?;
        let plain = plain(digest, bytes, &store.directory().join("scratch"))?;
        let limits = LayerLimits::default();
        let hostile = |reason: String| WriteError::damaged(digest, reason);
        let mut reader = TarReader::new(LayerInput::Slice { bytes: &plain, at: 0 });
        let mut writer = LayerWriter::new(store, compression)?;
        let (mut copied, mut changed) = (0, false);
        let mut linked: Option<BTreeSet<String>> = None;
        let part = |start: usize, end: usize| plain.part(start..end);
        while let Some(header) =
            reader.next_below(limits.entries).map_err(|error| hostile(error.to_string()))?
        {
            let FileKind::File(file_size) = header.kind else { continue };
            let start = reader.position();
            let size = usize::try_from(file_size).unwrap_or(usize::MAX);
            let end = start.checked_add(size).filter(|end| *end <= plain.len());
            let end = end.ok_or_else(|| hostile(format!("`{}` is larger than the layer", header.path)))?;
            let edited = edit(&header, part(start, end)).map_err(|error| hostile(error.to_string()))?;
            let padded = end + padding(file_size).len();
            match edited {
                Edit::Keep => continue,
                Edit::Remove => {
                    if linked.is_none() {
                        linked = Some(hard_link_targets(&plain).map_err(|error| hostile(error.to_string()))?);
                    }
                    if linked.as_ref().is_some_and(|linked| linked.contains(&header.path)) {
                        continue;
                    }
                    writer.raw(&[part(copied, reader.entry_start())])?;
                }
                Edit::Replace(content) if content.len() == size => {
                    writer.raw(&[part(copied, start), &content, part(end, padded.min(plain.len()))])?;
                }
                Edit::Replace(content) => {
                    let length = content.len() as u64;
                    let mut block = [0; BLOCK];
                    let at = start.saturating_sub(BLOCK);
                    for (to, from) in block.iter_mut().zip(part(at, start)) {
                        *to = *from;
                    }
                    if reader.has_extended_size() || !set_size(&mut block, length) {
                        return Err(hostile(format!("`{}`: its size cannot be changed", header.path)));
                    }
                    writer.raw(&[part(copied, at), &block, &content, padding(length)])?;
                }
            }
            changed = true;
            copied = padded.min(plain.len());
        }
        if !changed {
            return Ok(None);
        }
        writer.raw(&[part(copied, plain.len())])?;
        writer.finish_raw().map(Some)
    }

    /// The same images with other layers. What names the digest of a changed image, such as its signature, is left out.
    pub fn with_layers(
        &self,
        changes: &LayerChanges,
        history: Option<&History>,
    ) -> Result<Bundle, WriteError> {
        let mut documents: HashMap<String, Descriptor> = HashMap::new();
        let mut bundle = Bundle { documents: Vec::new(), blobs: Vec::new(), ..self.clone() };
        for stored in &self.documents {
            let is_referrer =
                self.referrers.iter().any(|referrer| referrer.digest == stored.descriptor.digest);
            if is_referrer {
                continue;
            }
            let document = Document::read(&stored.descriptor.digest, &stored.bytes)?;
            let rewritten = match &document.manifests {
                Some(manifests) => rewritten_index(&stored.bytes, manifests, &documents)?,
                None => self.rewritten_manifest(&stored.bytes, &document, changes, history, &mut bundle)?,
            };
            let (media_type, bytes) = match rewritten {
                Some((media_type, bytes)) => (media_type.to_owned(), bytes),
                None => (stored.descriptor.media_type.clone(), stored.bytes.clone()),
            };
            let fresh = Descriptor::of(&media_type, &bytes);
            let descriptor = Descriptor {
                media_type,
                digest: fresh.digest,
                size: fresh.size,
                ..stored.descriptor.clone()
            };
            documents.insert(stored.descriptor.digest.clone(), descriptor.clone());
            bundle.documents.push(BundleDocument { descriptor, bytes });
        }
        let is_same = documents.get(&self.top.digest).is_some_and(|top| top.digest == self.top.digest);
        if is_same {
            return Ok(self.clone());
        }
        bundle.top = documents.remove(&self.top.digest).unwrap_or_else(|| self.top.clone());
        bundle.referrers.clear();
        Ok(bundle)
    }

    /// A manifest with its changed layers and configuration; `None` if nothing changes. Adds the blobs to the bundle.
    fn rewritten_manifest(
        &self,
        bytes: &[u8],
        document: &Document,
        changes: &LayerChanges,
        history: Option<&History>,
        bundle: &mut Bundle,
    ) -> Result<Option<(&'static str, Vec<u8>)>, WriteError> {
        let layers = document.layers.as_deref().unwrap_or_default();
        let old_config =
            document.config.as_ref().ok_or_else(|| WriteError::damaged("manifest", "no configuration"))?;
        if !layers.iter().any(|layer| changes.contains_key(&layer.digest)) {
            for descriptor in layers.iter().chain([old_config]) {
                bundle.add(self.layer(&descriptor.digest)?.clone());
            }
            return Ok(None);
        }
        let config = rewritten_config(&self.layer(&old_config.digest)?.bytes()?, layers, changes, history)?;
        let config = BundleBlob::memory(CONFIG, &config);
        let mut manifest: Value = parse(bytes)?;
        let descriptors = layers.iter().map(|layer| match changes.get(&layer.digest) {
            Some(new) => new.descriptor(),
            None => Descriptor { media_type: oci_media_type(&layer.media_type), ..layer.clone() },
        });
        let descriptors: Vec<Descriptor> = descriptors.collect();
        set(&mut manifest, "mediaType", json!(MANIFEST));
        set(&mut manifest, "config", json!(config.descriptor));
        set(&mut manifest, "layers", json!(descriptors));
        bundle.add(config);
        for layer in layers {
            bundle.add(match changes.get(&layer.digest) {
                Some(new) => new.blob(),
                None => self.layer(&layer.digest)?.clone(),
            });
        }
        Ok(Some((MANIFEST, document::bytes(&manifest))))
    }
}

/// An index with the new descriptors of its manifests.
fn rewritten_index(
    bytes: &[u8],
    manifests: &[Descriptor],
    documents: &HashMap<String, Descriptor>,
) -> Result<Option<(&'static str, Vec<u8>)>, WriteError> {
    let is_changed = |listed: &Descriptor| {
        documents.get(&listed.digest).is_none_or(|document| document.digest != listed.digest)
    };
    if !manifests.iter().any(is_changed) {
        return Ok(None);
    }
    // Attestations name the digest of the image that they are about.
    let kept = manifests.iter().filter(|listed| listed.is_image()).filter_map(|listed| {
        let document = documents.get(&listed.digest)?;
        let (media_type, digest, size) =
            (document.media_type.clone(), document.digest.clone(), document.size);
        Some(Descriptor { media_type, digest, size, ..listed.clone() })
    });
    let mut index: Value = parse(bytes)?;
    set(&mut index, "mediaType", json!(INDEX));
    set(&mut index, "manifests", json!(kept.collect::<Vec<_>>()));
    Ok(Some((INDEX, document::bytes(&index))))
}

fn rewritten_config(
    bytes: &[u8],
    layers: &[Descriptor],
    changes: &LayerChanges,
    history: Option<&History>,
) -> Result<Vec<u8>, WriteError> {
    let mut config: Value = parse(bytes)?;
    let ids = config.pointer_mut("/rootfs/diff_ids").and_then(Value::as_array_mut);
    let ids = ids.ok_or_else(|| WriteError::damaged("configuration", "it does not list its layers"))?;
    let mut is_changed = history.is_some();
    for (id, layer) in ids.iter_mut().zip(layers) {
        if let Some(new) = changes.get(&layer.digest) {
            let new_id = json!(new.diff_id.to_string());
            is_changed |= *id != new_id;
            *id = new_id;
        }
    }
    if let (Some(history), Some(config)) = (history, config.as_object_mut()) {
        let list = config.entry("history").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(json!(history));
        }
    }
    Ok(if is_changed { document::bytes(&config) } else { bytes.to_vec() })
}

fn parse(bytes: &[u8]) -> Result<Value, WriteError> {
    serde_json::from_slice(bytes).map_err(|error| WriteError::damaged("document", error.to_string()))
}

fn set(value: &mut Value, key: &str, to: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), to);
    }
}

/// The OCI name of a media type of docker: the same bytes, and zstd exists only there.
fn oci_media_type(media_type: &str) -> String {
    match media_type {
        "application/vnd.docker.image.rootfs.diff.tar.gzip" => Compression::default().media_type(),
        "application/vnd.docker.image.rootfs.diff.tar" => Compression::None.media_type(),
        other => other,
    }
    .to_owned()
}

/// Passes on the uncompressed bytes of a layer, within the limits of layers.
pub(super) fn decompress<E: From<WriteError>>(
    digest: &str,
    bytes: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let broken = |error: io::Error| WriteError::damaged(digest, error.to_string());
    let mut decoder = crate::layer::decoder(bytes).map_err(broken)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let chunk = cudock_base::files::read_some(&mut decoder, &mut buffer).map_err(broken)?;
        if chunk.is_empty() {
            return Ok(());
        }
        take(chunk)?;
    }
}

/// The uncompressed bytes of a layer, which are accessed by offset.
pub(super) fn plain(digest: &str, bytes: BlobBytes, scratch: &Path) -> Result<BlobBytes, WriteError> {
    if Codec::detect(&bytes) == Codec::Plain {
        return Ok(bytes);
    }
    let scratch = ScratchDir::new(scratch)?;
    let path = scratch.path().join("layer");
    let failed = |error| WriteError::from(FileError::at("write", &path)(error));
    let mut file = File::create_new(&path).map_err(failed)?;
    decompress(digest, &bytes, |chunk| file.write_all(chunk).map_err(failed))?;
    // The mapping outlives the file.
    Ok(BlobBytes::Mapped(Bytes::of_file(&path)?))
}
