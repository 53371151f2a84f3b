//! Requests that share a batch: which may, how they are joined, and how the answer is split.

mod answer;
pub(crate) mod batch;
pub(crate) mod batch_headers;
mod batchable;
mod exchange;
pub(crate) mod forms;
pub(crate) mod predict;
pub(crate) mod queue;
pub mod rows;
mod scan;
