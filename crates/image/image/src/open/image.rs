//! Images of one platform that can be read.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use cudock_base::bug::Parts;
use cudock_base::{Codec, Digest, try_parallel};
use cudock_mmap::Mmap;
use cudock_registry::{Client, Reference};

use super::ImageSource;
use crate::error::ImageError;
use crate::manifest::{ImageConfig, Platform};

/// An open image: its configuration has been read, its layers have not.
pub struct Image {
    /// The name of the image, for messages.
    pub name: String,
    /// Where it was found; none for one that is being written.
    pub source: Option<ImageSource>,
    pub platform: Platform,
    /// All platforms that the image is available for.
    pub platforms: Vec<Platform>,
    pub config: ImageConfig,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
    /// The digest of its manifest; archives of docker have none.
    pub digest: Option<Digest>,
}

pub struct Layer {
    /// The digest; the file name in old docker archives.
    pub digest: String,
    pub size: u64,
    pub(super) data: LayerData,
}

#[derive(Clone)]
pub(super) enum LayerData {
    Mapped(Bytes),
    Remote { client: Arc<Client>, reference: Reference, digest: Digest, codec: Codec },
}

/// A range of a mapped file.
#[derive(Clone)]
pub(crate) struct Bytes {
    pub(super) map: Arc<Mmap>,
    pub(super) range: Range<usize>,
}

impl Bytes {
    pub(crate) fn of_file(path: &Path) -> Result<Self, ImageError> {
        Ok(Self::whole(cudock_mmap::map(path)?))
    }

    pub(super) fn whole(map: Mmap) -> Self {
        let range = 0..map.len();
        Self { map: Arc::new(map), range }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.part(self.range.clone())
    }
}

impl Image {
    pub(super) fn new(
        name: String,
        source: Option<ImageSource>,
        config: ImageConfig,
        layers: Vec<Layer>,
        mut platforms: Vec<Platform>,
        digest: Option<Digest>,
    ) -> Self {
        let platform = config.platform();
        if platforms.is_empty() {
            platforms.push(platform.clone());
        }
        Self { name, source, platform, platforms, config, layers, digest }
    }

    /// The image, if it is for this platform.
    pub(super) fn for_platform(self, requested: Option<&Platform>) -> Result<Self, ImageError> {
        match requested.filter(|requested| !self.platform.satisfies(requested)) {
            None => Ok(self),
            Some(requested) => {
                let available = self.platforms.iter().map(ToString::to_string).collect();
                let (location, requested) = (self.name, requested.to_string());
                Err(ImageError::NoPlatform { location, requested, available })
            }
        }
    }

    /// The number of bytes to download before the image can be walked.
    pub fn bytes_to_fetch(&self) -> u64 {
        let missing = |layer: &&Layer| match &layer.data {
            LayerData::Remote { client, digest, .. } => client.store().path_of(digest).is_none(),
            LayerData::Mapped(_) => false,
        };
        let mut counted = std::collections::HashSet::new();
        let missing = self.layers.iter().filter(missing);
        missing.filter(|layer| counted.insert(layer.digest.as_str())).map(|layer| layer.size).sum()
    }

    /// Fetches and maps all layers.
    pub(crate) fn fetch(&self) -> Result<Vec<Bytes>, ImageError> {
        // Registries limit the rate of each connection. After an error, no download begins that would not be used.
        let workers = if self.bytes_to_fetch() > 0 { 4 } else { 1 };
        try_parallel(&self.layers, workers, Layer::bytes)
    }

    pub(crate) fn layer_error(&self, index: usize, message: String) -> ImageError {
        let digest = self.layers.get(index).map_or("", |layer| layer.digest.as_str());
        let digest = digest.chars().take(19).collect();
        ImageError::Layer { number: index + 1, digest, message }
    }
}

impl Layer {
    /// How it is compressed, for a layer in a registry according to its media type.
    pub fn codec(&self) -> Codec {
        match &self.data {
            LayerData::Mapped(bytes) => Codec::detect(bytes),
            LayerData::Remote { codec, .. } => *codec,
        }
    }

    /// Whether the bytes were compared with the digest when they were fetched.
    pub(crate) fn is_verified(&self) -> bool {
        matches!(self.data, LayerData::Remote { .. })
    }

    /// The repository that has it.
    pub(crate) fn repository(&self) -> Option<&Reference> {
        match &self.data {
            LayerData::Remote { reference, .. } => Some(reference),
            LayerData::Mapped(_) => None,
        }
    }

    /// The stored bytes of the layer, downloaded if necessary.
    pub(crate) fn bytes(&self) -> Result<Bytes, ImageError> {
        match &self.data {
            LayerData::Mapped(bytes) => Ok(bytes.clone()),
            LayerData::Remote { client, reference, digest, .. } => {
                let path = client.blob(reference, digest, self.size)?;
                Bytes::of_file(&path)
            }
        }
    }
}
