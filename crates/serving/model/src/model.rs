//! What is known of a model file.

use std::path::PathBuf;

use crate::TensorStats;
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

impl Model {
    /// Combines two models that are loaded together.
    pub(crate) fn combine(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        self.on_disk = self.on_disk.saturating_add(other.on_disk);
        self.tensors.merge(other.tensors);
        self.activations = self.activations.zip(other.activations).map(|(one, other)| one.followed_by(other));
        self
    }
}
