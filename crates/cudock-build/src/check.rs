//! The verdict of `check` on a new image, before it goes anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudock_base::FileError;
use cudock_compat::{ImageSet, Target};
use cudock_facts::Facts;
use cudock_http::Progress;
use cudock_image::write::{Bundle, Destination, LayerBlob, WriteOptions};
use cudock_image::{Access, ImageSource, Platform};

use crate::error::BuildError;
use crate::report::CheckedTarget;

/// Judges an image for its targets, from a layout of links to the blobs in the cache.
pub(crate) fn verdicts(
    bundle: &Bundle,
    layers: &[LayerBlob],
    targets: Vec<Target>,
    facts: &Facts,
    scratch: &Path,
    options: &WriteOptions,
) -> Result<Vec<CheckedTarget>, BuildError> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let layout = scratch.join(format!("check-{}-{}", std::process::id(), bundle.digest().replace(':', "-")));
    let result = judge(bundle, layers, targets, facts, &layout, options);
    // What is left of a killed process is removed with the cache's scratch directory.
    let _ = fs::remove_dir_all(&layout);
    result
}

fn judge(
    bundle: &Bundle,
    layers: &[LayerBlob],
    targets: Vec<Target>,
    facts: &Facts,
    layout: &Path,
    options: &WriteOptions,
) -> Result<Vec<CheckedTarget>, BuildError> {
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(FileError::at("create directory", &blobs))?;
    for layer in layers {
        let link = blobs.join(layer.digest.hex());
        match fs::hard_link(&layer.path, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(FileError::at("write", &link)(error).into());
            }
            _ => {}
        }
    }
    bundle.write(&Destination::Layout { directory: layout.to_owned(), name: None }, options)?;
    let source =
        ImageSource::at(layout).ok_or_else(|| BuildError::usage("the image cannot be read back", ""))?;
    let platform: Option<Platform> = bundle.descriptor().platform.clone();
    let access = Access {
        platform,
        offline: true,
        pull: None,
        progress: Arc::clone(&options.progress) as Arc<dyn Progress>,
    };
    let environment = BTreeMap::new();
    let mut images = ImageSet::open(&source, &access, "image", &environment, &|_| {})
        .map_err(cudock_compat::GatherError::from)?;
    let judged = images.judge(targets, facts, false)?;
    let checked = judged.into_iter().filter_map(|(target, judgement)| {
        let judgement = judgement?;
        Some(CheckedTarget {
            target: target.to_string(),
            verdict: judgement.verdict,
            reason: judgement.reason,
        })
    });
    Ok(checked.collect())
}
