//! An OCI layout in a folder.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_base::Digest;

use super::{Bytes, Image, Layer, OpenOptions, Origin, Place, Store, assemble};
use crate::error::ImageError;
use crate::manifest::{self, Descriptor, Document, MAX_DOCUMENT, REF_NAME};

struct Layout<'f> {
    folder: &'f Path,
}

pub(super) fn open(folder: &Path, name: Option<&str>, options: &OpenOptions) -> Result<Image, ImageError> {
    let index = read(&folder.join("index.json"))?;
    let layout = Layout { folder };
    let top = named(&layout, &index, name)?;
    assemble(&layout, &top, Origin::Layout, options)
}

/// The document of the image with that name; the index itself where there is but one image in it.
pub(super) fn named(store: &dyn Store, index: &[u8], name: Option<&str>) -> Result<Vec<u8>, ImageError> {
    let place = store.place();
    let Some(manifests) = Document::read(&place, index)?.manifests else { return Ok(index.to_vec()) };
    let name_of = |manifest: &Descriptor| manifest.annotations.get(REF_NAME).cloned();
    if let Some(name) = name {
        let found = manifests.iter().find(|manifest| name_of(manifest).as_deref() == Some(name));
        let found = found.ok_or_else(|| ImageError::NoName {
            place: place.clone(),
            wanted: name.to_owned(),
            names: manifests.iter().filter_map(name_of).collect(),
        })?;
        return store.document(found);
    }
    let mut names: Vec<String> = manifests.iter().filter_map(name_of).collect();
    names.sort();
    names.dedup();
    // One image for several platforms is one image; two names are two.
    if names.len() > 1 { Err(ImageError::Several { place, names }) } else { Ok(index.to_vec()) }
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let wrong = |source| ImageError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(wrong)?;
    file.take(MAX_DOCUMENT as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}

impl Layout<'_> {
    fn path(&self, descriptor: &Descriptor) -> Result<PathBuf, ImageError> {
        let digest = digest_of(&self.place(), descriptor)?;
        Ok(self.folder.join("blobs").join(digest.algorithm().name()).join(digest.hex()))
    }
}

pub(super) fn digest_of(place: &str, descriptor: &Descriptor) -> Result<Digest, ImageError> {
    descriptor.digest.parse().map_err(|_| ImageError::Document {
        place: place.to_owned(),
        message: format!("`{}` is no digest", descriptor.digest.chars().take(100).collect::<String>()),
    })
}

/// A size that differs from what the manifest says means that something was cut off or swapped.
pub(super) fn right_size(place: &str, descriptor: &Descriptor, size: usize) -> Result<(), ImageError> {
    if size as u64 == descriptor.size {
        return Ok(());
    }
    let message = format!("{} has {size} bytes, and {} were promised", descriptor.digest, descriptor.size);
    Err(ImageError::Document { place: place.to_owned(), message })
}

/// Documents decide all the rest, so they are held against their digests; layers only where they are fetched.
pub(super) fn genuine(place: &str, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), ImageError> {
    let digest = digest_of(place, descriptor)?;
    if Digest::of(digest.algorithm(), bytes) == digest {
        return Ok(());
    }
    let message = format!("{digest} holds other bytes than its name says");
    Err(ImageError::Document { place: place.to_owned(), message })
}

impl Store for Layout<'_> {
    fn place(&self) -> String {
        self.folder.display().to_string()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let bytes = read(&self.path(descriptor)?)?;
        right_size(&self.place(), descriptor, bytes.len())?;
        genuine(&self.place(), descriptor, &bytes)?;
        Ok(bytes)
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let bytes = Bytes::whole(cudock_map::map(&self.path(descriptor)?)?);
        right_size(&self.place(), descriptor, bytes.len())?;
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, place: Place::Mapped(bytes) })
    }
}

/// What docker wrote into archives before there were layouts.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerManifest {
    pub(super) config: String,
    #[serde(default)]
    pub(super) repo_tags: Option<Vec<String>>,
    pub(super) layers: Vec<String>,
}

pub(super) fn docker_manifests(place: &str, bytes: &[u8]) -> Result<Vec<DockerManifest>, ImageError> {
    manifest::parse(&format!("{place}: manifest.json"), bytes)
}
