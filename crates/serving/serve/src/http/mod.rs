//! HTTP: routes, requests and responses.

mod dialects;
mod handler;
mod infer;
mod info;
mod media;
mod metrics;
mod openapi;
mod predict_api;
mod response;
mod route;
mod server;
mod telemetry;
mod triton_metrics;

pub(crate) use route::ModelEffect;
pub use server::{Server, ServerError};
