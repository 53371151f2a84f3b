//! The verdict of `check` on a new image, before it goes anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudock_base::{FileError, ScratchDir};
use cudock_compat::{ImageSet, Judgement, Target};
use cudock_facts::Facts;
use cudock_facts::version::Capability;
use cudock_http::Progress;
use cudock_image::write::{Bundle, Destination, LayerBlob, WriteOptions};
use cudock_image::{Access, ImageSource, Platform};
use serde::Serialize;
use serde_json::Value;

use crate::error::BuildError;
use crate::report::CheckedTarget;

/// The verdicts on an image.
#[derive(Default)]
pub(crate) struct ImageChecks {
    results: Vec<CheckResult>,
}

#[derive(Serialize)]
struct CheckDocument<'a> {
    schema: u8,
    subject: &'a str,
    results: &'a [CheckResult],
}

#[derive(Serialize)]
struct CheckResult {
    target: Target,
    #[serde(flatten)]
    judgement: Judgement,
}

impl ImageChecks {
    /// Whether the image uses the GPU of every target with this capability.
    pub(crate) fn runs_on(&self, capability: Capability) -> bool {
        let mut of_capability = self.results.iter().filter(|one| one.target.capability == Some(capability));
        of_capability.all(|one| one.judgement.verdict.uses_gpu())
    }

    pub(crate) fn targets(&self) -> Vec<CheckedTarget> {
        let checked = self.results.iter().map(|CheckResult { target, judgement }| CheckedTarget {
            target: target.to_string(),
            verdict: judgement.verdict,
            reason: judgement.reason.clone(),
        });
        checked.collect()
    }

    /// The same in the form of `check --format json`, to be attached to the image; none without targets.
    pub(crate) fn document(&self, digest: &str) -> Option<Value> {
        let document = CheckDocument { schema: 1, subject: digest, results: &self.results };
        if self.results.is_empty() { None } else { serde_json::to_value(&document).ok() }
    }
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
        return Ok(ImageChecks::default());
    }
    let scratch = ScratchDir::new(scratch)?;
    judge(bundle, layers, targets, facts, scratch.path(), options)
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
    let platform: Option<Platform> = bundle.descriptor().platform.clone();
    let access = Access {
        platform,
        offline: true,
        pull: None,
        progress: Arc::clone(&options.progress) as Arc<dyn Progress>,
    };
    let source = ImageSource::Layout { directory: layout.to_owned(), name: None };
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
    Ok(ImageChecks { results: results.collect() })
}
