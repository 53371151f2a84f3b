//! An inference server that keeps the device busy.
//!
//! The usual model server runs one request at a time while the device idles, or waits a fixed time for more, and fails
//! under bursts and disconnecting clients. Here three independent layers share the work: protocols turn bytes into
//! tensors (`http`, `grpc`), a batcher decides what runs together and when, and the lanes of an engine run it. A
//! request that cannot finish in time is rejected while that still helps its client; the request of a client that
//! disconnected does not run; an engine that dies is replaced.

mod error;
mod grpc;
mod http;
mod metrics;
mod model;
mod page;
mod proc;
mod read_tracker;
mod reply;
mod service;
mod settings;

use error::ServeError;
pub use http::{Server, ServerError};
pub use model::RepositoryError;
pub use service::{LoadError, ModelService};
pub use settings::{
    DeviceReading, Dialects, EngineKind, ModelSettings, ModelSettingsFor, ModelSource, ReadDevices,
    ServeSettings, SettingsError, StartEngine, VertexRoutes, locate_models, options_in, platform_model,
    platform_options,
};

/// Number of copies of a large request's tensors while it runs: the tensors and the engine's input.
const COPIES: usize = 2;

/// A model in the list of models, loaded or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelListing {
    pub name: String,
    pub version: String,
    /// Whether it is loaded and accepts requests.
    pub ready: bool,
    /// The reason if it does not.
    pub reason: String,
}
