//! The releases that a range of versions allows, where the range has an end.

use std::str::FromStr;

use cudock_facts::Facts;
use cudock_facts::lookup::TorchWheel;
use pep440_rs::{Operator, Version, VersionSpecifiers};

use cudock_manifests::{Declared, DeclaredPackage, Manager};

/// Releases of the tables that satisfy what is asked, oldest first; none where a later release could satisfy it, too.
pub(super) fn versions(facts: &Facts, package: &DeclaredPackage) -> Vec<Version> {
    if package.manager != Manager::Pip {
        return Vec::new();
    }
    let specifiers = match &package.range {
        Some(range) => VersionSpecifiers::from_str(range).ok(),
        None => Some(VersionSpecifiers::empty()),
    };
    let Some(specifiers) = specifiers else { return Vec::new() };
    let mut known = known(facts, package);
    known.retain(|version| specifiers.contains(version));
    known.sort();
    known.dedup();
    let is_closed = specifiers.iter().any(|specifier| {
        matches!(
            specifier.operator(),
            Operator::LessThan | Operator::LessThanEqual | Operator::TildeEqual | Operator::EqualStar
        )
    });
    // A build for the CPU is one in every release, so the newest stands for all.
    let is_cpu = package.name == "torch" && package.tag.as_deref() == Some("cpu");
    if is_closed || is_cpu || is_closed_index(facts, package) { known } else { Vec::new() }
}

/// Whether the index gets no new releases.
fn is_closed_index(facts: &Facts, package: &DeclaredPackage) -> bool {
    let Some(tag) = package.tag.as_deref().filter(|_| package.exclusive && package.name == "torch") else {
        return false;
    };
    let frameworks = facts.frameworks();
    let builds = frameworks.torch_build.iter().filter(|build| build.tag == tag);
    let last = builds.flat_map(|build| &build.versions).max();
    let newest = frameworks.torch.iter().map(|release| &release.version).max();
    last.is_some() && last < newest
}

fn known(facts: &Facts, package: &DeclaredPackage) -> Vec<Version> {
    let frameworks = facts.frameworks();
    match package.name.as_str() {
        "torch" => {
            let has_build = |version: &Version| match package.tag.as_deref() {
                None | Some("cpu") => true,
                Some(tag) => frameworks.torch_build(version, TorchWheel::Tag(tag)).is_some(),
            };
            let releases = frameworks.torch.iter().map(|release| release.version.clone());
            releases.filter(has_build).collect()
        }
        "tensorflow" => frameworks.tensorflow.iter().map(|release| release.version.clone()).collect(),
        // Patches keep their minor's CUDA and GPU code, so a patch that the table lacks is known by its minor.
        "onnxruntime-gpu" => frameworks
            .onnxruntime_gpu
            .iter()
            .flat_map(|release| {
                let patches = (0..10_u64).filter_map(|patch| match release.version.release() {
                    [major, minor, ..] => Some(Version::new([*major, *minor, patch])),
                    _ => None,
                });
                let last = release.version.clone();
                patches.filter(move |version| *version <= last)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The file with a package at one version.
pub(super) fn pinned(declared: &Declared, package: &DeclaredPackage, version: &Version) -> Declared {
    let mut pinned = declared.clone();
    for found in pinned.packages.iter_mut().filter(|found| *found == package) {
        found.exact = Some(version.clone());
    }
    pinned
}
