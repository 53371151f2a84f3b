//! What a model file says of its weights, without loading them, and the GPU memory they take.
//!
//! A planner has to know whether a model fits into a card before anything is paid for. The files say it: an ONNX file
//! or a safetensors file names every tensor with its shape and number format, and that takes a few pages to read however
//! many gigabytes the weights are. [`inspect`] reads that into a [`Model`], and [`estimate`] is a pure function from
//! there to bytes, term by term, each with what it rests on.
//!
//! Files are not trusted: nothing here panics on any bytes, and memory grows with what is in a file, never with what it
//! claims.

mod error;
mod estimate;
pub mod figures;
mod folder;
mod foreign;
mod format;
pub mod onnx;
pub mod safetensors;
mod tally;

use std::path::{Path, PathBuf};

pub use error::ModelError;
pub use estimate::{Estimate, Question, Term, TermKind, estimate};
pub use foreign::{ForeignFormat, foreign_format};
pub use format::NumberFormat;
pub use tally::{Share, Tally, Tensor};

use crate::onnx::Activations;

/// What files say of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What kind of files they are.
    pub kind: FileKind,
    /// The files, those with weights outside of the model file included.
    pub files: Vec<PathBuf>,
    /// Bytes of all files.
    pub on_disk: u64,
    /// Its tensors.
    pub tensors: Tally,
    /// What lies between input and output, where the file says: ONNX only.
    pub activations: Option<Activations>,
}

/// Kinds of model files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// ONNX.
    Onnx,
    /// Safetensors.
    Safetensors,
}

/// Reads a model file, the index of a model in several files, or a folder of either.
pub fn inspect(path: &Path) -> Result<Model, ModelError> {
    if path.is_dir() { folder::read(path) } else { file(path) }
}

/// One file, by its name, and by its bytes where the name does not tell.
fn file(path: &Path) -> Result<Model, ModelError> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if name.ends_with(".safetensors.index.json") {
        return safetensors::read_index(path);
    }
    let map = cudock_map::map(path).map_err(ModelError::from)?;
    let is_onnx = has_extension(path, "onnx");
    if has_extension(path, "safetensors") || (!is_onnx && safetensors::looks_like_one(&map)) {
        return safetensors::read_file(path, &map);
    }
    if is_onnx || onnx::looks_like_one(&map) {
        return onnx::read_file(path, &map);
    }
    Err(ModelError::Unknown { path: path.to_owned() })
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}
