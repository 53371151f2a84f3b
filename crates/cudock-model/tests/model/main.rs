//! What is read of model files, and what is made of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod any_bytes;
mod estimates;
mod folders;
mod onnx_files;
mod safetensors_files;
mod write;
