//! An inference server that keeps the device full.
//!
//! The usual model server runs one request at a time while the device idles, or waits a fixed while for more, and
//! falls over when clients leave or come in crowds. Here three layers that do not know each other share the work:
//! protocols turn bytes into tensors (`http`, `grpc`), a batcher decides what runs together and when, and lanes of an
//! engine run it. A request that cannot be answered in time is refused while that still helps its client; one whose
//! client left is not run; an engine that dies is replaced.

mod aside;
mod error;
mod grpc;
mod http;
mod inflate;
mod log;
mod memory;
mod metrics;
mod model;
mod pace;
mod page;
mod quiet;
mod reply;
mod service;
mod settings;

pub use error::ServeError;
pub use http::{ApiKeys, KeysError, Server, ServerError, TlsError};
pub use log::{Log, LogFormat};
pub use model::{Model, RepositoryError};
pub use service::{LoadError, Service};
pub use settings::{
    DeviceReading, ModelSettings, ModelSettingsFor, ModelSource, ReadDevices, ServeSettings, StartEngine,
    TlsFiles,
};

/// A model of the server, loaded or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    /// The name it is served by.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether it answers.
    pub ready: bool,
    /// Why not.
    pub reason: String,
}

/// Counts of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests answered.
    pub requests: u64,
    /// Rows of those.
    pub rows: u64,
    /// Batches run.
    pub batches: u64,
    /// Requests the engine failed on.
    pub failed: u64,
    /// Nanoseconds requests waited, summed.
    pub queue_ns: u64,
    /// Nanoseconds requests were with the engine, summed.
    pub compute_ns: u64,
    /// Rows of a batch, how many such batches ran, nanoseconds they took.
    pub batch_sizes: Vec<(usize, u64, u64)>,
}
