//! Tensors and the ways they travel.
//!
//! A request is looked at once: numbers go from the text of the body straight into the bytes the engine will read,
//! with no tree in between, and binary bodies are not copied at all. Every reader takes bytes from strangers: it never
//! panics, never allocates what the input merely claims, and says where the fault is.
//!
//! | module | what comes in | what goes out |
//! |---|---|---|
//! | [`predict`] | `{"input": …}` | `{"prediction": …, "device": …}` |
//! | [`oip`] | the Open Inference Protocol, with or without binary tensors | the same |
//! | [`npy`] | a file of `numpy.save` | the same |
//! | [`raw`] | the bytes of the elements | the same |
//!
//! All of them make the checks of [`Inference::from_tensors`], so a model sees the same requests whatever the protocol.

mod check;
mod dtype;
mod inference;
pub mod json;
mod malformed;
pub mod npy;
pub mod oip;
pub mod predict;
pub mod raw;
mod signature;
mod tensor;
mod unknown;
mod unwritable;

pub use check::check;
pub use dtype::DType;
pub use inference::{Answer, Inference, Limits, WantedOutput};
pub use malformed::Malformed;
pub use signature::{Signature, TensorSpec};
pub use tensor::{Tensor, TensorError, elements};
pub use unwritable::Unwritable;
