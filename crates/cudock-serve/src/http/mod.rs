//! HTTP: routes, requests and responses.

mod handler;
mod infer;
mod info;
mod media;
mod metrics;
mod response;
mod route;
mod server;

pub use server::{Server, ServerError};
