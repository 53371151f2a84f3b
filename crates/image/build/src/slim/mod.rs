//! Images without the code for GPUs that they will not run on.
//!
//! Only layers with such code are written anew, and only the contents of those files change, or unused libraries disappear: every
//! other header is copied byte by byte. All other layers keep their digests, so that registries and machines that have them transfer nothing. The result
//! is judged before it is written anywhere: it must be as good for the targets as the image was before.

mod error;
mod text;
mod unused;

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use cudock_base::{lock, try_parallel};
use cudock_compat::{Judgement, Target, Verdict, gather_image, judge};
use cudock_facts::Facts;
use cudock_facts::version::Capability;
use cudock_fatbin::{SlimError, SlimJob, Slimmed, is_candidate, slim_bytes};
use cudock_http::BlobStore;
use cudock_image::Platform;
use cudock_image::write::{Bundle, Compression, Edit, History, LayerBlob, LayerChanges};
use schemars::JsonSchema;
use serde::Serialize;

pub use error::SlimImageError;
pub use text::lines;

/// Layers are held in memory file by file, and compressed on all cores: more at once gains nothing.
const LAYERS_AT_ONCE: usize = 2;

/// A GPU that the code of an image must still run on.
pub struct SlimTarget {
    /// The name given by the user.
    pub name: String,
    pub capability: Capability,
    /// The target for which the image is judged.
    pub target: Target,
}

/// How an image is slimmed.
pub struct SlimImageJob<'a> {
    pub facts: &'a Facts,
    pub targets: &'a [SlimTarget],
    /// Other GPUs to report about.
    pub gpus: &'a [Capability],
    /// Whether to make files shorter, too.
    pub compact: bool,
    /// The compression of new layers; that of the layer that each replaces without it.
    pub compression: Option<Compression>,
    /// Whether to remove CUDA libraries that nothing links to or opens.
    pub remove_unused: bool,
}

/// An image and what was removed from it.
pub struct SlimImage {
    pub bundle: Bundle,
    /// The files with GPU code, by path.
    pub files: Vec<Slimmed>,
    pub report: ImageReport,
}

