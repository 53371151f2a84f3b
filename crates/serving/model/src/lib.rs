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
mod file;
mod foreign;
mod format;
mod model;
pub mod onnx;
mod python;
pub mod safetensors;
mod tensor_stats;

use std::path::Path;

pub use error::ModelError;
pub use estimate::{Estimate, EstimateOptions, EstimateTerm, TermKind, estimate};
pub use foreign::{ForeignFormat, foreign_format};
pub use format::NumberFormat;
pub use model::{Model, ModelFormat};
pub use python::{is_model, is_pretrained, is_python_model, is_saved_model, python_files};
pub use tensor_stats::{FormatStats, TensorInfo, TensorStats};

/// Reads a model file, the index of a sharded model, or a directory of either.
pub fn inspect(path: &Path) -> Result<Model, ModelError> {
    if path.is_dir() { directory::read(path) } else { file::read(path) }
}
