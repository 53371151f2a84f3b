//! Errors of requests and of responses.

pub(crate) mod request;
pub(crate) mod response;
