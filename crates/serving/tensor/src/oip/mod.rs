//! The Open Inference Protocol v2 over REST, with Triton's binary tensor data.
//!
//! A body is a JSON head, followed by the bytes of the binary tensors in the order of the head. The length of the head
//! is in the HTTP header [`HEADER_LENGTH`]; without it the whole body is JSON.

mod fields;
mod read;
mod write;

pub use read::read;
pub use write::{ResponseOptions, write};

/// The HTTP header with the length of the JSON head.
pub const HEADER_LENGTH: &str = "inference-header-content-length";
