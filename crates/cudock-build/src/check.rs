//! The verdict of `check` on a new image, before it goes anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudock_base::FileError;
use cudock_compat::{ImageSet, Judgement, Target};
use cudock_facts::Facts;
use cudock_http::Progress;
use cudock_image::write::{Bundle, Destination, LayerBlob, WriteOptions};
use cudock_image::{Access, ImageSource, Platform};
use serde::Serialize;
use serde_json::Value;

use crate::error::BuildError;
use crate::report::CheckedTarget;

/// The verdicts on an image.
pub(crate) struct ImageChecks {
    pub(crate) targets: Vec<CheckedTarget>,
    /// The same in the form of `check --format json`, to be attached to the image; none without targets.
    pub(crate) document: Option<Value>,
}

#[derive(Serialize)]
struct CheckDocument<'a> {
    schema: u8,
    subject: &'a str,
    results: Vec<CheckResult>,
}

#[derive(Serialize)]
struct CheckResult {
    target: Target,
    #[serde(flatten)]
    judgement: Judgement,
}

/// Judges an image for its targets, from a layout of links to the blobs in the cache.
pub(crate) fn verdicts(
    bundle: &Bundle,
    layers: &[LayerBlob],
    targets: Vec<Target>,
    facts: &Facts,
    scratch: &Path,
    options: &WriteOptions,
) -> Result<ImageChecks, BuildError> {
    if targets.is_empty() {
        return Ok(ImageChecks { targets: Vec::new(), document: None });
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
) -> Result<ImageChecks, BuildError> {
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
    let results = judged.into_iter().filter_map(|(target, judgement)| {
        let mut judgement = judgement?;
        // Notes on a target, such as the end of a size, depend on the date; the same image has the same document.
        judgement.findings.retain(|finding| !target.traits.notes.contains(finding));
        Some(CheckResult { target, judgement })
    });
    let document = CheckDocument { schema: 1, subject: bundle.digest(), results: results.collect() };
    let checked = document.results.iter().map(|CheckResult { target, judgement }| CheckedTarget {
        target: target.to_string(),
        verdict: judgement.verdict,
        reason: judgement.reason.clone(),
    });
    Ok(ImageChecks { targets: checked.collect(), document: serde_json::to_value(&document).ok() })
}
