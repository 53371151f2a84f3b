//! Finds versions that their package index does not have.

use cudock_facts::Facts;
use cudock_facts::finding::FindingEvidence;
use cudock_facts::lookup::{TorchWheel, without_local};

use super::position;
use crate::codes;
use crate::evidence::BuildFailure;
use cudock_manifests::{Declared, DeclaredPackage, Manager};

/// A version of torch that its index never had: each index holds the releases of some years.
pub(super) fn missing_version(facts: &Facts, file: &str, declared: &Declared) -> Option<BuildFailure> {
    declared.packages.iter().find_map(|package| torch(facts, file, package))
}

fn torch(facts: &Facts, file: &str, package: &DeclaredPackage) -> Option<BuildFailure> {
    let (version, tag) = (package.exact.as_ref()?, package.tag.as_deref()?);
    let is_only_there = package.exclusive || version.is_local();
    if package.name != "torch" || package.manager != Manager::Pip || !is_only_there {
        return None;
    }
    let frameworks = facts.frameworks();
    let wanted = without_local(version);
    // A release that the tables do not know may be anywhere.
    frameworks.torch(&wanted)?;
    if frameworks.torch_build(&wanted, TorchWheel::Tag(tag)).is_some() {
        return None;
    }
    let versions =
        || frameworks.torch_build.iter().filter(|build| build.tag == tag).flat_map(|build| &build.versions);
    let (first, last) = (versions().min()?, versions().max()?);
    if *first <= wanted && wanted <= *last {
        return None;
    }
    let tags = frameworks.torch_builds(&wanted).map(|build| build.tag.clone()).collect::<Vec<_>>().join(", ");
    Some(BuildFailure {
        code: codes::NOT_IN_INDEX,
        reason: format!(
            "the index {tag} has torch {first} to {last}, but not {wanted}: the installation fails"
        ),
        evidence: vec![FindingEvidence::new(position(file, package), format!("torch {version} from {tag}"))],
        fix: format!("install torch {wanted} from {tags}, or a torch from {first} to {last}"),
        error: "pip".to_owned(),
        message: format!("ERROR: No matching distribution found for torch=={version}"),
    })
}
