//! Requests, and why they are rejected.

pub(crate) mod body;
pub(crate) mod compression;
pub(crate) mod content_encoding;
mod host;
pub(crate) mod keys;
pub(crate) mod origin;
pub(crate) mod rejection;
pub(crate) mod request_rules;
