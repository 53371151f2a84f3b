//! Requests as they arrive, and what they are answered.

pub(crate) mod answer;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod sign_in;
