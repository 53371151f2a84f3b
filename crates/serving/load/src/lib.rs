//! A load generator for model servers.
//!
//! A generator must cost less than the server it measures, or it measures itself. So requests are built completely
//! before the run, connections are served by a bare event loop, and responses are skipped except for a sample that is
//! compared with the response to the same request sent alone.
//!
//! A generator must not wait for the server, either: if a slow response delays the next request, the requests that were
//! never sent are missing in the percentiles (coordinated omission). The open loop ([`Load::Open`]) measures latency
//! from the intended send time of a request, whether or not a connection was free then.

mod client;
mod connection;
mod counters;
pub mod engine_bench;
mod error;
mod metadata;
pub mod payload;
pub mod plot;
mod poll;
mod prepare;
mod report;
mod repository;
mod request;
mod response;
mod run;
mod schedule;
mod search;
mod server_url;
pub mod text;
mod verify;
mod worker;

pub use client::{HttpClient, HttpResponse, record_expected};
pub use error::LoadError;
pub use metadata::{ModelMetadata, model_metadata, model_names};
pub use prepare::{Prepared, RequestOptions, prepare};
pub use report::{Latency, LoadReport, Timeline};
pub use repository::{ModelRepository, ModelsReport};
pub use request::LoadRequest;
pub use response::BadResponse;
pub use run::{Load, LoadSettings, run};
pub use schedule::Arrivals;
pub use search::{RateSearch, SearchStep, highest_rate};
pub use server_url::ServerUrl;
pub use verify::Expected;
