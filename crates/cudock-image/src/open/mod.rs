//! An image, found where it is.

mod archive;
mod layout;
mod registry;
mod source;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use cudock_base::Arch;
use cudock_map::Mmap;
use cudock_registry::{Client, Digest, Progress, Reference};

pub use source::Source;

use crate::error::ImageError;
use crate::manifest::{self, Config, Descriptor, Document, Platform};

/// How to open an image.
pub struct OpenOptions {
    /// Which of several platforms; this machine's without it, where there are several.
    pub platform: Option<Platform>,
    /// The client to ask registries with; none where none is to be asked.
    pub client: Option<Arc<Client>>,
    /// The sockets of daemons.
    pub sockets: Vec<PathBuf>,
    /// Hears how it goes, where that takes long.
    pub progress: Option<Arc<dyn Progress>>,
    /// Where images of daemons and compressed archives are put while they are read.
    pub scratch: PathBuf,
}

/// An image, open. Its configuration has been read, its layers not yet.
pub struct Image {
    /// What was opened, in words.
    pub name: String,
    /// Where it came from.
    pub origin: Origin,
    /// Which platform it is for.
    pub platform: Platform,
    /// All platforms it was offered for.
    pub platforms: Vec<Platform>,
    /// Its configuration.
    pub config: Config,
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
    /// Keeps what lies in a temporary file for as long as it is needed.
    scratch: Option<tempfile::TempPath>,
}

/// Where an image came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An OCI layout in a folder.
    Layout,
    /// A tar file: an OCI layout, or what `docker save` writes.
    Archive,
    /// A docker or podman daemon.
    Daemon,
    /// A registry.
    Registry,
}

/// A layer.
pub struct Layer {
    /// Its digest; in old docker archives, its name.
    pub digest: String,
    /// Its size, as it is stored.
    pub size: u64,
    place: Place,
}

enum Place {
    Mapped(Bytes),
    Remote { client: Arc<Client>, reference: Reference, digest: Digest },
}

/// A part of a mapped file.
#[derive(Clone)]
pub(crate) struct Bytes {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Bytes {
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

/// Opens an image.
pub fn open(source: &Source, options: &OpenOptions) -> Result<Image, ImageError> {
    match source {
        Source::Layout { folder, name } => layout::open(folder, name.as_deref(), options),
        Source::Archive { file, name } => archive::open(file, name.as_deref(), options),
        Source::Daemon { name } => archive::from_daemon(name, options),
        Source::Registry(reference) => registry::open(reference, options),
    }
}

/// Where documents and layers of an image come from: the same path leads through all kinds of places.
trait Store {
    /// In words, for errors.
    fn place(&self) -> String;
    /// A small document.
    fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ImageError>;
    /// A layer, not necessarily here yet.
    fn layer(&self, descriptor: &Descriptor) -> Result<Layer, ImageError>;
}

/// From an index or manifest to the image, over as many indexes as lie between.
fn assemble(
    store: &dyn Store,
    top: &[u8],
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let place = store.place();
    let mut bytes = top.to_vec();
    let mut platforms = Vec::new();
    for _ in 0..4 {
        let document = Document::read(&place, &bytes)?;
        let Some(manifests) = document.manifests else {
            return from_manifest(store, document, platforms, origin, options);
        };
        let chosen = choose(&place, &manifests, options.platform.as_ref(), &mut platforms)?;
        bytes = store.document(chosen)?;
    }
    Err(ImageError::Document { place, message: "indexes within indexes within indexes".to_owned() })
}

/// One of several manifests: the wanted platform's, or this machine's, or the only one.
fn choose<'m>(
    place: &str,
    manifests: &'m [Descriptor],
    wanted: Option<&Platform>,
    platforms: &mut Vec<Platform>,
) -> Result<&'m Descriptor, ImageError> {
    let images: Vec<&Descriptor> = manifests.iter().filter(|manifest| manifest.is_image()).collect();
    let here: Vec<Platform> = images.iter().filter_map(|manifest| manifest.platform.clone()).collect();
    platforms
        .extend(here.iter().filter(|platform| !platforms.contains(platform)).cloned().collect::<Vec<_>>());
    if let [only] = images.as_slice() {
        return Ok(only);
    }
    let own = Platform::linux(Arch::CURRENT.oci_name());
    let wish = wanted.unwrap_or(&own);
    let fits =
        images.iter().find(|manifest| manifest.platform.as_ref().is_some_and(|found| found.satisfies(wish)));
    fits.copied().ok_or_else(|| {
        if images.is_empty() {
            return ImageError::Document {
                place: place.to_owned(),
                message: "the index is empty".to_owned(),
            };
        }
        if here.is_empty() {
            let message =
                "the index holds several images, and neither names nor platforms tell them apart".to_owned();
            return ImageError::Document { place: place.to_owned(), message };
        }
        let found = here.iter().map(ToString::to_string).collect();
        ImageError::NoPlatform { place: place.to_owned(), wanted: wish.to_string(), found }
    })
}

