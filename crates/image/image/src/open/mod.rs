//! Finds images and opens them.
//!
//! The image that a name stands for is determined once, in [`ResolvedImage::resolve`]. Everything
//! that checks, verifies, signs, copies or starts an image uses the resolved one, never the name:
//! an attacker who could change the name's target in between, or write a layout that two readers
//! understand differently, could have one image checked and another one run.

mod access;
mod archive;
mod cached;
mod content;
mod docker;
mod graph;
mod image;
mod layout;
mod listing;
mod referrers;
mod registry;
mod resolved;
mod select;
mod source;

use std::path::PathBuf;
use std::sync::Arc;

use cudock_base::Digest;
use cudock_http::Progress;
use cudock_registry::Client;

pub use access::{Access, Pull};
pub use cached::{CachedImage, cached_images};
pub(crate) use graph::{BundleView, Graph};
pub(crate) use image::Bytes;
pub use image::{Image, Layer};
pub use referrers::{Referrer, Referrers, UnreadableReferrer};
pub use resolved::ResolvedImage;
pub(crate) use select::select;
pub use source::{ImageSource, local_path};

use crate::error::ImageError;
use crate::manifest::{Descriptor, Platform};

pub struct OpenOptions {
    /// The platform; by default the host's, if there are several.
    pub platform: Option<Platform>,
    /// The registry client; none to forbid registry access.
    pub client: Option<Arc<Client>>,
    /// The sockets of container daemons.
    pub sockets: Vec<PathBuf>,
    /// Receives progress of slow operations.
    pub progress: Option<Arc<dyn Progress>>,
    /// A directory for temporary files: images of daemons and decompressed archives.
    pub scratch: PathBuf,
}

/// Provides the documents and layers of an image, whatever its source.
pub(crate) trait BlobSource: Send + Sync {
    /// A description of the source, for errors.
    fn location(&self) -> String;
    /// Reads a manifest, index or configuration, and compares it with its digest.
    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError>;
    /// A layer, which may not have been fetched yet.
    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError>;
    /// The descriptors of what refers to a document, beyond what the source lists itself.
    fn referrers(&self, _subject: &Digest) -> Result<Vec<Descriptor>, ImageError> {
        Ok(Vec::new())
    }
}
