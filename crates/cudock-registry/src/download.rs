//! One blob of an image: from the first of its places that has it.

use std::path::PathBuf;

use crate::client::Client;
use crate::digest::Digest;
use crate::error::{Asked, RegistryError};
use crate::reference::Reference;
use crate::store::Begun;
use crate::transfer::Transfer;

/// See [`Client::blob`].
pub(crate) fn blob(
    client: &Client,
    reference: &Reference,
    digest: &Digest,
    size: u64,
) -> Result<PathBuf, RegistryError> {
    let what = format!("blob {digest}");
    let asked = || {
        let Reference { registry, repository, .. } = reference;
        Box::new(Asked { registry: registry.clone(), repository: repository.clone(), what: what.clone() })
    };
    let of_right_size = |path: PathBuf| {
        let there = path
            .metadata()
            .map_err(|source| RegistryError::Store { doing: "read", path: path.clone(), source })?
            .len();
        if there == size {
            return Ok(path);
        }
        let reason = format!("it has {there} bytes, and {size} were announced");
        Err(RegistryError::WrongSize { asked: asked(), reason })
    };
    if let Some(path) = client.store.path_of(digest) {
        return of_right_size(path);
    }
    client.at_some_place(reference, true, &what, |place, retries, asked| {
        let mut partial =
            match client.store.begin(digest, size, &|| client.progress.waiting(&digest.to_string()))? {
                Begun::Complete(path) => return of_right_size(path),
                Begun::Partial(partial) => partial,
            };
        let below = format!("blobs/{digest}");
        let transfer = Transfer {
            get: &|from_byte| client.session.get(place, &below, None, from_byte, asked),
            name: &digest.to_string(),
            asked,
            progress: &*client.progress,
            retries,
        };
        transfer.run(&mut partial)
    })
}
