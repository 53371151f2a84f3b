//! The report of a build: digests, sizes, omitted files, the verdict for each target, and the tree
//! of sizes.

use std::collections::BTreeMap;

use cudock_compat::Verdict;
use cudock_image::Descriptor;
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::group_name;
use crate::files::rules::{GPU_CODE, RULES};
use crate::layers::WrittenLayer;
use crate::plan::ImagePlan;

/// The report of `cudock build`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildReport {
    pub name: String,
    /// The digest of the image, or of the index of several.
    pub digest: String,
    pub destination: Option<String>,
    /// How layers are compressed, and why.
    pub compression: String,
    pub images: Vec<ImageReport>,
    pub warnings: Vec<String>,
}

/// One image.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImageReport {
    pub digest: String,
    /// `sm_75`; empty for an image that runs on CPUs.
    pub gpu: String,
    /// The bytes to pull.
    pub compressed: u64,
    /// The bytes of all files.
    pub unpacked: u64,
    pub files: usize,
    pub layers: Vec<LayerReport>,
    pub omitted: Vec<OmittedTotal>,
    /// What `check` says for each target.
    pub checks: Vec<CheckedTarget>,
    /// What is attached to it, in registries and OCI layouts: bills of materials, provenance, the report of `check`.
    pub documents: Vec<AttachedDocument>,
    /// What each part of it is, and why it is there; only with `--explain-size`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeNode>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LayerReport {
    pub group: &'static str,
    pub digest: String,
    pub compressed: u64,
    pub files: usize,
    /// Whether it was built before.
    pub cached: bool,
}

/// What a rule left out.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OmittedTotal {
    pub rule: &'static str,
    pub reason: &'static str,
    pub files: usize,
    pub bytes: u64,
    /// The largest, with their bytes.
    pub largest: Vec<OmittedEntry>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OmittedEntry {
    pub path: String,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedTarget {
    pub target: String,
    pub verdict: Verdict,
    pub reason: String,
}

/// A referrer of an image.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttachedDocument {
    /// `application/spdx+json`
    pub artifact_type: String,
    /// The digest of its manifest.
    pub digest: String,
}

/// A part of an image: a group, a package or a file.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SizeNode {
    pub name: String,
    pub bytes: u64,
    pub reason: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<SizeNode>,
}

impl From<Descriptor> for AttachedDocument {
    fn from(descriptor: Descriptor) -> Self {
        Self { artifact_type: descriptor.artifact_type.unwrap_or_default(), digest: descriptor.digest }
    }
}

impl BuildReport {
    /// Whether the image runs on all of its targets.
    pub fn runs(&self) -> bool {
        let mut checks = self.images.iter().flat_map(|image| &image.checks);
        checks.all(|check| check.verdict.uses_gpu())
    }
}

/// Files of at least this size are named.
const NAMED: u64 = 1 << 20;
const LARGEST: usize = 10;

/// The bytes of files as they are in the image, by path.
pub(crate) fn final_sizes(plan: &ImagePlan, layers: &[WrittenLayer]) -> BTreeMap<String, u64> {
    let slimmed: BTreeMap<&String, u64> =
        layers.iter().flat_map(|layer| &layer.slimmed).map(|(path, bytes)| (path, *bytes)).collect();
    let size = |path: &String, original: u64| slimmed.get(path).copied().unwrap_or(original);
    let files = plan.files.values().filter(|file| file.kind.is_file());
    files.map(|file| (file.path.clone(), size(&file.path, file.size()))).collect()
}

/// The tree of sizes: groups, packages, large files; the largest first.
pub(crate) fn size_tree(plan: &ImagePlan, sizes: &BTreeMap<String, u64>) -> Vec<SizeNode> {
    let mut groups: BTreeMap<_, BTreeMap<(&str, &str), Vec<SizeNode>>> = BTreeMap::new();
    for file in plan.files.values() {
        let Some(bytes) = sizes.get(&file.path) else { continue };
        let mut reason = plan.reasons.get(&file.path).cloned().unwrap_or_default();
        if *bytes < file.size() {
            let saved = cudock_base::text::format::bytes(file.size() - bytes);
            let note = format!("{saved} of code for other cards removed");
            reason = if reason.is_empty() { note } else { format!("{reason}; {note}") };
        }
        let node = SizeNode { name: format!("/{}", file.path), bytes: *bytes, reason, parts: Vec::new() };
        let packages = groups.entry(file.origin.group).or_default();
        packages.entry((&file.origin.name, &file.origin.reason)).or_default().push(node);
    }
    let groups = groups.into_iter().map(|(group, packages)| {
        let packages = packages.into_iter().map(|((name, reason), mut files)| {
            let bytes = files.iter().map(|file| file.bytes).sum();
            files.retain(|file| file.bytes >= NAMED);
            node(name, bytes, reason, files)
        });
        let packages: Vec<SizeNode> = packages.collect();
        node(group_name(group), packages.iter().map(|package| package.bytes).sum(), "", packages)
    });
    let mut groups: Vec<SizeNode> = groups.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    groups
}

fn node(name: &str, bytes: u64, reason: &str, mut parts: Vec<SizeNode>) -> SizeNode {
    parts.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.name.cmp(&other.name)));
    SizeNode { name: name.to_owned(), bytes, reason: reason.to_owned(), parts }
}

/// The files that each rule left out, GPU code included.
pub(crate) fn omitted(plan: &ImagePlan, sizes: &BTreeMap<String, u64>) -> Vec<OmittedTotal> {
    let mut totals = Vec::new();
    for rule in &RULES {
        let mut entries: Vec<OmittedEntry> = if rule.name == GPU_CODE {
            let smaller = plan.files.values().filter_map(|file| {
                let bytes = file.size().checked_sub(*sizes.get(&file.path)?).filter(|bytes| *bytes > 0)?;
                Some(OmittedEntry { path: format!("/{}", file.path), bytes, reason: None })
            });
            smaller.collect()
        } else {
            let of_rule = plan.omitted.iter().filter(|file| file.rule == rule.name);
            let entry =
                |path: &String, bytes, reason| OmittedEntry { path: format!("/{path}"), bytes, reason };
            of_rule.map(|file| entry(&file.path, file.bytes, file.reason.clone())).collect()
        };
        if entries.is_empty() {
            continue;
        }
        let (files, bytes) = (entries.len(), entries.iter().map(|entry| entry.bytes).sum());
        entries.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.path.cmp(&other.path)));
        entries.truncate(LARGEST);
        totals.push(OmittedTotal { rule: rule.name, reason: rule.reason, files, bytes, largest: entries });
    }
    totals
}
