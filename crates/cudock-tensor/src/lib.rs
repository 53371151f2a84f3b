//! Tensors and the ways they travel.
//!
//! A request is looked at once: numbers go from the text of the body straight into the bytes the engine will read,
//! with no tree in between, and binary bodies are not copied at all. Every reader takes bytes from strangers: it never
//! panics, never allocates what the input merely claims, and says where the fault is.

mod dtype;
mod inference;
mod signature;
mod tensor;

pub use dtype::DType;
pub use inference::{Answer, Inference, Limits, WantedOutput};
pub use signature::{Signature, TensorSpec};
pub use tensor::{Tensor, TensorError, elements};
