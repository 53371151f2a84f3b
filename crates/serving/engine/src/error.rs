//! Errors of engines.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("cannot use the engine library {}: {reason}", library.display())]
    Library { library: PathBuf, reason: String },
    #[error("cannot load {}: {reason}", model.display())]
    Load { model: PathBuf, reason: String },
    /// The batch failed; the engine can run the next one.
    #[error("the engine failed: {0}")]
    Failed(String),
    /// Nothing was run, because the model does not take some rows; the engine can run the others.
    #[error("the model does not take {}", show_rows(.0))]
    InvalidRows(Vec<InvalidRow>),
    /// The engine process has exited; all its lanes are unusable.
    #[error("the engine died ({0})")]
    Died(String),
    /// The same, by a signal that others send, as the kernel does when memory is out: no fault of the batch.
    #[error("the engine died ({0})")]
    Killed(String),
    /// The engine timed out and was killed; all its lanes are unusable.
    #[error("the engine timed out after {} ms and was killed", .0.as_millis())]
    TimedOut(Duration),
    #[error("cannot allocate memory for a batch of {0} bytes")]
    OutOfMemory(usize, #[source] std::io::Error),
    /// The batch does not fit into the device's memory; the engine can run a smaller one.
    #[error("the batch does not fit into the memory of the device: {0}")]
    DeviceMemory(String),
    /// The model would run on the CPU, and a GPU is required; why none is used.
    #[error("a GPU is required and not used: {0}")]
    NoGpu(String),
}

/// A row that the model does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRow {
    /// Its index in the batch.
    pub row: usize,
    pub reason: String,
}

fn show_rows(rows: &[InvalidRow]) -> String {
    let rows = rows.iter().map(|InvalidRow { row, reason }| format!("row {row} ({reason})"));
    rows.collect::<Vec<_>>().join(", ")
}

impl EngineError {
    /// Whether the engine must be restarted.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Died(_) | Self::Killed(_) | Self::TimedOut(_))
    }
}
