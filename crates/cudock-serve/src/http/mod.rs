//! HTTP: connections, routes, bodies and answers.

mod activity;
mod answer;
mod body;
mod connection;
mod infer;
mod keys;
mod report;
mod route;
mod server;
mod tls;

pub use keys::ApiKeys;
pub use server::{Server, ServerError};
pub use tls::TlsError;
