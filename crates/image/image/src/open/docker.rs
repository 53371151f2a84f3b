//! An image in the format of `docker save`.

use super::ImageSource;
use super::graph::Graph;
use super::image::{Bytes, Image, Layer, LayerData};
use crate::error::ImageError;
use crate::manifest::{self, ImageConfig, Platform};

/// An image in an archive of docker: its configuration and its layers, by name.
pub(super) struct DockerImage {
    pub(super) location: String,
    config: Bytes,
    layers: Vec<(String, Bytes)>,
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
    pub(super) fn find(
        location: &str,
        manifests: &[u8],
        name: Option<&str>,
        member: impl Fn(&str) -> Option<Bytes>,
    ) -> Result<Self, ImageError> {
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
                        let (location, requested) = (location.to_owned(), name.to_owned());
                        return Err(ImageError::NoName { location, requested, names: all_tags() });
                    }
                }
            }
            (None, [only]) => only,
            (None, []) => return Err(invalid("manifest.json lists no image".to_owned())),
            (None, _) => {
                return Err(ImageError::Several { location: location.to_owned(), names: all_tags() });
            }
        };
        let member =
            |name: &str| member(name).ok_or_else(|| invalid(format!("`{name}` not found in the archive")));
        let layers = image.layers.iter().map(|name| Ok((name.clone(), member(name)?)));
        let layers = layers.collect::<Result<_, ImageError>>()?;
        Ok(Self { location: location.to_owned(), config: member(&image.config)?, layers })
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
