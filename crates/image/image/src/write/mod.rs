//! Makes images, and takes them from anywhere to anywhere.
//!
//! Layers are written into a blob store: [`LayerWriter`]. A [`Bundle`] is a whole image, new or existing, with all its
//! platforms; it is written to a [`Destination`] completely or not at all. The same input always gives the same bytes,
//! whatever the number of cores, the clock and the umask.

mod blob;
mod bundle;
mod compress;
mod destination;
mod docker;
mod document;
mod error;
mod layer;
mod layout;
mod options;
mod registry;
mod rewrite;
mod squashfs;
mod tar;

pub(crate) use blob::{BlobData, BundleBlob, BundleDocument};
pub use bundle::Bundle;
pub use compress::Compression;
pub use destination::Destination;
pub(crate) use document::image_documents;
pub use document::{Artifact, ArtifactBlob, History, NewConfig};
pub use error::WriteError;
pub use layer::{LayerBlob, LayerWriter, write_layer};
pub use options::{WriteOptions, Written};
pub use rewrite::{Edit, LayerChanges, RewrittenImage};
pub use tar::{FileContent, HardLink, LayerEntry};
