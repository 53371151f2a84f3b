//! What a tree of files holds that has to do with GPUs.

use std::collections::BTreeMap;

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_image::Tree;

use super::frameworks::{CodeAt, Wholeness};
use super::kept::{ElfFacts, Kept};
use super::linking::Search;
use super::{architecture, components, packages, programs};
use crate::codes;
use crate::evidence::{Code, Component, Evidence, Role, SubjectKind, Unit};

use super::contents::Contents;

/// Files of interest, by their paths in the file system they are looked up in.
#[derive(Default)]
pub(crate) struct Survey {
    /// Files with GPU code.
    pub(crate) code: Vec<CodeAt>,
    /// Programs that load CUDA.
    pub(crate) programs: Vec<String>,
    pub(crate) components: Vec<Component>,
    /// What is damaged.
    pub(crate) findings: Vec<Finding>,
    /// Files that can come to the driver and hold no GPU code.
    pub(crate) reaching: Vec<String>,
    /// NVIDIA's packages, which count where nothing else was found.
    pub(crate) nvidias: Vec<Unit>,
    /// Packages that make their GPU code when they run, which count where nothing else was found.
    pub(crate) compiling: Vec<Unit>,
}

/// Looks through a tree. `prefix` leads to it in the file system that is searched for libraries.
pub(crate) fn survey(tree: &Tree<Kept>, prefix: &str) -> Survey {
    let mut survey = Survey::default();
    for (path, node) in tree.iter() {
        let path = format!("{prefix}/{path}");
        let facts = match node.kept() {
            Some(Kept::Elf(facts)) => facts,
            Some(Kept::OpensDriver) => {
                survey.reaching.push(path);
                continue;
            }
            Some(Kept::Text(_)) | None => continue,
        };
        survey.components.extend(components::component(&path));
        survey.findings.extend(damage(&path, facts));
        if let Some(code) = &facts.code {
            survey.code.push(CodeAt { path: path.clone(), code: code.clone() });
        } else if facts.words.reaches_driver {
            survey.reaching.push(path.clone());
        }
        if facts.linkage.interpreter.is_some() && uses_cuda(facts) && !belongs_to_others(&path) {
            survey.programs.push(path);
        }
    }
    survey
}

fn uses_cuda(facts: &ElfFacts) -> bool {
    let links = |name: &String| name.starts_with("libcudart.") || name == "libcuda.so.1";
    facts.code.is_some()
        || facts.words.runtime_inside
        || facts.words.opens_driver
        || facts.linkage.needed.iter().any(links)
}

/// Tools of toolkits, and tests and tools of Python distributions, are not what an image is for.
fn belongs_to_others(path: &str) -> bool {
    programs::is_toolkit_file(path) || path.contains("/site-packages/") || path.contains("/dist-packages/")
}

/// What to say about a file that could not be read whole.
pub(crate) fn damage(path: &str, facts: &ElfFacts) -> Option<Finding> {
    let damage = facts.damage.as_ref()?;
    let message = format!("{path} is damaged: {damage}");
    let fix = "install it again: a broken download or a full disk leaves such files";
    let finding = Finding::new(codes::UNREADABLE_BINARY, Severity::Warning, message, fix);
    Some(finding.with_evidence([FindingEvidence::new(path, damage.clone())]))
}

/// Programs as units, and then libraries that no program and no framework was found to load.
pub(crate) fn programs_and_rest(
    facts: &Facts,
    files: &dyn Contents,
    search: &Search<'_>,
    survey: Survey,
    wholeness: Wholeness,
    evidence: &mut Evidence,
) {
    let Survey { mut code, programs, components, findings, nvidias, compiling, reaching: _ } = survey;
    evidence.components.extend(components);
    evidence.findings.extend(findings);
    for path in &programs {
        let Some(unit) = programs::unit(facts, files, search, path, wholeness) else { continue };
        if let Code::Files(used) = &unit.code {
            code.retain(|at| !used.iter().any(|file| file.path == at.path));
        }
        evidence.units.push(unit);
    }
    let (toolkit, rest): (Vec<CodeAt>, Vec<CodeAt>) =
        code.into_iter().partition(|at| programs::is_toolkit_file(&at.path));
    for at in rest {
        evidence.units.extend(programs::unit(facts, files, search, &at.path, Wholeness::Part));
    }
    // A framework's CPU build beside NVIDIA's libraries does not use them.
    if !evidence.units.is_empty() {
        return;
    }
    evidence.units.extend(nvidias);
    // In an image, NVIDIA's libraries wait for a program; in a directory that was named, they are what is asked about.
    if evidence.kind == SubjectKind::Folder && !toolkit.is_empty() {
        let name = "NVIDIA's libraries".to_owned();
        evidence.units.push(packages::package(facts, files, name, toolkit, Role::Vendor));
    }
    if evidence.units.is_empty() {
        evidence.units.extend(compiling);
    }
}

/// The processor most files of a tree are for.
pub(crate) fn machine_of(tree: &Tree<Kept>) -> Option<String> {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for (_, node) in tree.iter() {
        if let Some(Kept::Elf(facts)) = node.kept() {
            *counts.entry(facts.linkage.machine).or_default() += 1;
        }
    }
    counts.remove(&0);
    architecture(counts.into_iter().max_by_key(|(_, count)| *count)?.0).map(str::to_owned)
}
