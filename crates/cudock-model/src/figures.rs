//! Figures the estimate rests on, each with where it was read and when; those without a source are assumptions.

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// How much.
    pub value: u64,
    /// What it says.
    pub meaning: &'static str,
    /// Where it was read; none if it is assumed.
    pub source: Option<&'static str>,
    /// The day it was read, or written down.
    pub dated: &'static str,
}

/// Bytes of GPU memory that a process takes before its first tensor: the CUDA context and a framework's kernels and
/// workspaces.
pub const PROCESS: Figure = Figure {
    value: 1_008_000_000,
    meaning: "a process with PyTorch's kernels before its first tensor, measured on a Titan V; with CUDA 11.7 and later, \
              which load kernels when they are used, about 300 MB",
    source: Some("https://github.com/pytorch/pytorch/issues/28394"),
    dated: "2019-10-22",
};

/// What inference adds to the weights, in percent, where the file does not say what lies between input and output.
pub const INFERENCE_PERCENT: Figure = Figure {
    value: 20,
    meaning: "inference adds up to 20 % to the weights of a transformer, its cache for short texts included",
    source: Some("https://huggingface.co/spaces/hf-accelerate/model-memory-usage"),
    dated: "2026-11-15",
};

/// Bytes for each parameter while training with Adam in mixed precision: weights and gradients in 16 bits, and weights,
/// momentum and variance in 32. Training in 32 bits takes as much: weights, gradients, momentum and variance.
pub const TRAINING_BYTES: Figure = Figure {
    value: 16,
    meaning: "weights, gradients and the states of Adam in mixed precision: 2 + 2 + 4 + 4 + 4 bytes; the paper's example, \
              as others quote it, is 7.5 billion parameters in 120 GB",
    source: Some("https://arxiv.org/abs/1910.02054"),
    dated: "2026-11-15",
};

/// What values between input and output take while training, in percent of weights, gradients and states, where the
/// file does not say: it depends on batch and length of texts alone, so this is no more than a guess.
pub const TRAINING_PERCENT: Figure = Figure {
    value: 30,
    meaning: "values kept for the way back, which depend on the batch",
    source: None,
    dated: "2026-11-15",
};
