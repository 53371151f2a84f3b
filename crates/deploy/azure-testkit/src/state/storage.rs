//! A container of blobs.

use std::collections::BTreeMap;

use cudock_base::text::percent;

use crate::wire::form::fields;

/// The path of the container.
pub(crate) const CONTAINER: &str = "/outputs";

/// The blobs of the container by name, and what gives access to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storage {
    pub(crate) signature: String,
    pub(crate) blobs: BTreeMap<String, String>,
}

impl Storage {
    /// The container on a host, with the signature.
    pub(crate) fn url(&self, host: &str) -> String {
        format!("{host}{CONTAINER}?sv=2023-11-03&sr=c&sp=racwl&sig={}", percent::encode(&self.signature))
    }

    pub(crate) fn is_signed(&self, query: &str) -> bool {
        fields(query).iter().any(|(name, value)| name == "sig" && *value == self.signature)
    }

    /// Whether a URL is that of the container, with a signature.
    pub(crate) fn is_container(&self, url: &str) -> bool {
        let (url, query) = url.split_once('?').unwrap_or((url, ""));
        url.ends_with(CONTAINER) && self.is_signed(query)
    }
}
