//! HTTP: connections, routes, bodies and responses.

mod body;
mod connection;
mod descriptors;
mod infer;
mod info;
mod keys;
mod monitor;
mod response;
mod route;
mod server;
mod stream;
mod tls;

pub use keys::{ApiKeys, KeysError};
pub use server::{Server, ServerError};
pub use tls::TlsError;
