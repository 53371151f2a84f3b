//! Where images can be written.

use std::fmt;
use std::path::{Path, PathBuf};

use cudock_registry::Reference;

use super::bundle::Bundle;
use super::compress::Compression;
use super::error::WriteError;
use super::options::{WriteOptions, Written};
use super::{docker, layout, registry, squashfs};
use crate::open::ImageSource;

/// A place for an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// An OCI layout directory, which may hold other images.
    Layout {
        directory: PathBuf,
        name: Option<String>,
    },
    /// An OCI layout in a tar file.
    OciArchive {
        file: PathBuf,
        name: Option<String>,
    },
    /// An archive for `docker load`.
    DockerArchive {
        file: PathBuf,
        name: Option<String>,
    },
    /// The file system of an image, for enroot and apptainer.
    Squashfs {
        file: PathBuf,
    },
    /// A docker or podman daemon on this machine.
    Daemon {
        name: String,
    },
    Registry(Reference),
    /// The user's own cache, from which containers are started.
    Cache(Reference),
}

impl Destination {
    /// Parses a destination: a transport and a path as other tools write them, a path, or a name in
    /// a registry.
    pub fn parse(text: &str) -> Result<Self, WriteError> {
        let wrong =
            |reason: &str| WriteError::Destination { text: text.to_owned(), reason: reason.to_owned() };
        if let Some(name) = text.strip_prefix("cache:") {
            return Ok(Destination::Cache(reference(name)?));
        }
        if let Some(rest) = text.strip_prefix("docker-archive:") {
            let (file, name) = split_name(rest);
            return if rest.is_empty() {
                Err(wrong("the path is empty"))
            } else {
                Ok(Destination::DockerArchive { file, name })
            };
        }
        let is_squashfs = |path: &Path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("sqfs" | "sqsh" | "squashfs"))
        };
        match text.strip_prefix("squashfs:") {
            Some("") => return Err(wrong("the path is empty")),
            Some(file) => return Ok(Destination::Squashfs { file: file.into() }),
            None if is_squashfs(Path::new(text)) => return Ok(Destination::Squashfs { file: text.into() }),
            None => {}
        }
        if let Some(source) = ImageSource::with_transport(text) {
            return Ok(match source? {
                ImageSource::Layout { directory, name } => Destination::Layout { directory, name },
                ImageSource::Archive { file, name } => Destination::OciArchive { file, name },
                ImageSource::Daemon { name } => Destination::Daemon { name },
                ImageSource::Registry(reference) => Destination::pushed(reference)?,
            });
        }
        let path = PathBuf::from(text);
        if path.extension().is_some_and(|extension| extension == "tar") {
            return Ok(Destination::OciArchive { file: path, name: None });
        }
        if text.starts_with(['/', '.']) || path.is_dir() {
            return Ok(Destination::Layout { directory: path, name: None });
        }
        Destination::pushed(reference(text)?)
    }

    /// Where an image is that was found.
    pub fn of(source: &ImageSource) -> Self {
        match source.clone() {
            ImageSource::Layout { directory, name } => Destination::Layout { directory, name },
            ImageSource::Archive { file, name } => Destination::OciArchive { file, name },
            ImageSource::Daemon { name } => Destination::Daemon { name },
            // What is written there is named by its own digest.
            ImageSource::Registry(reference) => {
                Destination::Registry(Reference { digest: None, ..reference })
            }
        }
    }

    /// A name to push to: what has a digest cannot be chosen.
    fn pushed(reference: Reference) -> Result<Self, WriteError> {
        if reference.digest.is_some() {
            let reason = "an image gets its digest from its content; name a tag".to_owned();
            return Err(WriteError::Destination { text: reference.to_string(), reason });
        }
        Ok(Destination::Registry(reference))
    }

    /// How new layers should be compressed there, and why.
    pub fn compression(&self) -> (Compression, &'static str) {
        match self {
            Destination::Registry(_) => (
                Compression::default(),
                "every puller reads gzip; with --compression zstd, containers start sooner",
            ),
            Destination::Layout { .. } | Destination::OciArchive { .. } => {
                (Compression::default(), "whatever reads the file reads gzip")
            }
            Destination::DockerArchive { .. } | Destination::Daemon { .. } => {
                (Compression::None, "daemons store layers uncompressed")
            }
            Destination::Squashfs { .. } => {
                (Compression::ZSTD, "squashfs is compressed anew, from the cache")
            }
            Destination::Cache(_) => (Compression::ZSTD, "cudock reads zstd, which unpacks fastest"),
        }
    }
}

fn reference(text: &str) -> Result<Reference, WriteError> {
    text.parse().map_err(|error: cudock_registry::ReferenceError| WriteError::Registry(error.into()))
}

/// Splits `FILE:NAME`.
fn split_name(text: &str) -> (PathBuf, Option<String>) {
    match text.split_once(':') {
        Some((path, name)) if !name.is_empty() && !Path::new(text).exists() => {
            (path.into(), Some(name.to_owned()))
        }
        _ => (text.into(), None),
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transport, path, name) = match self {
            Destination::Layout { directory, name } => ("oci", directory, name),
            Destination::OciArchive { file, name } => ("oci-archive", file, name),
            Destination::DockerArchive { file, name } => ("docker-archive", file, name),
            Destination::Squashfs { file } => return write!(f, "squashfs:{}", file.display()),
            Destination::Daemon { name } => return write!(f, "docker-daemon:{name}"),
            Destination::Registry(reference) => return write!(f, "{reference}"),
            Destination::Cache(reference) => return write!(f, "cache:{reference}"),
        };
        write!(f, "{transport}:{}", path.display())?;
        name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))
    }
}

impl Bundle {
    /// Writes the image completely, or leaves nothing that looks like one.
    pub fn write(&self, destination: &Destination, options: &WriteOptions) -> Result<Written, WriteError> {
        let written = match destination {
            Destination::Layout { directory, name } => layout::write(self, directory, name.as_deref()),
            Destination::OciArchive { file, name } => layout::write_archive(self, file, name.as_deref()),
            Destination::DockerArchive { file, name } => docker::write(self, file, name.as_deref(), options),
            Destination::Squashfs { file } => squashfs::write(self, file, options),
            Destination::Daemon { name } => docker::load(self, name, options),
            Destination::Registry(reference) => registry::push(self, reference, options.client(reference)?),
            Destination::Cache(reference) => registry::keep(self, reference, options.client(reference)?),
        };
        Ok(Written { digest: self.top.digest.clone(), ..written? })
    }
}
