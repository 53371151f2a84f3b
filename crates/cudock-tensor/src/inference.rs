//! A request and its answer, whatever protocol they came by.

use std::time::Duration;

use crate::Tensor;

/// One request, checked against the signature of the model it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Inference {
    /// What the client calls it.
    pub id: Option<String>,
    /// One tensor for each input of the signature, in its order; all have the same number of rows if the model is
    /// batched.
    pub inputs: Vec<Tensor>,
    /// Rows it takes of a batch; one if the model is not batched.
    pub rows: usize,
    /// Whether the client sent one row without the dimension that counts rows, and wants its answer likewise.
    pub single: bool,
    /// The outputs it wants; all of them, in the signature's order, if empty.
    pub outputs: Vec<WantedOutput>,
    /// Whether outputs not named are wanted as binary (the protocol's `binary_data_output`).
    pub binary_outputs: bool,
    /// Smaller is sooner; zero if the client did not say.
    pub priority: u32,
    /// How long the client will wait, if it said so.
    pub timeout: Option<Duration>,
}

/// An output a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedOutput {
    /// Its place in the signature.
    pub index: usize,
    /// Whether it is wanted as binary rather than as JSON.
    pub binary: bool,
}

/// What the model gave: one tensor for each output of the signature, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The tensors.
    pub outputs: Vec<Tensor>,
}

/// How much of one request is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a body, after decompression.
    pub body: usize,
    /// Most dimensions of a tensor.
    pub rank: usize,
    /// Most elements of a tensor.
    pub elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 64 << 20, rank: 16, elements: 64 << 20 }
    }
}
