//! Images in a tar file: OCI archives, and the output of `docker save`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use cudock_base::ScratchDir;
use cudock_registry::daemon;

use super::content::Content;
use super::docker::DockerImage;
use super::image::{Bytes, Layer, LayerData};
use super::layout::{parse_digest, verify_digest, verify_size};
use super::{BlobSource, OpenOptions, listing};
use crate::detect::is_compressed;
use crate::error::ImageError;
use crate::layer::members;
use crate::manifest::Descriptor;

struct Archive {
    location: String,
    whole: Bytes,
    members: HashMap<String, Range<usize>>,
}

pub(super) fn find(file: &Path, name: Option<&str>, options: &OpenOptions) -> Result<Content, ImageError> {
    read(file, &file.display().to_string(), name, options)
}

/// Exports an image from a daemon, which only offers whole archives.
pub(super) fn find_in_daemon(name: &str, options: &OpenOptions) -> Result<Content, ImageError> {
    let scratch = ScratchDir::new(&options.scratch)?;
    let file = scratch.path().join("image.tar");
    daemon::export(name, &options.sockets, &file, options.progress.as_deref())?;
    read(&file, name, None, options)
}

/// Finds an image in a file. Its content stays mapped, so the file itself may be removed afterwards.
fn read(
    file: &Path,
    location: &str,
    name: Option<&str>,
    options: &OpenOptions,
) -> Result<Content, ImageError> {
    let map = cudock_mmap::map(file)?;
    let not_an_image = |reason: String| ImageError::NotAnImage { subject: location.to_owned(), reason };
    if is_compressed(&map) {
        let scratch = ScratchDir::new(&options.scratch)?;
        let file = scratch.path().join("image.tar");
        decompress(&map, &file).map_err(|error| not_an_image(error.to_string()))?;
        return read(&file, location, name, options);
    }
    let members = members(&map).map_err(|error| not_an_image(error.to_string()))?;
    let archive = Archive { location: location.to_owned(), whole: Bytes::whole(map), members };
    // Docker writes both manifest.json and index.json today; other tools write only the latter.
    if let Some(manifests) = archive.get("manifest.json") {
        return Ok(Content::docker(DockerImage::find(location, &manifests, name, |name| archive.get(name))?));
    }
    let index = archive.get("index.json").ok_or_else(|| {
        not_an_image(
            "a tar file without index.json or manifest.json; is it a layer or a root file system?".to_owned(),
        )
    })?;
    let listed = listing::find(&archive, &index, name)?;
    Ok(Content::Documents { store: Box::new(archive), listed })
}

/// Decompresses an archive that is compressed as a whole, because its members are accessed by offset.
fn decompress(bytes: &[u8], to: &Path) -> io::Result<()> {
    let mut decoder = crate::layer::decoder(bytes)?;
    let mut file = File::create(to)?;
    io::copy(&mut decoder, &mut file)?;
    file.flush()
}

impl Archive {
    fn get(&self, name: &str) -> Option<Bytes> {
        let range = self.members.get(name)?.clone();
        Some(Bytes { map: self.whole.map.clone(), range })
    }

    fn blob(&self, descriptor: &Descriptor) -> Result<Bytes, ImageError> {
        let digest = parse_digest(&self.location, descriptor)?;
        let name = format!("blobs/{}/{}", digest.algorithm().name(), digest.hex());
        let missing = || ImageError::document(&self.location, format!("`{name}` not found in the archive"));
        let bytes = self.get(&name).ok_or_else(missing)?;
        verify_size(&self.location, descriptor, bytes.len())?;
        Ok(bytes)
    }
}

impl BlobSource for Archive {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let bytes = self.blob(descriptor)?;
        verify_digest(&self.location, descriptor, &bytes)?;
        Ok(bytes.to_vec())
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let bytes = self.blob(descriptor)?;
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, data: LayerData::Mapped(bytes) })
    }
}
