//! The Open Inference Protocol v2 over REST, with Triton's binary tensor data.
//!
//! A body is a JSON head, and after it the bytes of the tensors that the head calls binary, in the head's order. How
//! long the head is stands in the HTTP header [`HEADER_LENGTH`]; without it the whole body is JSON.

mod parts;
mod read;
mod write;

pub use read::read;
pub use write::{Reply, write};

/// The HTTP header that tells how long the JSON head of a body is.
pub const HEADER_LENGTH: &str = "inference-header-content-length";
