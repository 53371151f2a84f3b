//! Reading model files and estimating memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod any_bytes;
mod directories;
mod estimates;
mod fp16;
mod onnx_files;
mod safetensors_files;
mod write;
