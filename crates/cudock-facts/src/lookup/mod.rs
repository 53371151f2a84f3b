//! Questions the tables answer.

mod driver;
mod framework;
mod gpu;
mod image;
mod message;
mod meter;
mod package;
mod runtime;
mod size;
mod support;

pub use driver::Runs;
pub use framework::{TorchWheel, without_local};
pub use image::{FoundFramework, ImageTag, TagVerdict};
pub use package::{NamedCuda, PackageIndex, PackageUse};

/// What a look-up by name found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a, T> {
    /// That one.
    One(&'a T),
    /// The name stands for several, such as A100 for its two memory sizes.
    Several(Vec<&'a T>),
    /// Nothing; these names are near.
    Nothing(Vec<&'a str>),
}

impl<'a, T> Found<'a, T> {
    /// The row, if the name stands for one.
    pub fn one(self) -> Option<&'a T> {
        match self {
            Found::One(row) => Some(row),
            _ => None,
        }
    }

    /// All rows the name stands for.
    pub fn rows(self) -> Vec<&'a T> {
        match self {
            Found::One(row) => vec![row],
            Found::Several(rows) => rows,
            Found::Nothing(_) => Vec::new(),
        }
    }

    fn from_rows(mut rows: Vec<&'a T>, near: impl FnOnce() -> Vec<&'a str>) -> Self {
        match rows.len() {
            0 => Found::Nothing(near()),
            1 => Found::One(rows.remove(0)),
            _ => Found::Several(rows),
        }
    }
}
