//! Container images, wherever they are: opened, and walked as the one file system a container would see.
//!
//! An image is a list of layers, each a tar file that adds, replaces and removes. What a program in it will find is
//! only told by all of them together, and unpacking gigabytes to look at a few libraries is a waste. [`open`] finds an
//! image in a layout, an archive, a registry or a daemon; [`Image::walk`] reads its layers in one pass, in parallel,
//! hands the files to a function that keeps what it wants of them, and merges the rest into a [`Tree`].
//!
//! Archives are not trusted: names that lead out of the image, links in circles, sizes that lie and bombs are refused,
//! and memory grows with what is kept, never with what a header claims.

mod error;
mod folder;
mod layer;
mod manifest;
mod open;
mod tree;
pub mod unpack;
mod walk;

pub use cudock_registry as registry;
pub use error::ImageError;
pub use folder::walk_folder;
#[doc(hidden)]
pub use layer::fuzz;
pub use layer::{Content, EntryKind, Header, Limits};
pub use manifest::{Config, Platform, RunConfig};
pub use open::{Access, Image, Layer, OpenOptions, Origin, Pull, Source, open};
pub use tree::{Node, NodeKind, Tree};
