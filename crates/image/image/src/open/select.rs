//! Selects the image for one platform below a document that may be an index, and opens it.

use cudock_base::Arch;

use super::image::{Image, Layer};
use super::{BlobSource, ImageSource};
use crate::error::ImageError;
use crate::manifest::{self, Descriptor, Document, ImageConfig, Platform};

/// The number of documents from the top to a manifest.
pub(super) const MAX_DEPTH: usize = 4;

/// The manifest that was selected.
pub(crate) struct Selected {
    pub(crate) descriptor: Descriptor,
    pub(crate) document: Document,
    /// The platforms that the indexes above it name.
    pub(crate) platforms: Vec<Platform>,
}

/// Follows indexes down to the manifest for a platform. Everything that needs an image of one platform selects it here.
pub(crate) fn select(
    store: &dyn BlobSource,
    top: &Descriptor,
    bytes: &[u8],
    platform: Option<&Platform>,
) -> Result<Selected, ImageError> {
    let location = store.location();
    let mut descriptor = top.clone();
    let mut document = Document::read_as(&location, &descriptor, bytes)?;
    let mut platforms = Vec::new();
    for _ in 0..MAX_DEPTH {
        let Some(manifests) = &document.manifests else {
            return Ok(Selected { descriptor, document, platforms });
        };
        descriptor = choose(&location, manifests, platform, &mut platforms)?.clone();
        document = Document::read_as(&location, &descriptor, &store.document(&descriptor)?)?;
    }
    Err(ImageError::document(&location, "indexes are nested too deeply"))
}

/// Selects an entry of an index: the requested platform's, else the host's, else the only one.
fn choose<'m>(
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

/// Opens the image for a platform below a document.
pub(crate) fn open(
    store: &dyn BlobSource,
    top: &Descriptor,
    bytes: &[u8],
    source: Option<&ImageSource>,
    platform: Option<&Platform>,
) -> Result<Image, ImageError> {
    let selected = select(store, top, bytes, platform)?;
    let location = store.location();
    let invalid = |message| ImageError::document(&location, message);
    let descriptor = selected.document.config.ok_or_else(|| invalid("the manifest has no configuration"))?;
    let config: ImageConfig =
        manifest::parse(&format!("{location}: configuration"), &store.document(&descriptor)?)?;
    let layers = selected.document.layers.unwrap_or_default();
    if layers.iter().any(|layer| layer.media_type.contains("encrypted")) {
        return Err(invalid("encrypted layers are not supported"));
    }
    if !config.rootfs.diff_ids.is_empty() && config.rootfs.diff_ids.len() != layers.len() {
        return Err(invalid("manifest and configuration have different numbers of layers"));
    }
    let layers: Vec<Layer> = layers.iter().map(|layer| store.layer(layer)).collect::<Result<_, _>>()?;
    let digest = selected.descriptor.digest.parse().ok();
    let image = Image::new(location, source.cloned(), config, layers, selected.platforms, digest);
    image.for_platform(platform)
}
