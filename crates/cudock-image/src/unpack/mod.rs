//! Images unpacked for overlayfs: each layer once, in a folder of its own, shared by all images that have it.
//!
//! A container's root is the layers of its image laid over each other by the kernel. So nothing is merged here: a
//! layer's files go into a folder as they are, what it removes becomes overlayfs's marks, and mounting is left to
//! whoever starts the container. What comes out is what [`Image::walk`](crate::Image::walk) says, layer by layer.
//!
//! Archives are not trusted. No name in one leads out of its folder, by whatever links; what is read is held against
//! the digest that the image's configuration promises, and a layer is seen by others only when it is whole.

mod beneath;
mod board;
mod entries;
mod error;
mod finish;
mod fuzz;
mod job;
mod lower;
mod meta;
mod options;
mod prune;
mod record;
mod remove;
mod shelf;
mod sparse;
mod stream;
mod tally;
mod unpacked;
mod upper;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cudock_base::Digest;
use cudock_http::Progress;

pub use error::UnpackError;
#[doc(hidden)]
pub use fuzz::fuzz;
pub use options::{Ownership, StoreOptions, WhiteoutForm};
pub use prune::Pruned;
pub use unpacked::{Hold, RootMeta, Unpacked};

use crate::open::Image;
use board::Board;
use job::{Job, find};
use shelf::{Held, Shelf};
use stream::{digits_of, hashed};

/// As many layers as overlayfs takes.
pub(crate) const MAX_LAYERS: usize = 500;

/// A folder of unpacked layers that any number of processes may share.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    shelf: Shelf,
    options: StoreOptions,
}

impl Store {
    /// Opens a store as fits this process, making its folders where they are missing.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, UnpackError> {
        Self::open_with(folder, StoreOptions::of_process())
    }

    /// The same with other options. Layers that were unpacked with others are not used.
    pub fn open_with(folder: impl Into<PathBuf>, options: StoreOptions) -> Result<Self, UnpackError> {
        let folder = folder.into();
        let shelf = Shelf::open(&folder, &options.flavour())?;
        Ok(Self { folder, shelf, options })
    }

    /// Where the store lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How it keeps layers.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Unpacks the layers of an image that are not there yet, and holds all of them.
    ///
    /// Layers are fetched, decoded and written at the same time, as many as there are cores. Where another process is
    /// unpacking one of them, it is waited for. `progress` hears of each layer by its diff id, in bytes as stored.
    pub fn unpack(&self, image: &Image, progress: &dyn Progress) -> Result<Unpacked, UnpackError> {
        if image.layers.len() > MAX_LAYERS {
            return Err(UnpackError::TooManyLayers(image.layers.len()));
        }
        let diffs = self.diff_ids(image)?;
        let chained = chained_names(&diffs);
        let mut found = Vec::with_capacity(diffs.len());
        for (diff, chained) in diffs.iter().zip(&chained) {
            found.push(find(&self.shelf, diff, chained)?.map(Arc::new));
        }
        let layers = if found.iter().all(Option::is_some) {
            found.into_iter().flatten().collect()
        } else {
            self.shelf.sweep()?;
            self.unpack_missing(image, progress, &diffs, &chained, found)?
        };
        Ok(Unpacked::new(&self.folder, &self.shelf, &layers, image.config.clone()))
    }

    fn unpack_missing(
        &self,
        image: &Image,
        progress: &dyn Progress,
        diffs: &[Digest],
        chained: &[String],
        found: Vec<Option<Arc<Held>>>,
    ) -> Result<Vec<Arc<Held>>, UnpackError> {
        let missing: Vec<usize> =
            found.iter().enumerate().filter(|(_, held)| held.is_none()).map(|(index, _)| index).collect();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let board = Board::new(found, cores);
        let mut first: HashMap<&Digest, usize> = HashMap::new();
        std::thread::scope(|scope| {
            for index in missing {
                let (Some(diff), Some(chained)) = (diffs.get(index), chained.get(index)) else { continue };
                let twin = first.get(diff).copied();
                first.entry(diff).or_insert(index);
                let job = Job {
                    image,
                    shelf: &self.shelf,
                    options: self.options,
                    board: &board,
                    progress,
                    index,
                    diff,
                    chained,
                    twin,
                };
                scope.spawn(move || job.run());
            }
        });
        board.result()
    }

    /// What each layer's contents go by. Configurations without are old or hand-made; then it is found out.
    fn diff_ids(&self, image: &Image) -> Result<Vec<Digest>, UnpackError> {
        let written = &image.config.rootfs.diff_ids;
        if written.len() == image.layers.len() {
            let digests = written.iter().enumerate().map(|(index, text)| {
                let digest = text.parse::<Digest>().ok();
                digest.filter(|digest| digest.algorithm().name() == "sha256").ok_or_else(|| {
                    let text: String = text.chars().take(100).collect();
                    image.wrong_layer(index, format!("`{text}` is no sha256 digest of its contents")).into()
                })
            });
            return digests.collect();
        }
        if !written.is_empty() {
            let message = format!("{} layers, and digests for {}", image.layers.len(), written.len());
            let place = format!("{}: configuration", image.name);
            return Err(crate::ImageError::Document { place, message }.into());
        }
        let layers = image.layers.iter().enumerate().map(|(index, layer)| {
            let wrong = |error: std::io::Error| image.wrong_layer(index, error.to_string());
            let bytes = layer.bytes()?;
            let drained = hashed(&bytes, self.options.limits, &AtomicU64::new(0), |mut input| {
                input.drain().map_err(|error| error::LayerError::Tar(error.into()))
            });
            let ((), hex) = drained.map_err(|error| match error {
                error::LayerError::Tar(error) => image.wrong_layer(index, error.to_string()),
                _ => wrong(std::io::Error::other("it cannot be read")),
            })?;
            let digest = format!("sha256:{hex}").parse::<Digest>();
            digest.map_err(|error| image.wrong_layer(index, error.to_string()).into())
        });
        layers.collect()
    }

    /// Holds layers that were unpacked before: for as long as this lives, nobody removes them.
    pub fn hold<'p>(&self, layers: impl IntoIterator<Item = &'p Path>) -> Result<Hold, UnpackError> {
        let held = layers.into_iter().map(|layer| self.shelf.hold(layer).map(Arc::new));
        Ok(Hold::new(held.collect::<Result<_, _>>()?))
    }
}

/// What layers are called that are good above those before them alone: by the chain of all below, as the OCI
/// specification has it.
fn chained_names(diffs: &[Digest]) -> Vec<String> {
    let mut chain: Option<String> = None;
    let names = diffs.iter().map(|diff| {
        let below = chain.take();
        let short = |chain: &String| chain.chars().skip("sha256:".len()).take(32).collect();
        let name = format!("{}-{}", diff.hex(), below.as_ref().map_or_else(|| "bottom".to_owned(), short));
        chain = Some(match below {
            Some(below) => format!("sha256:{}", digits_of(format!("{below} {diff}").as_bytes())),
            None => diff.to_string(),
        });
        name
    });
    names.collect()
}
