//! A directory that outlives evictions, and where it is kept.

use cudock_base::text::percent;
use cudock_base::{Secret, Timestamp, UsageError};

/// A directory in the container whose content survives an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoints {
    pub directory: String,
    /// The storage that keeps it; none for services that have storage of their own.
    pub storage: Option<BlobContainer>,
}

/// A container of blobs, and a signature that allows to read, write and list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobContainer {
    /// The URL without the signature: `https://ACCOUNT.blob.core.windows.net/CONTAINER`.
    url: String,
    signature: Secret,
}

impl BlobContainer {
    /// Reads the URL of a container with its shared access signature from a variable.
    pub fn parse(variable: &str, text: &str) -> Result<Self, UsageError> {
        let wrong = || {
            UsageError::new(format!("{variable} is not the URL of a blob container with its signature"))
                .hint("https://ACCOUNT.blob.core.windows.net/CONTAINER?SIGNATURE, with the permissions racwl")
        };
        let (url, signature) = text.trim().split_once('?').ok_or_else(wrong)?;
        let container = Self { url: url.trim_end_matches('/').to_owned(), signature: Secret::new(signature) };
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let is_whole = signature.contains("sig=") && is_name(container.name());
        let is_local = ["http://127.0.0.1:", "http://localhost:"].iter().any(|host| url.starts_with(host));
        if is_whole && (is_local || url.starts_with("https://") && is_name(container.account())) {
            Ok(container)
        } else {
            Err(wrong())
        }
    }

    /// The URL without the signature.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn account(&self) -> &str {
        let host = self.url.split_once("://").map_or("", |(_, rest)| rest);
        host.split(['.', '/']).next().unwrap_or_default()
    }

    /// The name of the container.
    pub(crate) fn name(&self) -> &str {
        let host = self.url.split_once("://").map_or("", |(_, rest)| rest);
        host.split_once('/').map_or("", |(_, path)| path.rsplit('/').next().unwrap_or_default())
    }

    /// The signature with the question mark, as Batch wants it.
    pub(crate) fn signature(&self) -> Secret {
        Secret::new(format!("?{}", self.signature.expose()))
    }

    /// The URL of a blob. It grants access by itself.
    pub fn blob(&self, name: &str) -> Secret {
        let name: Vec<String> = name.split('/').map(percent::encode).collect();
        Secret::new(format!("{}/{}?{}", self.url, name.join("/"), self.signature.expose()))
    }

    /// The URL of the list of blobs whose names begin like this.
    fn list(&self, prefix: &str) -> Secret {
        let query = format!("restype=container&comp=list&prefix={}", percent::encode(prefix));
        Secret::new(format!("{}?{query}&{}", self.url, self.signature.expose()))
    }
}

impl Checkpoints {
    /// The blob of a machine's checkpoints.
    pub fn archive(name: &str) -> String {
        format!("{name}.tar")
    }

    /// The URL that lists what a deployment of this name has kept; none if the service keeps it.
    /// Batch mounts the whole container.
    pub fn question(&self, name: &str, is_mounted: bool) -> Option<Secret> {
        let prefix = if is_mounted { String::new() } else { Self::archive(name) };
        Some(self.storage.as_ref()?.list(&prefix))
    }

    /// When something was written last, according to a list of blobs.
    pub fn last_written(list: &str) -> Option<Timestamp> {
        let dates = list.split("<Last-Modified>").skip(1).filter_map(|rest| rest.split('<').next());
        dates.filter_map(Timestamp::parse_http).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_container_with_a_signature_is_storage() {
        let signature = format!("sv=2023&{}={}", "sig", "x%2F");
        let container =
            BlobContainer::parse("X", &format!("https://lab.blob.core.windows.net/runs/?{signature}"))
                .unwrap();
        assert_eq!((container.account(), container.name()), ("lab", "runs"));
        assert_eq!(
            *container.blob("a b/c.tar").expose(),
            format!("https://lab.blob.core.windows.net/runs/a%20b/c.tar?{signature}")
        );
        assert!(!format!("{container:?}").contains("x%2F"));
        for wrong in [
            "https://lab.blob.core.windows.net/runs".to_owned(),
            format!("https://lab.blob.core.windows.net?{signature}"),
            format!("http://lab.blob.core.windows.net/runs?{signature}"),
            "https://lab.blob.core.windows.net/runs?sv=1".to_owned(),
            format!("https://lab.blob.core.windows.net/r;x?{signature}"),
        ] {
            assert!(BlobContainer::parse("X", &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_newest_blob_decides() {
        let blob = |day: &str| format!("<Blob><Last-Modified>{day}</Last-Modified></Blob>");
        let list =
            blob("Mon, 16 Nov 2026 01:02:03 GMT") + &blob("Tue, 17 Nov 2026 01:02:03 GMT") + &blob("never");
        assert_eq!(Checkpoints::last_written(&list), Timestamp::parse("2026-11-17T01:02:03Z"));
        assert_eq!(Checkpoints::last_written("<Last-Modified>"), None);
        assert_eq!(Checkpoints::last_written(""), None);
    }
}
