//! Figures used by the estimate, with source and date; those without a source are assumptions.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    pub value: u64,
    pub meaning: &'static str,
    /// The source; none if it is an assumption.
    pub source: Option<&'static str>,
    pub dated: &'static str,
}

/// Bytes of GPU memory that a process uses before its first tensor: the CUDA context and the kernels and workspaces of a
/// framework.
pub const PROCESS: Figure = Figure {
    value: 1_008_000_000,
    meaning: "a process with PyTorch's kernels before its first tensor, measured on a Titan V; with CUDA 11.7 and later, \
              which load kernels when they are used, about 300 MB",
    source: Some("https://github.com/pytorch/pytorch/issues/28394"),
    dated: "2019-10-22",
};

/// Memory of inference in percent of the weights, if the file has no shapes of intermediate values.
pub const INFERENCE_PERCENT: Figure = Figure {
    value: 20,
    meaning: "inference adds up to 20 % to the weights of a transformer, its cache for short texts included",
    source: Some("https://huggingface.co/spaces/hf-accelerate/model-memory-usage"),
    dated: "2026-11-15",
};

/// Bytes per parameter for training with Adam in mixed precision: 16-bit weights and gradients, and 32-bit weights, momentum
/// and variance. Training in 32 bits needs the same: weights, gradients, momentum and variance.
pub const TRAINING_BYTES: Figure = Figure {
    value: 16,
    meaning: "weights, gradients and the states of Adam in mixed precision: 2 + 2 + 4 + 4 + 4 bytes; the paper's example, \
              as others quote it, is 7.5 billion parameters in 120 GB",
    source: Some("https://arxiv.org/abs/1910.02054"),
    dated: "2026-11-15",
};

/// Activations of training in percent of weights, gradients and optimizer states, if the file has no shapes: they depend
/// on batch size and sequence length, so this is only a guess.
pub const TRAINING_PERCENT: Figure = Figure {
    value: 30,
    meaning: "activations kept for the backward pass, which depend on the batch",
    source: None,
    dated: "2026-11-15",
};
