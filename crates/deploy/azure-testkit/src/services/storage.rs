//! Blob storage: one container, which a signature gives access to.

use std::collections::BTreeMap;

use cudock_base::text::percent;

use crate::cloud::Cloud;
use crate::time::http_date;
use crate::wire::answer::Answer;
use crate::wire::route::fields;

/// The path of the container.
const CONTAINER: &str = "/outputs";

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

    fn is_signed(&self, query: &str) -> bool {
        fields(query).iter().any(|(name, value)| name == "sig" && *value == self.signature)
    }

    /// Whether a URL is that of the container, with a signature.
    pub(crate) fn is_container(&self, url: &str) -> bool {
        let (url, query) = url.split_once('?').unwrap_or((url, ""));
        url.ends_with(CONTAINER) && self.is_signed(query)
    }
}

impl Cloud {
    /// A request to the container, if it is one.
    pub(crate) fn blob_service(&self, method: &str, path: &str, query: &str) -> Option<Answer> {
        let rest = path.strip_prefix(CONTAINER)?;
        let refuse = |status: u16, code: &str| {
            let body =
                format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>");
            Some(Answer { status, ..Answer::text(body) }.with("x-ms-error-code", code))
        };
        if !self.storage.is_signed(query) {
            return refuse(403, "AuthenticationFailed");
        }
        let blobs = &self.storage.blobs;
        match (method, rest.strip_prefix('/')) {
            ("GET", None) if query.contains("comp=list") => {
                let written = http_date(self.now);
                let blob = |name: &String| {
                    format!(
                        "<Blob><Name>{name}</Name><Properties><Last-Modified>{written}</Last-Modified></Properties></Blob>"
                    )
                };
                let list: String = blobs.keys().map(blob).collect();
                Some(Answer::text(format!("<EnumerationResults><Blobs>{list}</Blobs></EnumerationResults>")))
            }
            ("GET", Some(name)) => {
                let text = percent::decode(name).and_then(|name| blobs.get(&name));
                text.map_or_else(|| refuse(404, "BlobNotFound"), |text| Some(Answer::text(text.clone())))
            }
            _ => refuse(405, "UnsupportedHttpVerb"),
        }
    }
}
