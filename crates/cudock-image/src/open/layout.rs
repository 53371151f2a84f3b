//! Images in an OCI layout directory.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_base::Digest;

use super::{BlobSource, Bytes, Graph, Image, Layer, LayerData, OpenOptions, Origin, assemble};
use crate::error::ImageError;
use crate::manifest::{self, Descriptor, Document, MAX_DOCUMENT, REF_NAME};

struct Layout<'f> {
    directory: &'f Path,
}

pub(super) fn open(directory: &Path, name: Option<&str>, options: &OpenOptions) -> Result<Image, ImageError> {
    let index = read(&directory.join("index.json"))?;
    let layout = Layout { directory };
    let top = select_by_name(&layout, &index, name)?;
    assemble(&layout, &top, Origin::Layout, options)
}

/// Everything of an image in a layout.
pub(super) fn graph(directory: &Path, name: Option<&str>) -> Result<Graph, ImageError> {
    Graph::of_index(&Layout { directory }, &read(&directory.join("index.json"))?, name)
}

/// The document of the image with that name, or the index itself if it holds a single image.
pub(super) fn select_by_name(
    store: &dyn BlobSource,
    index: &[u8],
    name: Option<&str>,
) -> Result<Vec<u8>, ImageError> {
    let location = store.location();
    let Some(manifests) = Document::read(&location, index)?.manifests else { return Ok(index.to_vec()) };
    let name_of = |manifest: &Descriptor| manifest.annotations.get(REF_NAME).cloned();
    if let Some(name) = name {
        let found = manifests.iter().find(|manifest| name_of(manifest).as_deref() == Some(name));
        let found = found.ok_or_else(|| ImageError::NoName {
            location: location.clone(),
            requested: name.to_owned(),
            names: manifests.iter().filter_map(name_of).collect(),
        })?;
        return store.document(found);
    }
    let mut names: Vec<String> = manifests.iter().filter_map(name_of).collect();
    names.sort();
    names.dedup();
    // One image for several platforms is one image; two names are two images.
    if names.len() > 1 { Err(ImageError::Several { location, names }) } else { Ok(index.to_vec()) }
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let io_error = |source| ImageError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(io_error)?;
    file.take(MAX_DOCUMENT as u64 + 1).read_to_end(&mut bytes).map_err(io_error)?;
    Ok(bytes)
}

impl Layout<'_> {
    fn path(&self, descriptor: &Descriptor) -> Result<PathBuf, ImageError> {
        let digest = parse_digest(&self.location(), descriptor)?;
        Ok(self.directory.join("blobs").join(digest.algorithm().name()).join(digest.hex()))
    }
}

pub(super) fn parse_digest(location: &str, descriptor: &Descriptor) -> Result<Digest, ImageError> {
    descriptor.digest.parse().map_err(|_| {
        let text: String = descriptor.digest.chars().take(100).collect();
        ImageError::document(location, format!("`{text}` is not a digest"))
    })
}

/// Detects truncated or replaced blobs by their size.
pub(super) fn verify_size(location: &str, descriptor: &Descriptor, size: usize) -> Result<(), ImageError> {
    if size as u64 == descriptor.size {
        return Ok(());
    }
    let message = format!("{} has {size} bytes, expected {}", descriptor.digest, descriptor.size);
    Err(ImageError::document(location, message))
}

/// Documents decide everything else, so their digests are always verified. Layers are verified when they are fetched.
pub(super) fn verify_digest(location: &str, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), ImageError> {
    let digest = parse_digest(location, descriptor)?;
    if Digest::of(digest.algorithm(), bytes) == digest {
        return Ok(());
    }
    Err(ImageError::document(location, format!("digest mismatch: {digest}")))
}

impl BlobSource for Layout<'_> {
    fn location(&self) -> String {
        self.directory.display().to_string()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let bytes = read(&self.path(descriptor)?)?;
        verify_size(&self.location(), descriptor, bytes.len())?;
        verify_digest(&self.location(), descriptor, &bytes)?;
        Ok(bytes)
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let bytes = Bytes::of_file(&self.path(descriptor)?)?;
        verify_size(&self.location(), descriptor, bytes.len())?;
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, data: LayerData::Mapped(bytes) })
    }
}

/// An entry of `manifest.json`, which docker used before OCI layouts.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerManifest {
    pub(super) config: String,
    #[serde(default)]
    pub(super) repo_tags: Option<Vec<String>>,
    pub(super) layers: Vec<String>,
}

pub(super) fn docker_manifests(location: &str, bytes: &[u8]) -> Result<Vec<DockerManifest>, ImageError> {
    manifest::parse(&format!("{location}: manifest.json"), bytes)
}
