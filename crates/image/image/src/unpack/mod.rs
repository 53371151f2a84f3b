//! Unpacks images for overlayfs: each layer once, into its own directory, shared by all images that contain it.
//!
//! The kernel merges the layers when a container's root is mounted, so nothing is merged here: a layer's files go into a
//! directory, its whiteouts become overlayfs whiteouts, and the caller mounts them. The result equals what
//! [`Image::walk`](crate::Image::walk) shows, layer by layer.
//!
//! Archives are untrusted. No path or symlink leads out of the layer's directory, contents are verified against the diff
//! ids of the image's configuration, and a layer becomes visible to others only once it is complete.

mod confined_path;
mod counters;
mod error;
mod fuzz;
mod layer;
mod layer_dir;
mod options;
mod prune;
mod record;
mod remove;
mod scheduler;
mod unpacked;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cudock_base::Digest;
use cudock_http::Progress;

pub use error::UnpackError;
#[doc(hidden)]
pub use fuzz::fuzz;
pub use options::{Ownership, StoreOptions, WhiteoutForm};
pub use prune::Pruned;
pub use unpacked::{RootMeta, Unpacked};

use crate::error::ImageError;
use crate::open::Image;
use error::MAX_LAYERS;
use layer::job::{LayerJob, find};
use layer::stream::{StoredLayer, read_hashed};
use layer_dir::{LayerDir, LockedLayer};
use scheduler::Scheduler;

/// A directory of unpacked layers, shared by any number of processes.
#[derive(Debug, Clone)]
pub struct LayerStore {
    layer_dir: LayerDir,
    options: StoreOptions,
}

impl LayerStore {
    /// Opens a store with the options for this process, and creates its directories if necessary.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, UnpackError> {
        Self::open_with(directory, StoreOptions::for_process())
    }

    /// Opens a store with the given options. Layers unpacked with other options are not used.
    pub fn open_with(directory: impl AsRef<Path>, options: StoreOptions) -> Result<Self, UnpackError> {
        Ok(Self { layer_dir: LayerDir::open(directory.as_ref(), &options.flavor())?, options })
    }

    /// Unpacks the missing layers of an image, and locks all of them.
    ///
    /// Layers are fetched, decoded and written in parallel. A layer that another process is unpacking is waited for.
    /// `progress` receives events by diff id, in compressed bytes.
    pub fn unpack(&self, image: &Image, progress: &dyn Progress) -> Result<Unpacked, UnpackError> {
        if image.layers.len() > MAX_LAYERS {
            return Err(UnpackError::TooManyLayers(image.layers.len()));
        }
        let diffs = self.diff_ids(image)?;
        let chain_names = chain_names(&diffs);
        let mut found = Vec::with_capacity(diffs.len());
        for (diff, chain_name) in diffs.iter().zip(&chain_names) {
            found.push(find(&self.layer_dir, diff, chain_name)?.map(Arc::new));
        }
        let layers = if found.iter().all(Option::is_some) {
            found.into_iter().flatten().collect()
        } else {
            self.layer_dir.sweep()?;
            self.unpack_missing(image, progress, &diffs, &chain_names, found)?
        };
        Ok(Unpacked::new(&layers, image.config.clone()))
    }

    fn unpack_missing(
        &self,
        image: &Image,
        progress: &dyn Progress,
        diffs: &[Digest],
        chain_names: &[String],
        found: Vec<Option<Arc<LockedLayer>>>,
    ) -> Result<Vec<Arc<LockedLayer>>, UnpackError> {
        let is_missing: Vec<bool> = found.iter().map(Option::is_none).collect();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let scheduler = Scheduler::new(found, cores);
        let mut first: HashMap<&Digest, usize> = HashMap::new();
        std::thread::scope(|scope| {
            let layers = diffs.iter().zip(chain_names).zip(is_missing).enumerate();
            for (index, ((diff, chain_name), _)) in layers.filter(|(_, (_, is_missing))| *is_missing) {
                let duplicate_of = first.get(diff).copied();
                first.entry(diff).or_insert(index);
                let job = LayerJob {
                    image,
                    layer_dir: &self.layer_dir,
                    options: self.options,
                    scheduler: &scheduler,
                    progress,
                    index,
                    diff,
                    chain_name,
                    duplicate_of,
                };
                scope.spawn(move || job.run());
            }
        });
        scheduler.result()
    }

    /// The diff ids of the layers. Old and hand-made configurations have none, so they are computed.
    fn diff_ids(&self, image: &Image) -> Result<Vec<Digest>, UnpackError> {
        let written = &image.config.rootfs.diff_ids;
        if written.len() == image.layers.len() {
            let digests = written.iter().enumerate().map(|(index, text)| {
                let digest = text.parse::<Digest>().ok();
                digest.filter(|digest| digest.algorithm().name() == "sha256").ok_or_else(|| {
                    let text: String = text.chars().take(100).collect();
                    image.layer_error(index, format!("`{text}` is not a sha256 diff id")).into()
                })
            });
            return digests.collect();
        }
        if !written.is_empty() {
            let message = format!("{} layers, but {} diff ids", image.layers.len(), written.len());
            return Err(ImageError::document(&format!("{}: configuration", image.name), message).into());
        }
        let layers = image.layers.iter().enumerate().map(|(index, layer)| {
            let bytes = layer.bytes()?;
            let stored = StoredLayer { bytes: &bytes, is_own: layer.is_verified() };
            let drained = read_hashed(stored, self.options.limits, &AtomicU64::new(0), |mut input| {
                input.drain().map_err(|error| error::LayerError::Tar(error.into()))
            });
            let digest = drained.map(|((), digest)| digest).map_err(|error| match error {
                error::LayerError::Tar(error) => image.layer_error(index, error.to_string()),
                _ => image.layer_error(index, "cannot read layer".to_owned()),
            });
            Ok(digest?)
        });
        layers.collect()
    }
}

/// The names of layers that depend on those below, which include the chain id of the OCI specification.
fn chain_names(diffs: &[Digest]) -> Vec<String> {
    let mut chain: Option<Digest> = None;
    let names = diffs.iter().map(|diff| {
        let below = chain.take();
        let short = |chain: &Digest| chain.hex().chars().take(32).collect();
        let name = format!("{}-{}", diff.hex(), below.as_ref().map_or_else(|| "bottom".to_owned(), short));
        chain = Some(match below {
            Some(below) => Digest::sha256_of(format!("{below} {diff}").as_bytes()),
            None => diff.clone(),
        });
        name
    });
    names.collect()
}
