//! Container images: opens them from any source and walks their layers as one merged file system.
//!
//! An image is a list of layers, each a tar file that adds, replaces and removes files. Only the merged layers show what a
//! program will find, and unpacking gigabytes to look at a few libraries is wasteful. [`ResolvedImage`] finds an image in a
//! layout, an archive, a registry or a daemon; [`Image::walk`] reads its layers in one parallel pass, passes each file
//! to a function that decides what to keep of it, and merges the result into a [`Tree`]. [`mod@write`] makes new layers and
//! images, and takes images from one place to another.
//!
//! Archives are untrusted: path traversal, symlink loops, false sizes and decompression bombs are rejected, and memory
//! use grows with what is kept, never with what a header claims.

mod detect;
mod directory;
mod error;
mod kind;
mod layer;
mod manifest;
mod open;
mod tree;
pub mod unpack;
mod walk;
pub mod write;

pub use cudock_registry as registry;
pub use directory::walk_directory;
pub use error::ImageError;
pub use kind::{FileKind, NoOther};
#[doc(hidden)]
pub use layer::fuzz;
pub use layer::{Content, EntryHeader, LayerLimits, TarOnly, read_tar};
pub use manifest::{Descriptor, ImageConfig, Platform, RunConfig};
pub use open::{
    Access, CachedImage, Image, ImageSource, Layer, OpenOptions, Pull, Referrer, Referrers, ResolvedImage,
    UnreadableReferrer, cached_images, local_path,
};
pub use tree::{Special, Tree, TreeFile, TreeNode};
