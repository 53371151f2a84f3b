//! Manifests and indexes in the store: their bytes as blobs, and their media types in separate files.
//!
//! ```text
//! media-types/sha256/<hex>  the media type of a document
//! ```

use std::fs;
use std::path::PathBuf;

use cudock_base::{Digest, FileError, files};
use cudock_http::BlobStore;

/// Maximum size of a manifest or index, as in the distribution specification, by which registries
/// reject larger ones.
pub const MAX_DOCUMENT: u64 = 4 << 20;

/// A manifest or index: its bytes exactly as the registry has them, since their digest is the image's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub digest: Digest,
    /// Its media type without parameters; `application/octet-stream` where the registry sends none.
    pub media_type: String,
    /// The bytes, of which the digest has been verified.
    pub bytes: Vec<u8>,
}

fn media_type_path(store: &BlobStore, digest: &Digest) -> PathBuf {
    store.directory().join("media-types").join(digest.algorithm().name()).join(digest.hex())
}

/// A document that was kept, verified anew.
pub(crate) fn read(store: &BlobStore, digest: &Digest) -> Option<Document> {
    let media_type = fs::read_to_string(media_type_path(store, digest)).ok()?;
    let bytes = store.read(digest, MAX_DOCUMENT)?;
    Some(Document { digest: digest.clone(), media_type, bytes })
}

/// Keeps a document whose digest has been verified.
pub(crate) fn write(store: &BlobStore, document: &Document) -> Result<(), FileError> {
    // First its type: a type without its document is ignored, a document without a type is fetched anew.
    write_below(&media_type_path(store, &document.digest), document.media_type.as_bytes())?;
    store.write(&document.digest, &document.bytes)
}

/// Writes a small file, and creates its directory where that is missing.
pub(crate) fn write_below(path: &std::path::Path, bytes: &[u8]) -> Result<(), FileError> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(FileError::at("create directory", directory))?;
    }
    files::write_atomically(path, bytes).map_err(FileError::at("write", path))
}
