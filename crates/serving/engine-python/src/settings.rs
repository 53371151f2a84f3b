//! Settings that only Python models have.

use std::path::PathBuf;

use cudock_tensor::TensorSpec;

/// Settings that only Python models have.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct PythonSettings {
    /// The interpreter; found in the environment if absent.
    pub python: Option<PathBuf>,
    /// The class of the model: `FILE.py:CLASS`, `MODULE:CLASS`, or `CLASS` of the model file.
    pub class: Option<String>,
    /// Inputs and outputs; found by the worker if empty.
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    /// Whether files may be loaded that run code, as pickles do.
    pub trust: bool,
    /// `fp16` or `bf16`: the precision of torch models, if it is not that of their weights.
    pub precision: Option<String>,
    /// Whether images are in channels-last layout on the device.
    pub channels_last: bool,
    /// Whether torch compiles the model.
    pub compile: bool,
    /// Row counts that it is compiled for; if there are none, it is compiled for any.
    pub compiled_rows: Vec<usize>,
    /// Row counts that are captured as CUDA graphs and replayed; others run as usual.
    pub graphs: Vec<usize>,
    /// Whether convolutions try every algorithm once per shape and keep the fastest.
    pub exhaustive: bool,
    /// Whether the memory shared with the server is pinned, so that the GPU reads it directly.
    pub pinned: bool,
}
