//! An image in one tar file: an OCI layout, or what `docker save` writes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use cudock_registry::daemon;

use super::layout::{digest_of, docker_manifests, genuine, named, right_size};
use super::{Bytes, Image, Layer, OpenOptions, Origin, Place, Store, assemble, finish};
use crate::error::ImageError;
use crate::layer::members;
use crate::manifest::{self, Config, Descriptor};

struct Archive {
    place: String,
    whole: Bytes,
    members: HashMap<String, Range<usize>>,
}

pub(super) fn open(file: &Path, name: Option<&str>, options: &OpenOptions) -> Result<Image, ImageError> {
    read(file, &file.display().to_string(), name, Origin::Archive, options)
}

/// A daemon hands images out as archives only, whole.
pub(super) fn from_daemon(name: &str, options: &OpenOptions) -> Result<Image, ImageError> {
    let scratch = scratch_file(options)?;
    daemon::export(name, &options.sockets, scratch.as_ref(), options.progress.as_deref())?;
    let mut image = read(&scratch, name, None, Origin::Daemon, options)?;
    image.keep(scratch);
    Ok(image)
}

fn scratch_file(options: &OpenOptions) -> Result<tempfile::TempPath, ImageError> {
    let wrong = |source| ImageError::Io { path: options.scratch.clone(), source };
    fs::create_dir_all(&options.scratch).map_err(wrong)?;
    let file = tempfile::Builder::new().prefix("image-").tempfile_in(&options.scratch).map_err(wrong)?;
    Ok(file.into_temp_path())
}

fn read(
    file: &Path,
    place: &str,
    name: Option<&str>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let map = cudock_map::map(file)?;
    let not_an_image = |reason: String| ImageError::NotAnImage { subject: place.to_owned(), reason };
    if matches!(&map[..], [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]) {
        let scratch = scratch_file(options)?;
        decompress(&map, &scratch).map_err(|error| not_an_image(error.to_string()))?;
        let mut image = read(&scratch, place, name, origin, options)?;
        image.keep(scratch);
        return Ok(image);
    }
    let members = members(&map).map_err(|error| not_an_image(error.to_string()))?;
    let archive = Archive { place: place.to_owned(), whole: Bytes::whole(map), members };
    // Docker writes both since it keeps layouts, and other tools write the layout alone.
    if let Some(manifests) = archive.get("manifest.json") {
        return docker(&archive, &manifests, name, origin, options);
    }
    let index = archive.get("index.json").ok_or_else(|| {
        not_an_image(
            "a tar file without index.json or manifest.json; is it a layer, or a root file system?"
                .to_owned(),
        )
    })?;
    let top = named(&archive, &index, name)?;
    assemble(&archive, &top, origin, options)
}

/// Archives that were compressed as a whole are opened out first: their members lie anywhere in them.
fn decompress(bytes: &[u8], to: &Path) -> io::Result<()> {
    let mut decoder = crate::layer::decoder(bytes)?;
    let mut file = File::create(to)?;
    io::copy(&mut decoder, &mut file)?;
    file.flush()
}

fn docker(
    archive: &Archive,
    manifests: &[u8],
    name: Option<&str>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let place = &archive.place;
    let wrong = |message: String| ImageError::Document { place: place.clone(), message };
    let images = docker_manifests(place, manifests)?;
    let tags = |image: &super::layout::DockerManifest| image.repo_tags.clone().unwrap_or_default();
    let several =
        || ImageError::Several { place: place.clone(), names: images.iter().flat_map(tags).collect() };
    let image = match (name, images.as_slice()) {
        (Some(name), _) => {
            let named = images.iter().find(|image| tags(image).iter().any(|tag| tag == name));
            named.ok_or_else(|| ImageError::NoName {
                place: place.clone(),
                wanted: name.to_owned(),
                names: images.iter().flat_map(tags).collect(),
            })?
        }
        (None, [only]) => only,
        (None, []) => return Err(wrong("manifest.json names no image".to_owned())),
        (None, _) => return Err(several()),
    };
    let member =
        |name: &str| archive.get(name).ok_or_else(|| wrong(format!("`{name}` is not in the archive")));
    let config: Config = manifest::parse(&format!("{place}: configuration"), &member(&image.config)?)?;
    let layers = image.layers.iter().map(|name| {
        let bytes = member(name)?;
        let digest =
            name.strip_prefix("blobs/").map_or_else(|| name.clone(), |digest| digest.replace('/', ":"));
        Ok(Layer { digest, size: bytes.len() as u64, place: Place::Mapped(bytes) })
    });
    let layers = layers.collect::<Result<_, ImageError>>()?;
    finish(place.clone(), config, Vec::new(), layers, origin, options)
}

impl Archive {
    fn get(&self, name: &str) -> Option<Bytes> {
        let range = self.members.get(name)?.clone();
        Some(Bytes { map: self.whole.map.clone(), range })
    }

    fn blob(&self, descriptor: &Descriptor) -> Result<Bytes, ImageError> {
        let digest = digest_of(&self.place, descriptor)?;
        let name = format!("blobs/{}/{}", digest.algorithm().name(), digest.hex());
        let bytes = self.get(&name).ok_or_else(|| ImageError::Document {
            place: self.place.clone(),
            message: format!("`{name}` is not in the archive"),
        })?;
        right_size(&self.place, descriptor, bytes.len())?;
        Ok(bytes)
    }
}

impl Store for Archive {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let bytes = self.blob(descriptor)?;
        genuine(&self.place, descriptor, &bytes)?;
        Ok(bytes.to_vec())
    }

    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError> {
        let bytes = self.blob(descriptor)?;
        Ok(Layer { digest: descriptor.digest.clone(), size: descriptor.size, place: Place::Mapped(bytes) })
    }
}
