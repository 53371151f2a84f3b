//! An image that was found: which one it is has been decided.

use std::fmt;
use std::sync::Arc;

use cudock_base::Digest;

use super::content::Content;
use super::image::Image;
use super::referrers::{self, Referrers};
use super::select::open;
use super::{Graph, ImageSource, OpenOptions, archive, layout, registry};
use crate::error::ImageError;
use crate::manifest::{Descriptor, Platform};
use crate::write::{BlobData, Bundle, BundleBlob, WriteError};

/// The largest part of a referrer that is read.
const MAX_PART: u64 = 64 << 20;

/// An image that was found by the user's name for it. Its documents are in memory or named by their
/// digest, so it stays the same even if the name is reassigned; all data read through it is
/// compared with these digests.
#[derive(Clone)]
pub struct ResolvedImage(Arc<Inner>);

struct Inner {
    source: ImageSource,
    /// The platform to open if the image is one for several platforms.
    platform: Option<Platform>,
    content: Content,
}

impl fmt::Debug for ResolvedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ResolvedImage");
        debug.field("source", &self.0.source);
        if let Content::Documents { listed, .. } = &self.0.content {
            debug.field("digest", &listed.top.digest);
        }
        debug.finish_non_exhaustive()
    }
}

impl ResolvedImage {
    /// Finds the image of a source.
    pub fn resolve(source: &ImageSource, options: &OpenOptions) -> Result<Self, ImageError> {
        let content = match source {
            ImageSource::Layout { directory, name } => layout::find(directory, name.as_deref())?,
            ImageSource::Archive { file, name } => archive::find(file, name.as_deref(), options)?,
            ImageSource::Daemon { name } => archive::find_in_daemon(name, options)?,
            ImageSource::Registry(reference) => registry::find(reference, options)?,
        };
        let (source, platform) = (source.clone(), options.platform.clone());
        Ok(Self(Arc::new(Inner { source, platform, content })))
    }

    /// Where it was found.
    pub fn source(&self) -> &ImageSource {
        &self.0.source
    }

    /// Describes it: a manifest, or an index of several. An archive of docker gets the manifest that it would be copied with, for which
    /// all of its layers are read.
    pub fn descriptor(&self) -> &Descriptor {
        match &self.0.content {
            Content::Documents { listed, .. } => &listed.top,
            Content::Docker { image, graph } => &graph.get_or_init(|| image.graph()).top,
        }
    }

    /// The digest of the manifest or index.
    pub fn digest(&self) -> Result<Digest, ImageError> {
        let text = &self.descriptor().digest;
        text.parse().map_err(|_| ImageError::document(&self.location(), format!("`{text}` is not a digest")))
    }

    /// The digest, if it is known without reading any layer.
    pub fn known_digest(&self) -> Option<Digest> {
        match &self.0.content {
            Content::Documents { .. } => self.digest().ok(),
            Content::Docker { .. } => None,
        }
    }

    fn location(&self) -> String {
        match &self.0.content {
            Content::Documents { store, .. } => store.location(),
            Content::Docker { image, .. } => image.location.clone(),
        }
    }

    /// Opens the image for the requested platform, else for this machine's.
    pub fn open(&self) -> Result<Image, ImageError> {
        self.open_for(self.0.platform.as_ref())
    }

    /// Opens the image for a platform.
    pub fn open_for(&self, platform: Option<&Platform>) -> Result<Image, ImageError> {
        match &self.0.content {
            Content::Documents { store, listed } => {
                open(store.as_ref(), &listed.top, &listed.bytes, Some(self.source()), platform)
            }
            Content::Docker { image, .. } => image.open(self.source(), platform),
        }
    }

    /// The image with all its platforms and what refers to it, for taking it elsewhere.
    pub fn bundle(&self) -> Result<Bundle, WriteError> {
        let graph = match &self.0.content {
            Content::Documents { store, listed } => Graph::of(store.as_ref(), listed)?,
            Content::Docker { image, graph } => graph.get_or_init(|| image.graph()).clone(),
        };
        Ok(Bundle::of_graph(graph))
    }

    /// The referrers of the image or of another document in it, of one type or of all. Unreadable
    /// ones are reported and skipped: everyone with the right to push to a repository can attach
    /// something broken to an image in it.
    pub fn referrers(&self, subject: &Digest, artifact_type: Option<&str>) -> Result<Referrers, ImageError> {
        match &self.0.content {
            Content::Documents { store, listed } => {
                let mut candidates = listed.referrers.clone();
                candidates.extend(store.referrers(subject)?);
                Ok(referrers::read(store.as_ref(), candidates, subject, artifact_type))
            }
            Content::Docker { .. } => Ok(Referrers::default()),
        }
    }

    /// A part of a referrer, compared with its digest.
    pub fn part(&self, descriptor: &Descriptor) -> Result<Vec<u8>, WriteError> {
        let missing = |reason: &str| WriteError::damaged(&descriptor.digest, reason);
        if descriptor.size > MAX_PART {
            return Err(missing("too large for a referrer"));
        }
        let Content::Documents { store, .. } = &self.0.content else { return Err(missing("not found")) };
        let layer = store.layer(descriptor)?;
        let blob = BundleBlob { descriptor: descriptor.clone(), data: BlobData::Layer(Arc::new(layer)) };
        Ok(blob.verified()?.to_vec())
    }
}
