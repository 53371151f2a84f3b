//! Requests on their way through the gateway.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod client_request;
pub(crate) mod forward;
pub(crate) mod handler;
pub(crate) mod headers;
pub(crate) mod path;
mod predictions;
pub(crate) mod reads;
pub(crate) mod response_body;
