//! Images in an OCI layout directory.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_base::Digest;

use super::content::Content;
use super::image::{Bytes, Layer, LayerData};
use super::{BlobSource, listing};
use crate::error::ImageError;
use crate::manifest::{Descriptor, MAX_DOCUMENT};

struct Layout {
    directory: PathBuf,
}

pub(super) fn find(directory: &Path, name: Option<&str>) -> Result<Content, ImageError> {
    let layout = Layout { directory: directory.to_owned() };
    let listed = listing::find(&layout, &read(&directory.join("index.json"))?, name)?;
    Ok(Content::Documents { store: Box::new(layout), listed })
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let io_error = |source| ImageError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(io_error)?;
    file.take(MAX_DOCUMENT as u64 + 1).read_to_end(&mut bytes).map_err(io_error)?;
    Ok(bytes)
}

impl Layout {
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

impl BlobSource for Layout {
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
