//! One blob of an image, from the first source that has it.

use std::path::PathBuf;

use cudock_base::{Digest, FileError};
use cudock_http::{Blob, Download, DownloadError};

use crate::client::Client;
use crate::error::{Error, Resource};
use crate::reference::Reference;

impl Client {
    /// The path of a blob in the store, fetched if it is not there. `size` is what the manifest says; not a byte more
    /// is written.
    pub fn blob(&self, reference: &Reference, digest: &Digest, size: u64) -> Result<PathBuf, Error> {
        let item = format!("blob {digest}");
        let check_size = |path: PathBuf| {
            let actual = path.metadata().map_err(FileError::at("read", &path))?.len();
            if actual == size {
                return Ok(path);
            }
            let resource = Box::new(Resource::new(&reference.registry, &reference.repository, &item));
            let reason = format!("it has {actual} bytes, expected {size}");
            Err(Error::WrongSize { resource, reason })
        };
        if let Some(path) = self.store.path_of(digest) {
            return check_size(path);
        }
        self.try_sources(reference, true, &item, |source, retries, resource| {
            let name = digest.to_string();
            let mut partial = match self.store.begin(digest, size, &|| self.progress.waiting(&name))? {
                Blob::Complete(path) => return check_size(path),
                Blob::Partial(partial) => partial,
            };
            let path = format!("blobs/{digest}");
            let download = Download { name: &name, progress: &*self.progress, retries };
            let request = |from_byte| self.session.get(source, &path, None, from_byte, resource);
            download.run(&mut partial, request).map_err(|error| match error {
                DownloadError::Request(error) => error,
                DownloadError::Body(error) => Error::http(resource, error),
                DownloadError::WrongSize(reason) => {
                    Error::WrongSize { resource: Box::new(resource.clone()), reason }
                }
                DownloadError::WrongDigest { expected, actual } => {
                    Error::WrongDigest { resource: Box::new(resource.clone()), expected, actual }
                }
                DownloadError::File(error) => error.into(),
            })
        })
    }
}
