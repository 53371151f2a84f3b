//! Tensors and their wire formats.
//!
//! A request is parsed once: numbers go from the text of the body directly into the bytes that the engine reads,
//! without an intermediate tree, and binary bodies are not copied at all. Every parser takes untrusted input: it never
//! panics, never allocates what the input merely claims, and reports where the error is.
//!
//! | module | request | response |
//! |---|---|---|
//! | [`predict`] | `{"input": …}` | `{"prediction": …, "device": …}` |
//! | [`envelope`] | the same under other keys, for clients of other servers | `{"predictions": …}`, `{"outputs": …}` |
//! | [`csv`] | lines of numbers | the same |
//! | [`oip`] | the Open Inference Protocol, with or without binary tensors | the same |
//! | [`npy`] | a file of `numpy.save` | the same |
//! | [`raw`] | the bytes of the elements | the same |
//!
//! All of them make the checks of [`InferenceRequest::from_tensors`], so a model sees the same requests whatever the
//! protocol.

mod check;
pub mod csv;
mod dtype;
pub mod envelope;
mod error;
mod inference;
pub mod json;
mod limits;
pub mod npy;
pub mod oip;
pub mod predict;
pub mod raw;
mod signature;
mod suggestion;
mod tensor;

pub use check::check;
pub use dtype::DType;
pub use error::request::RequestError;
pub use error::response::ResponseError;
pub use inference::{InferenceRequest, InferenceResponse, RequestedOutput};
pub use limits::RequestLimits;
pub use predict::response_form::ResponseForm;
pub use signature::{Signature, TensorSpec};
pub use tensor::{Tensor, TensorError, elements, rows_range};
