//! An image: its configuration at once, its layers where they decide.

use std::collections::BTreeMap;

use cudock_facts::Facts;
use cudock_host::host::PythonEnvironment;
use cudock_host::python;
use cudock_image::{Image, LayerLimits, Tree};

use super::contents::TreeFiles;
use super::frameworks::{self, Wholeness};
use super::kept::{self, Kept};
use super::linking::Search;
use super::survey::{machine_of, programs_and_rest, survey};
use super::{GatherError, components, cpu_arch, driver_copies};
use crate::evidence::{Evidence, SubjectKind};

/// What an image's configuration alone says.
pub(crate) fn image_start(image: &Image, name: &str, environment: &BTreeMap<String, String>) -> Evidence {
    let mut set = image.config.config.environment();
    set.extend(environment.clone());
    Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Image,
        cpu: Some(image.platform.architecture.clone()).filter(|architecture| !architecture.is_empty()),
        environment: set,
        ..Evidence::default()
    }
}

/// Evidence of an image, from all of its layers.
pub(crate) fn image(
    image: &Image,
    name: &str,
    environment: &BTreeMap<String, String>,
    facts: &Facts,
) -> Result<Evidence, GatherError> {
    let start = image_start(image, name, environment);
    let tree = image.walk(LayerLimits::default(), kept::look)?;
    Ok(of_tree(&tree, name, start.cpu, start.environment, facts))
}

/// Evidence of a root file system.
pub(super) fn of_tree(
    tree: &Tree<Kept>,
    name: &str,
    cpu: Option<String>,
    environment: BTreeMap<String, String>,
    facts: &Facts,
) -> Evidence {
    let files = TreeFiles(tree);
    let cpu = cpu.or_else(|| machine_of(tree));
    let arch = cpu_arch(cpu.as_deref());
    let search = Search::new(&files, &environment, arch);
    let mut survey = survey(tree, "");
    let mut evidence =
        Evidence { subject: name.to_owned(), kind: SubjectKind::Image, cpu, ..Evidence::default() };
    evidence.driver_copies = driver_copies::find(&files, search.directories());
    for python in python_environments(tree, &files, &environment) {
        let units = frameworks::units(facts, &files, &search, &python, arch, Wholeness::Whole, &mut survey);
        evidence.units.extend(units);
        evidence.components.extend(components::distributions(&python));
    }
    programs_and_rest(facts, &files, &search, survey, Wholeness::Whole, &mut evidence);
    evidence.environment = environment;
    evidence
}

/// The environment a program of the image would run in, or all that hold packages of interest where none is active.
pub(super) fn python_environments(
    tree: &Tree<Kept>,
    files: &TreeFiles<'_>,
    environment: &BTreeMap<String, String>,
) -> Vec<PythonEnvironment> {
    if let Some(active) = python::read(files, environment).filter(|active| !active.distributions.is_empty()) {
        return vec![active];
    }
    let mut sites: Vec<String> = Vec::new();
    for (path, _) in tree.iter().filter(|(_, node)| node.kept().is_some()) {
        let known = path.strip_suffix("/METADATA").or_else(|| path.strip_suffix(".dist-info/RECORD"));
        let Some(folder) = known else { continue };
        // The tree itself may be a directory of packages.
        let site = folder.rsplit_once('/').map_or_else(String::new, |(site, _)| format!("/{site}"));
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    sites.into_iter().map(|site| python::at(files, site.clone(), "found", vec![site])).collect()
}
