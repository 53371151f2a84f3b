//! Load on a model server, and what came of it.
//!
//! A generator must cost less than the server it measures, or it measures itself. So requests are complete to the last
//! byte before the load begins, connections are served by a bare event loop, and answers are stepped over but for a
//! few that are compared with what the server said when it was asked alone.
//!
//! A generator must not wait with the server, either: where a slow answer delays the next request, the requests that
//! were never sent are missing in the percentiles. The open loop ([`Load::Open`]) counts latency from the time a
//! request was meant to be sent, whether or not a connection was free then.

mod connection;
pub mod engine_bench;
mod error;
mod exchange;
mod metadata;
pub mod payload;
pub mod plot;
mod poll;
mod prepare;
mod report;
mod request;
mod response;
mod rng;
mod run;
mod schedule;
mod search;
mod tally;
mod target;
mod verify;
mod worker;

pub use error::LoadError;
pub use exchange::{Dialogue, Response, learn_answers};
pub use metadata::{ModelMetadata, model_metadata, model_names};
pub use prepare::{Prepared, RequestOptions, prepare};
pub use report::{Latency, Report, Timeline};
pub use request::Request;
pub use response::BadResponse;
pub use run::{Load, Settings, run};
pub use schedule::Arrivals;
pub use search::{Search, Step, highest_rate};
pub use target::Target;
pub use verify::Expected;
