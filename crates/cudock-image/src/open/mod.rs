//! Opens images from all kinds of sources.

mod access;
mod archive;
mod cached;
mod graph;
mod layout;
mod registry;
mod source;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cudock_base::{Arch, Digest};
use cudock_http::Progress;
use cudock_map::Mmap;
use cudock_registry::{Client, Reference};

pub use access::{Access, Pull};
pub use cached::{CachedImage, cached_images};
pub(crate) use graph::{BundleView, Graph, graph};
pub use source::ImageSource;

use crate::error::ImageError;
use crate::layer::Codec;
use crate::manifest::{self, Descriptor, Document, ImageConfig, Platform};

pub struct OpenOptions {
    /// By default the host's, if there are several.
    pub platform: Option<Platform>,
    /// The registry client; none to forbid registry access.
    pub client: Option<Arc<Client>>,
    /// The sockets of container daemons.
    pub sockets: Vec<PathBuf>,
    /// Receives progress of slow operations.
    pub progress: Option<Arc<dyn Progress>>,
    /// A directory for temporary files: images of daemons and decompressed archives.
    pub scratch: PathBuf,
}

/// An open image: its configuration has been read, its layers have not.
pub struct Image {
    /// The name of the image, for messages.
    pub name: String,
    pub origin: Origin,
    pub platform: Platform,
    /// All platforms that the image is available for.
    pub platforms: Vec<Platform>,
    pub config: ImageConfig,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
    /// A temporary file that must live as long as the image.
    scratch: Option<tempfile::TempPath>,
}

/// The kind of source an image was opened from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An OCI layout directory.
    Layout,
    /// A tar file: an OCI archive, or the output of `docker save`.
    Archive,
    /// A docker or podman daemon.
    Daemon,
    Registry,
}

pub struct Layer {
    /// The digest; the file name in old docker archives.
    pub digest: String,
    pub size: u64,
    data: LayerData,
}

#[derive(Clone)]
enum LayerData {
    Mapped(Bytes),
    Remote { client: Arc<Client>, reference: Reference, digest: Digest, codec: Codec },
}

/// A range of a mapped file.
#[derive(Clone)]
pub(crate) struct Bytes {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Bytes {
    pub(crate) fn of_file(path: &Path) -> Result<Self, ImageError> {
        Ok(Self::whole(cudock_map::map(path)?))
    }

    fn whole(map: Mmap) -> Self {
        let range = 0..map.len();
        Self { map: Arc::new(map), range }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

pub fn open(source: &ImageSource, options: &OpenOptions) -> Result<Image, ImageError> {
    match source {
        ImageSource::Layout { directory, name } => layout::open(directory, name.as_deref(), options),
        ImageSource::Archive { file, name } => archive::open(file, name.as_deref(), options),
        ImageSource::Daemon { name } => archive::from_daemon(name, options),
        ImageSource::Registry(reference) => registry::open(reference, options),
    }
}

/// Provides the documents and layers of an image, whatever its source.
trait BlobSource {
    /// A description of the source, for errors.
    fn location(&self) -> String;
    /// Reads a manifest, index or configuration.
    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError>;
    /// A layer, which may not have been fetched yet.
    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError>;
}

/// Follows indexes down to a manifest and opens the image.
fn assemble(
    store: &dyn BlobSource,
    top: &[u8],
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let location = store.location();
    let mut bytes = top.to_vec();
    let mut platforms = Vec::new();
    for _ in 0..4 {
        let document = Document::read(&location, &bytes)?;
        let Some(manifests) = document.manifests else {
            return from_manifest(store, document, platforms, origin, options);
        };
        let chosen = choose(&location, &manifests, options.platform.as_ref(), &mut platforms)?;
        bytes = store.document(chosen)?;
    }
    Err(ImageError::document(&location, "indexes are nested too deeply"))
}

/// Selects a manifest: the requested platform's, else the host's, else the only one.
pub(crate) fn choose<'m>(
    location: &str,
    manifests: &'m [Descriptor],
    requested: Option<&Platform>,
    platforms: &mut Vec<Platform>,
) -> Result<&'m Descriptor, ImageError> {
    let images: Vec<&Descriptor> = manifests.iter().filter(|manifest| manifest.is_image()).collect();
    let here: Vec<Platform> = images.iter().filter_map(|manifest| manifest.platform.clone()).collect();
    for platform in &here {
        if !platforms.contains(platform) {
            platforms.push(platform.clone());
        }
    }
    if let [only] = images.as_slice() {
        return Ok(only);
    }
    let own = Platform::linux(Arch::CURRENT.oci_name());
    let requested = requested.unwrap_or(&own);
    let fits = images
        .iter()
        .find(|manifest| manifest.platform.as_ref().is_some_and(|found| found.satisfies(requested)));
    fits.copied().ok_or_else(|| {
        if images.is_empty() {
            return ImageError::document(location, "the index is empty");
        }
        if here.is_empty() {
            let message = "the index contains several images without names or platforms to select one";
            return ImageError::document(location, message);
        }
        let available = here.iter().map(ToString::to_string).collect();
        ImageError::NoPlatform { location: location.to_owned(), requested: requested.to_string(), available }
    })
}

fn from_manifest(
    store: &dyn BlobSource,
    document: Document,
    platforms: Vec<Platform>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let location = store.location();
    let invalid = |message| ImageError::document(&location, message);
    let descriptor = document.config.ok_or_else(|| invalid("the manifest has no configuration"))?;
    let config: ImageConfig =
        manifest::parse(&format!("{location}: configuration"), &store.document(&descriptor)?)?;
    let layers = document.layers.unwrap_or_default();
    if layers.iter().any(|layer| layer.media_type.contains("encrypted")) {
        return Err(invalid("encrypted layers are not supported"));
    }
    if !config.rootfs.diff_ids.is_empty() && config.rootfs.diff_ids.len() != layers.len() {
        return Err(invalid("manifest and configuration have different numbers of layers"));
    }
    let layers = layers.iter().map(|layer| store.layer(layer)).collect::<Result<_, _>>()?;
    finish(location, config, platforms, layers, origin, options)
}

fn finish(
    name: String,
    config: ImageConfig,
    mut platforms: Vec<Platform>,
    layers: Vec<Layer>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let platform = config.platform();
    if platforms.is_empty() {
        platforms.push(platform.clone());
    }
    if let Some(requested) = options.platform.as_ref().filter(|requested| !platform.satisfies(requested)) {
        let available = platforms.iter().map(ToString::to_string).collect();
        return Err(ImageError::NoPlatform { location: name, requested: requested.to_string(), available });
    }
    Ok(Image { name, origin, platform, platforms, config, layers, scratch: None })
}

impl Image {
    /// Keeps a temporary file until the image is dropped.
    fn keep(&mut self, scratch: tempfile::TempPath) {
        self.scratch.get_or_insert(scratch);
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
        let results: Mutex<Vec<(usize, Result<Bytes, ImageError>)>> = Mutex::new(Vec::new());
        let next = std::sync::atomic::AtomicUsize::new(0);
        // Registries limit the rate of each connection.
        let workers = if self.bytes_to_fetch() > 0 { 4 } else { 1 };
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(layer) = self.layers.get(index) else { break };
                        let bytes = layer.bytes();
                        let failed = bytes.is_err();
                        if let Ok(mut results) = results.lock() {
                            results.push((index, bytes));
                        }
                        if failed {
                            // Do not start downloads that will not be used.
                            next.store(self.layers.len(), std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, bytes)| bytes).collect()
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
