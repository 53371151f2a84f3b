//! Requests as they arrive, and the responses to them.

pub(crate) mod answer;
pub(crate) mod form;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod sign_in;
