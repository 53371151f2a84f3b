//! Images that were fetched to this machine.

use std::sync::Arc;

use cudock_base::Environment;
use cudock_registry::tags::{self, KeptTag};
use cudock_registry::{Client, Options, Reference, user_store};

use super::{ImageSource, OpenOptions, ResolvedImage};
use crate::error::ImageError;

/// A tag in the cache.
#[derive(Debug)]
pub struct CachedImage {
    /// The tag, what it resolved to, and when it was fetched.
    pub tag: KeptTag,
    /// The stored size of its layers; `None` if its manifest or configuration is missing.
    pub bytes: Option<u64>,
    /// Whether all layers are in the cache.
    pub complete: bool,
}

/// All tags in the user's cache.
pub fn cached_images(environment: &Environment) -> Result<Vec<CachedImage>, ImageError> {
    let store = user_store(environment)?;
    let mut settings = Options::new(store.clone());
    settings.offline = true;
    let client = Client::new(settings).ok().map(Arc::new);
    let cached = |tag: KeptTag| {
        let reference = Reference { digest: Some(tag.digest.clone()), ..tag.reference.clone() };
        let options = OpenOptions {
            platform: None,
            client: client.clone(),
            sockets: Vec::new(),
            progress: None,
            scratch: store.directory().join("scratch"),
        };
        let found = ResolvedImage::resolve(&ImageSource::Registry(reference), &options);
        let opened = found.and_then(|image| image.open()).ok();
        CachedImage {
            bytes: opened.as_ref().map(|image| image.layers.iter().map(|layer| layer.size).sum()),
            complete: opened.is_some_and(|image| image.bytes_to_fetch() == 0),
            tag,
        }
    };
    Ok(tags::list(&store).into_iter().map(cached).collect())
}