/// What became of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImageReport {
    pub digest_before: String,
    pub digest_after: String,
    /// The stored sizes of all layers.
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub layers: Vec<LayerReport>,
    /// The libraries that nothing links to or opens and that were removed, with their bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unused_libraries: BTreeMap<String, u64>,
    /// The verdict of `cudock check` for each target, before and after.
    pub verdicts: BTreeMap<String, Verdict>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LayerReport {
    pub digest_before: String,
    /// The same if the layer did not change.
    pub digest_after: String,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl SlimTarget {
    /// A target that a user named: a GPU, an Azure size, or an architecture, which stands for a GPU that has it.
    pub fn named(
        facts: &Facts,
        name: &str,
        capability: Capability,
        today: cudock_base::Date,
    ) -> Result<Self, cudock_compat::TargetError> {
        let of_architecture = facts.gpus().gpu.iter().find(|gpu| gpu.capability == Some(capability));
        let gpu =
            if name.starts_with("sm_") { of_architecture.map_or(name, |gpu| gpu.id.as_str()) } else { name };
        let target = match Target::named(facts, gpu, None, today)? {
            Some(target) => target,
            None => Target::of_gpu(facts, gpu, None)?,
        };
        Ok(Self { name: name.to_owned(), capability, target })
    }
}

/// Slims an image with all its platforms. New layers are in the store afterwards; the image itself is not written.
pub fn slim_image(
    bundle: &Bundle,
    name: &str,
    job: &SlimImageJob<'_>,
    store: &BlobStore,
) -> Result<SlimImage, SlimImageError> {
    let capabilities: Vec<Capability> = job.targets.iter().map(|target| target.capability).collect();
    let code_job = SlimJob { targets: &capabilities, gpus: job.gpus, compact: job.compact };
    let layers = bundle.layers()?;
    let unused = if job.remove_unused { unused::by_layer(bundle, name, job.facts)? } else { BTreeMap::new() };
    let files = Mutex::new(Vec::new());
    let removed = Mutex::new(BTreeMap::new());
    let edited = try_parallel(&layers, LAYERS_AT_ONCE, |digest| {
        let compression = match job.compression {
            Some(compression) => compression,
            None => bundle.compression_of(digest)?,
        };
        let unused = unused.get(digest);
        bundle.edit_layer(digest, store, compression, &mut |header, bytes| {
            if unused.is_some_and(|paths| paths.contains(&header.path)) {
                lock(&removed).insert(header.path.clone(), header.size());
                return Ok(Edit::Remove);
            }
            Ok::<_, io::Error>(edit(header.path.clone(), bytes, &code_job, &mut |file| {
                lock(&files).push(file);
            }))
        })
    })?;
    let mut files = files.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    check_targets(&files, &code_job)?;
    let edits = layers.iter().zip(edited).filter_map(|(digest, layer)| Some((digest.clone(), layer?)));
    let changes: LayerChanges = edits.collect();
    let slimmed = if changes.is_empty() {
        bundle.clone()
    } else {
        bundle.with_layers(&changes, Some(&history(job)))?
    };
    let before = judgements(bundle, name, job)?;
    if !changes.is_empty() {
        compare(&before, &judgements(&slimmed, name, job)?)?;
    }
    let mut report = report(bundle, &slimmed, &layers, &changes, &before)?;
    report.unused_libraries = removed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(SlimImage { bundle: slimmed, files, report })
}

fn edit(path: String, bytes: &[u8], job: &SlimJob<'_>, report: &mut dyn FnMut(Slimmed)) -> Edit {
    if !is_candidate(bytes) {
        return Edit::Keep;
    }
    let Some((slimmed, content)) = slim_bytes(path, bytes, job, true) else { return Edit::Keep };
    report(slimmed);
    content.map_or(Edit::Keep, Edit::Replace)
}

/// A target without any code stops the run, as for files.
fn check_targets(files: &[Slimmed], job: &SlimJob<'_>) -> Result<(), SlimImageError> {
    for (index, target) in job.targets.iter().enumerate() {
        let loads = |file: &Slimmed| file.plan.loadable.get(index).is_some_and(|modules| *modules > 0);
        if files.iter().any(|file| file.plan.before > 0) && !files.iter().any(loads) {
            return Err(SlimError::NoCode { target: *target }.into());
        }
    }
    Ok(())
}

/// The entry in the configuration's history. It has no time, so that the result is the same each time.
fn history(job: &SlimImageJob<'_>) -> History {
    let names: Vec<&str> = job.targets.iter().map(|target| target.name.as_str()).collect();
    let compact = if job.compact { " --compact" } else { "" };
    let (unused, libraries) =
        if job.remove_unused { (" --remove-unused", ", and unused CUDA libraries") } else { ("", "") };
    History {
        created: None,
        created_by: format!("cudock slim --for {}{compact}{unused}", names.join(",")),
        comment: format!("removed GPU code for other architectures{libraries}"),
        empty_layer: true,
    }
}

/// The judgement of each image for each target.
type Judgements = Vec<(Platform, String, Judgement)>;

fn judgements(bundle: &Bundle, name: &str, job: &SlimImageJob<'_>) -> Result<Judgements, SlimImageError> {
    let mut all = Vec::new();
    for opened in bundle.open(name)? {
        let evidence = gather_image(&opened.image, name, &BTreeMap::new(), job.facts)?;
        for target in job.targets {
            let judgement = judge(&evidence, &target.target, job.facts);
            all.push((opened.image.platform.clone(), target.name.clone(), judgement));
        }
    }
    Ok(all)
}

fn compare(before: &Judgements, after: &Judgements) -> Result<(), SlimImageError> {
    for ((platform, target, old), (_, _, new)) in before.iter().zip(after) {
        if (old.verdict, &old.error) != (new.verdict, &new.error) {
            return Err(SlimImageError::VerdictChanged {
                platform: platform.to_string(),
                target: target.clone(),
                reason: new.reason.clone(),
            });
        }
    }
    Ok(())
}

fn report(
    before: &Bundle,
    after: &Bundle,
    layers: &[String],
    changes: &LayerChanges,
    judgements: &Judgements,
) -> Result<ImageReport, SlimImageError> {
    let mut reports = Vec::new();
    for digest in layers {
        let bytes_before = before.layer_size(digest)?;
        let new: Option<&LayerBlob> = changes.get(digest);
        reports.push(LayerReport {
            digest_before: digest.clone(),
            digest_after: new.map_or_else(|| digest.clone(), |layer| layer.digest.to_string()),
            bytes_before,
            bytes_after: new.map_or(bytes_before, |layer| layer.size),
        });
    }
    Ok(ImageReport {
        digest_before: before.digest().to_owned(),
        digest_after: after.digest().to_owned(),
        bytes_before: reports.iter().map(|layer| layer.bytes_before).sum(),
        bytes_after: reports.iter().map(|layer| layer.bytes_after).sum(),
        layers: reports,
        unused_libraries: BTreeMap::new(),
        verdicts: judgements
            .iter()
            .map(|(_, target, judgement)| (target.clone(), judgement.verdict))
            .collect(),
    })
}
