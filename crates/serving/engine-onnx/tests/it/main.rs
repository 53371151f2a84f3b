//! Tests ONNX Runtime in this process, on the CPU and on a GPU.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod fp16;
mod gpu;
mod onnx;
#[path = "../support/mod.rs"]
mod support;
