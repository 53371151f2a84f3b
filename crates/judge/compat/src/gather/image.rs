//! Evidence of an image: from its configuration alone, or from all of its layers.

use std::collections::BTreeMap;

use cudock_base::NamedArch;
use cudock_facts::Facts;
use cudock_host::host::PythonEnvironment;
use cudock_host::python;
use cudock_image::{Image, LayerLimits, Tree};

use super::code_file::Completeness;
use super::contents::TreeFiles;
use super::file_facts::{self, FileFacts};
use super::survey::{ArtifactFinder, machine_of, survey};
use crate::evidence::{Evidence, SubjectKind};
use crate::gather::GatherError;
use crate::gather::binary::driver_copies;

/// Evidence from the configuration of an image alone.
pub(crate) fn image_start(image: &Image, name: &str, environment: &BTreeMap<String, String>) -> Evidence {
    let mut set = image.config.config.environment();
    set.extend(environment.clone());
    Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Image,
        cpu: Some(&image.platform.architecture).filter(|name| !name.is_empty()).map(NamedArch::new),
        environment: set,
        ..Evidence::default()
    }
}

/// Gathers evidence of an image that is open. Its layers are fetched.
pub fn image(
    image: &Image,
    name: &str,
    environment: &BTreeMap<String, String>,
    facts: &Facts,
) -> Result<Evidence, GatherError> {
    let start = image_start(image, name, environment);
    let tree = image.walk(LayerLimits::default(), file_facts::read)?;
    Ok(of_tree(&tree, name, start.cpu, start.environment, facts))
}

/// Evidence of a root file system.
pub(super) fn of_tree(
    tree: &Tree<FileFacts>,
    name: &str,
    cpu: Option<NamedArch>,
    environment: BTreeMap<String, String>,
    facts: &Facts,
) -> Evidence {
    let files = TreeFiles(tree);
    let cpu = cpu.or_else(|| machine_of(tree));
    let finder = ArtifactFinder::new(facts, &files, &environment, cpu.as_ref(), Completeness::Complete);
    let pythons = python_environments(tree, &files, &environment);
    let start = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Image,
        cpu,
        driver_copies: driver_copies::find(&files, finder.search.directories()),
        environment,
        ..Evidence::default()
    };
    finder.evidence(survey(tree, ""), &pythons, start)
}

/// The active Python environment of the image, or all environments with relevant packages if none is active.
pub(super) fn python_environments(
    tree: &Tree<FileFacts>,
    files: &TreeFiles<'_>,
    environment: &BTreeMap<String, String>,
) -> Vec<PythonEnvironment> {
    if let Some(active) = python::read(files, environment).filter(|active| !active.distributions.is_empty()) {
        return vec![active];
    }
    let mut sites: Vec<String> = Vec::new();
    for (path, _) in tree.iter().filter(|(_, node)| node.kept().is_some()) {
        let known = path.strip_suffix("/METADATA").or_else(|| path.strip_suffix(".dist-info/RECORD"));
        let Some(directory) = known else { continue };
        // The tree itself may be a directory of packages.
        let site = directory.rsplit_once('/').map_or_else(String::new, |(site, _)| format!("/{site}"));
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    sites.into_iter().map(|site| python::at(files, site.clone(), "found", vec![site])).collect()
}