fn from_manifest(
    store: &dyn Store,
    document: Document,
    platforms: Vec<Platform>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let place = store.place();
    let wrong = |message: &str| ImageError::Document { place: place.clone(), message: message.to_owned() };
    let descriptor = document.config.ok_or_else(|| wrong("the manifest names no configuration"))?;
    let config: Config = manifest::parse(&format!("{place}: configuration"), &store.document(&descriptor)?)?;
    let layers = document.layers.unwrap_or_default();
    if layers.iter().any(|layer| layer.media_type.contains("encrypted")) {
        return Err(wrong("its layers are encrypted"));
    }
    if !config.rootfs.diff_ids.is_empty() && config.rootfs.diff_ids.len() != layers.len() {
        return Err(wrong("manifest and configuration disagree about the number of layers"));
    }
    let layers = layers.iter().map(|layer| store.layer(layer)).collect::<Result<_, _>>()?;
    finish(place, config, platforms, layers, origin, options)
}

fn finish(
    name: String,
    config: Config,
    mut platforms: Vec<Platform>,
    layers: Vec<Layer>,
    origin: Origin,
    options: &OpenOptions,
) -> Result<Image, ImageError> {
    let platform = config.platform();
    if platforms.is_empty() {
        platforms.push(platform.clone());
    }
    if let Some(wanted) = options.platform.as_ref().filter(|wanted| !platform.satisfies(wanted)) {
        let found = platforms.iter().map(ToString::to_string).collect();
        return Err(ImageError::NoPlatform { place: name, wanted: wanted.to_string(), found });
    }
    Ok(Image { name, origin, platform, platforms, config, layers, scratch: None })
}

impl Image {
    /// Keeps a temporary file for as long as the image is open.
    fn keep(&mut self, scratch: tempfile::TempPath) {
        self.scratch.get_or_insert(scratch);
    }

    /// Bytes that would have to be fetched to walk it.
    pub fn to_fetch(&self) -> u64 {
        let missing = |layer: &&Layer| match &layer.place {
            Place::Remote { client, digest, .. } => client.store().path_of(digest).is_none(),
            Place::Mapped(_) => false,
        };
        let mut counted = std::collections::HashSet::new();
        let missing = self.layers.iter().filter(missing);
        missing.filter(|layer| counted.insert(layer.digest.as_str())).map(|layer| layer.size).sum()
    }

    /// All layers, here.
    pub(crate) fn fetch(&self) -> Result<Vec<Bytes>, ImageError> {
        let results: Mutex<Vec<(usize, Result<Bytes, ImageError>)>> = Mutex::new(Vec::new());
        let next = std::sync::atomic::AtomicUsize::new(0);
        // Registries give each connection only so much.
        let workers = if self.to_fetch() > 0 { 4 } else { 1 };
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
                            // The others need not start what will not be used.
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

    pub(crate) fn wrong_layer(&self, index: usize, message: String) -> ImageError {
        let digest = self.layers.get(index).map_or("", |layer| layer.digest.as_str());
        let digest = digest.chars().take(19).collect();
        ImageError::Layer { number: index + 1, digest, message }
    }
}

impl Layer {
    /// Its bytes as they are stored, here.
    pub(crate) fn bytes(&self) -> Result<Bytes, ImageError> {
        match &self.place {
            Place::Mapped(bytes) => Ok(bytes.clone()),
            Place::Remote { client, reference, digest } => {
                let path = client.blob(reference, digest, self.size)?;
                Ok(Bytes::whole(cudock_map::map(&path)?))
            }
        }
    }
}
