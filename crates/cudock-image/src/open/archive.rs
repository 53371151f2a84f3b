//! Images in a tar file: OCI archives, and the output of `docker save`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use cudock_registry::daemon;

use super::layout::{docker_manifests, parse_digest, select_by_name, verify_digest, verify_size};
use super::{BlobSource, Bytes, Graph, Image, Layer, LayerData, OpenOptions, Origin, assemble, finish};
use crate::error::ImageError;
use crate::layer::members;
use crate::manifest::{self, Descriptor, ImageConfig};

struct Archive {
    location: String,
    whole: Bytes,
    members: HashMap<String, Range<usize>>,
}

pub(super) fn open(file: &Path, name: Option<&str>, options: &OpenOptions) -> Result<Image, ImageError> {
    read(file, &file.display().to_string(), name, Origin::Archive, options)
}

/// Exports an image from a daemon, which only offers whole archives.
pub(super) fn from_daemon(name: &str, options: &OpenOptions) -> Result<Image, ImageError> {
    let scratch = scratch_file(options)?;
    daemon::export(name, &options.sockets, scratch.as_ref(), options.progress.as_deref())?;
    let mut image = read(&scratch, name, None, Origin::Daemon, options)?;
    image.keep(scratch);
    Ok(image)
}

fn scratch_file(options: &OpenOptions) -> Result<tempfile::TempPath, ImageError> {
    let io_error = |source| ImageError::Io { path: options.scratch.clone(), source };
    fs::create_dir_all(&options.scratch).map_err(io_error)?;
    let file = tempfile::Builder::new().prefix("image-").tempfile_in(&options.scratch).map_err(io_error)?;
    Ok(file.into_temp_path())
}

fn read(
    file: &Path,
    location: &str,
    name: Option<&str>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let map = cudock_map::map(file)?;
    let not_an_image = |reason: String| ImageError::NotAnImage { subject: location.to_owned(), reason };
    if matches!(&map[..], [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]) {
        let scratch = scratch_file(options)?;
        decompress(&map, &scratch).map_err(|error| not_an_image(error.to_string()))?;
        let mut image = read(&scratch, location, name, origin, options)?;
        image.keep(scratch);
        return Ok(image);
    }
    let members = members(&map).map_err(|error| not_an_image(error.to_string()))?;
    let archive = Archive { location: location.to_owned(), whole: Bytes::whole(map), members };
    // Docker writes both manifest.json and index.json today; other tools write only the latter.
    if let Some(manifests) = archive.get("manifest.json") {
        return docker(&archive, &manifests, name, origin, options);
    }
    let index = archive.get("index.json").ok_or_else(|| {
        not_an_image(
            "a tar file without index.json or manifest.json; is it a layer or a root file system?".to_owned(),
        )
    })?;
    let top = select_by_name(&archive, &index, name)?;
    assemble(&archive, &top, origin, options)
}

/// Decompresses an archive that is compressed as a whole, because its members are accessed by offset.
fn decompress(bytes: &[u8], to: &Path) -> io::Result<()> {
    let mut decoder = crate::layer::decoder(bytes)?;
    let mut file = File::create(to)?;
    io::copy(&mut decoder, &mut file)?;
    file.flush()
}

/// The configuration and the layers, by name, of an image in an archive of docker.
fn docker_parts(
    archive: &Archive,
    manifests: &[u8],
    name: Option<&str>,
) -> Result<(Bytes, Vec<(String, Bytes)>), ImageError> {
    let location = &archive.location;
    let invalid = |message: String| ImageError::document(location, message);
    let images = docker_manifests(location, manifests)?;
    let tags = |image: &super::layout::DockerManifest| image.repo_tags.clone().unwrap_or_default();
    let all_tags = || images.iter().flat_map(tags).collect();
    let image = match (name, images.as_slice()) {
        (Some(name), _) => {
            let named = images.iter().find(|image| tags(image).iter().any(|tag| tag == name));
            named.ok_or_else(|| ImageError::NoName {
                location: location.clone(),
                requested: name.to_owned(),
                names: all_tags(),
            })?
        }
        (None, [only]) => only,
        (None, []) => return Err(invalid("manifest.json lists no image".to_owned())),
        (None, _) => return Err(ImageError::Several { location: location.clone(), names: all_tags() }),
    };
    let member =
        |name: &str| archive.get(name).ok_or_else(|| invalid(format!("`{name}` not found in the archive")));
    let layers = image.layers.iter().map(|name| Ok((name.clone(), member(name)?)));
    Ok((member(&image.config)?, layers.collect::<Result<_, ImageError>>()?))
}

fn docker(
    archive: &Archive,
    manifests: &[u8],
    name: Option<&str>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let location = &archive.location;
    let (config, layers) = docker_parts(archive, manifests, name)?;
    let config: ImageConfig = manifest::parse(&format!("{location}: configuration"), &config)?;
    let layers = layers.into_iter().map(|(name, bytes)| {
        let digest =
            name.strip_prefix("blobs/").map_or_else(|| name.clone(), |digest| digest.replace('/', ":"));
        Layer { digest, size: bytes.len() as u64, data: LayerData::Mapped(bytes) }
    });
    finish(location.clone(), config, Vec::new(), layers.collect(), origin, options)
}

/// Everything of an image in an archive.
pub(super) fn graph(file: &Path, name: Option<&str>, options: &OpenOptions) -> Result<Graph, ImageError> {
    let map = cudock_map::map(file)?;
    let location = file.display().to_string();
    let not_an_image = |reason: String| ImageError::NotAnImage { subject: location.clone(), reason };
    if matches!(&map[..], [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]) {
        let scratch = scratch_file(options)?;
        decompress(&map, &scratch).map_err(|error| not_an_image(error.to_string()))?;
        // The mapping of its content outlives the file.
        return graph(&scratch, name, options);
    }
    let members = members(&map).map_err(|error| not_an_image(error.to_string()))?;
    let archive = Archive { location: location.clone(), whole: Bytes::whole(map), members };
    if let Some(manifests) = archive.get("manifest.json") {
        let (config, layers) = docker_parts(&archive, &manifests, name)?;
        return Ok(Graph::of_docker(&config, layers));
    }
    let missing = || not_an_image("a tar file without index.json or manifest.json".to_owned());
    let index = archive.get("index.json").ok_or_else(missing)?;
    Graph::of_index(&archive, &index, name)
}

/// Everything of an image in a daemon.
pub(super) fn graph_from_daemon(name: &str, options: &OpenOptions) -> Result<Graph, ImageError> {
    let scratch = scratch_file(options)?;
    daemon::export(name, &options.sockets, scratch.as_ref(), options.progress.as_deref())?;
    graph(&scratch, None, options)
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
