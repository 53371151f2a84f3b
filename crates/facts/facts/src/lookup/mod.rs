//! Lookups in the tables.

mod driver;
mod framework;
mod gpu;
mod image;
mod message;
mod meter;
mod package;
mod quota;
mod runtime;
mod size;
mod support;

pub use driver::Runs;
pub use framework::{TorchWheel, without_local};
pub use image::{CudaImage, FrameworkImageMatch, ImageTag, TagVerdict, split_reference};
pub use package::{NamedCuda, PackageUse};
pub(crate) use quota::bare_family;

/// The result of a lookup by name.
#[derive(Debug, Clone, PartialEq)]
pub enum NameMatch<'a, T> {
    One(&'a T),
    /// An ambiguous name, such as A100 for its two memory sizes.
    Several(Vec<&'a T>),
    /// No row; similar names.
    NotFound(Vec<&'a str>),
}

impl<'a, T> NameMatch<'a, T> {
    /// The row, if the name is unambiguous.
    pub fn one(self) -> Option<&'a T> {
        match self {
            NameMatch::One(row) => Some(row),
            _ => None,
        }
    }

    pub fn rows(self) -> Vec<&'a T> {
        match self {
            NameMatch::One(row) => vec![row],
            NameMatch::Several(rows) => rows,
            NameMatch::NotFound(_) => Vec::new(),
        }
    }

    fn from_rows(mut rows: Vec<&'a T>, near: impl FnOnce() -> Vec<&'a str>) -> Self {
        match rows.len() {
            0 => NameMatch::NotFound(near()),
            1 => NameMatch::One(rows.remove(0)),
            _ => NameMatch::Several(rows),
        }
    }
}
