//! HTTP: connections, routes, bodies and answers.

mod activity;
mod answer;
mod body;
mod connection;
mod descriptors;
mod infer;
mod keys;
mod report;
mod route;
mod server;
mod stream;
mod tls;

pub use keys::{ApiKeys, KeysError};
pub use server::{Server, ServerError};
pub use tls::TlsError;
