//! Requests to a server: single ones before the load, and those of the load.

pub(crate) mod connection;
pub(crate) mod http_client;
pub(crate) mod http_response;
pub(crate) mod metadata;
pub(crate) mod poll;
pub(crate) mod repository;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod server_url;
