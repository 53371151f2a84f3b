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
pub mod engine_bench;
mod error;
mod load;
pub mod payload;
mod prepare;
pub mod results;
mod run;
mod schedule;
mod search;
mod worker;

pub use client::http_client::{HttpClient, record_expected};
pub use client::http_response::HttpResponse;
pub use client::metadata::{ModelMetadata, model_metadata, model_names};
pub use client::repository::{ModelRepository, ModelsReport};
pub use client::request::LoadRequest;
pub use client::response::BadResponse;
pub use client::server_url::ServerUrl;
pub use error::LoadError;
pub use load::{Load, LoadSettings};
pub use prepare::{Prepared, RequestOptions, prepare};
pub use results::report::{Latency, LoadReport, Timeline};
pub use results::verify::Expected;
pub use run::run;
pub use schedule::Arrivals;
pub use search::{RateSearch, SearchStep, highest_rate};
