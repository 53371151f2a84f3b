//! Requests and responses, independent of the protocol.

use std::time::Duration;

use crate::json::write::most_bytes;
use crate::{ResponseForm, Signature, Tensor};

/// A request, checked against the signature of its model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferenceRequest {
    /// The client's id.
    pub id: Option<String>,
    /// One tensor per input, in signature order; all have the same number of rows if the model is batched.
    pub inputs: Vec<Tensor>,
    /// Number of rows; 1 if the model is not batched.
    pub rows: usize,
    /// Whether the client sent one row without the row dimension, and expects the same of the response.
    pub single: bool,
    /// The JSON form of the response that the client expects.
    pub form: ResponseForm,
    /// The requested outputs; all, in signature order, if empty.
    pub outputs: Vec<RequestedOutput>,
    /// Whether outputs are binary by default (the protocol's `binary_data_output`).
    pub binary_outputs: bool,
    /// Smaller values run first; 0 by default.
    pub priority: u32,
    /// The client's timeout, if it set one.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedOutput {
    /// Its index in the signature.
    pub index: usize,
    /// Whether it is binary instead of JSON.
    pub binary: bool,
}

/// The outputs of a model: one tensor per output, in signature order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferenceResponse {
    pub outputs: Vec<Tensor>,
}

impl InferenceResponse {
    /// The most bytes of all outputs as JSON or CSV, without what is around them. Each row may have the names of the outputs.
    pub fn most_text(&self, signature: &Signature) -> usize {
        let outputs = self.outputs.iter().zip(&signature.outputs);
        outputs.map(|(tensor, spec)| most_bytes(tensor) + tensor.rows() * (spec.name.len() + 8)).sum()
    }

    /// The bytes of all outputs.
    pub fn size(&self) -> usize {
        self.outputs.iter().map(|tensor| tensor.data().len()).sum()
    }
}
