//! Reads the tensors of model files without loading them, and estimates the GPU memory they need.
//!
//! A planner must know whether a model fits on a GPU before anything is paid for. ONNX and safetensors files list every
//! tensor with its shape and number format, which takes a few pages to read even if the weights have many gigabytes.
//! [`inspect`] reads that into a [`Model`], and [`estimate`] is a pure function from there to bytes, with the basis of each
//! term.
//!
//! Files are untrusted: no input causes a panic, and memory use grows with the size of a file, never with what it claims.

mod directory;
mod error;
mod estimate;
pub mod figures;
mod foreign;
mod format;
pub mod onnx;
mod python;
pub mod safetensors;
mod tensor_stats;

use std::path::{Path, PathBuf};

pub use error::ModelError;
pub use estimate::{Estimate, EstimateOptions, EstimateTerm, TermKind, estimate};
pub use foreign::{ForeignFormat, foreign_format};
pub use format::NumberFormat;
pub use python::{is_model, is_python_model, is_saved_model, python_files};
pub use tensor_stats::{FormatStats, TensorInfo, TensorStats};

use crate::onnx::Activations;

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub kind: ModelFormat,
    /// The files, including those with external weights.
    pub files: Vec<PathBuf>,
    pub on_disk: u64,
    pub tensors: TensorStats,
    /// Memory of intermediate values, if the file has shapes: ONNX only.
    pub activations: Option<Activations>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFormat {
    Onnx,
    Safetensors,
}

/// Reads a model file, the index of a sharded model, or a directory of either.
pub fn inspect(path: &Path) -> Result<Model, ModelError> {
    if path.is_dir() { directory::read(path) } else { file(path) }
}

/// Reads one file, detected by name, or by contents if the name is ambiguous.
fn file(path: &Path) -> Result<Model, ModelError> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if name.ends_with(".safetensors.index.json") {
        return safetensors::read_index(path);
    }
    let map = cudock_mmap::map(path).map_err(ModelError::from)?;
    let is_onnx = has_extension(path, "onnx");
    if has_extension(path, "safetensors") || (!is_onnx && safetensors::is_safetensors(&map)) {
        return safetensors::read_file(path, &map);
    }
    if is_onnx || onnx::is_onnx(&map) {
        return onnx::read_file(path, &map);
    }
    Err(ModelError::Unknown { path: path.to_owned() })
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}
