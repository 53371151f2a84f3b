//! Images in a tar file: OCI archives, and the output of `docker save`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use cudock_base::ScratchDir;
use cudock_registry::daemon;

use super::image::{Bytes, Image, Layer, LayerData};
use super::layout::{parse_digest, verify_digest, verify_size};
use super::resolved::Content;
use super::{BlobSource, Graph, ImageSource, OpenOptions, listing};
use crate::error::ImageError;
use crate::layer::members;
use crate::manifest::{self, Descriptor, ImageConfig, Platform};

struct Archive {
    location: String,
    whole: Bytes,
    members: HashMap<String, Range<usize>>,
}

/// An image in an archive of docker: its configuration and its layers, by name.
pub(super) struct DockerImage {
    pub(super) location: String,
    config: Bytes,
    layers: Vec<(String, Bytes)>,
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
        return Ok(Content::docker(DockerImage::find(&archive, &manifests, name)?));
    }
    let index = archive.get("index.json").ok_or_else(|| {
        not_an_image(
            "a tar file without index.json or manifest.json; is it a layer or a root file system?".to_owned(),
        )
    })?;
    let listed = listing::find(&archive, &index, name)?;
    Ok(Content::Documents { store: Box::new(archive), listed })
}

/// Whether a file starts like one that is compressed as a whole.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    matches!(start, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..])
}

/// Decompresses an archive that is compressed as a whole, because its members are accessed by offset.
fn decompress(bytes: &[u8], to: &Path) -> io::Result<()> {
    let mut decoder = crate::layer::decoder(bytes)?;
    let mut file = File::create(to)?;
    io::copy(&mut decoder, &mut file)?;
    file.flush()
}

/// An entry of `manifest.json`, which docker used before OCI layouts.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerManifest {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl DockerManifest {
    fn tags(&self) -> &[String] {
        self.repo_tags.as_deref().unwrap_or_default()
    }
}

impl DockerImage {
    /// The only image in an archive, or the one with this name.
    fn find(archive: &Archive, manifests: &[u8], name: Option<&str>) -> Result<Self, ImageError> {
        let location = &archive.location;
        let invalid = |message: String| ImageError::document(location, message);
        let images: Vec<DockerManifest> = manifest::parse(&format!("{location}: manifest.json"), manifests)?;
        let all_tags = || images.iter().flat_map(|image| image.tags().iter().cloned()).collect();
        let image = match (name, images.as_slice()) {
            (Some(name), _) => {
                let mut named = images.iter().filter(|image| image.tags().iter().any(|tag| tag == name));
                match (named.next(), named.next()) {
                    (Some(image), None) => image,
                    (Some(_), Some(_)) => {
                        return Err(invalid(format!("manifest.json lists several images named {name}")));
                    }
                    (None, _) => {
                        let (location, requested) = (location.clone(), name.to_owned());
                        return Err(ImageError::NoName { location, requested, names: all_tags() });
                    }
                }
            }
            (None, [only]) => only,
            (None, []) => return Err(invalid("manifest.json lists no image".to_owned())),
            (None, _) => return Err(ImageError::Several { location: location.clone(), names: all_tags() }),
        };
        let member = |name: &str| {
            archive.get(name).ok_or_else(|| invalid(format!("`{name}` not found in the archive")))
        };
        let layers = image.layers.iter().map(|name| Ok((name.clone(), member(name)?)));
        let layers = layers.collect::<Result<_, ImageError>>()?;
        Ok(Self { location: location.clone(), config: member(&image.config)?, layers })
    }

    pub(super) fn open(
        &self,
        source: &ImageSource,
        platform: Option<&Platform>,
    ) -> Result<Image, ImageError> {
        let config: ImageConfig =
            manifest::parse(&format!("{}: configuration", self.location), &self.config)?;
        let layers = self.layers.iter().map(|(name, bytes)| {
            let digest =
                name.strip_prefix("blobs/").map_or_else(|| name.clone(), |digest| digest.replace('/', ":"));
            Layer { digest, size: bytes.len() as u64, data: LayerData::Mapped(bytes.clone()) }
        });
        let (name, source) = (self.location.clone(), Some(source.clone()));
        let image = Image::new(name, source, config, layers.collect(), Vec::new(), None);
        image.for_platform(platform)
    }

    /// The image with the manifest that it would be copied with.
    pub(super) fn graph(&self) -> Graph {
        Graph::of_docker(&self.config, &self.layers)
    }
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
