//! HTTP: routes, requests and responses.

mod handler;
mod infer;
mod info;
mod metrics;
mod response;
mod route;
mod server;

pub use server::{Server, ServerError};
