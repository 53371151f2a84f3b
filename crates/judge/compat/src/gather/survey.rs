//! Finds everything in a file tree that has to do with GPUs.

use std::collections::BTreeMap;

use cudock_base::{Arch, NamedArch};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_host::host::PythonEnvironment;
use cudock_image::Tree;

use super::binary::linking::Search;
use super::code_file::{CodeAt, Completeness};
use super::contents::Contents;
use super::file_facts::{ElfFacts, FileFacts};
use crate::codes;
use crate::evidence::{Artifact, Code, Component, Evidence, Role, SubjectKind};
use crate::gather::architecture;
use crate::gather::binary::components;

/// Finds artifacts in a file system.
pub(crate) struct ArtifactFinder<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) files: &'a dyn Contents,
    pub(crate) search: Search<'a>,
    pub(crate) cpu_arch: Arch,
    pub(crate) completeness: Completeness,
}

/// Files of interest, by their paths in the file system they are looked up in.
#[derive(Default)]
pub(crate) struct Survey {
    /// Files with GPU code.
    pub(crate) code: Vec<CodeAt>,
    /// Programs that load CUDA.
    pub(crate) programs: Vec<String>,
    pub(crate) components: Vec<Component>,
    /// Findings about damaged files.
    pub(crate) findings: Vec<Finding>,
    /// Files that can load the driver but have no GPU code.
    pub(crate) reaching: Vec<String>,
    /// NVIDIA's packages, which only count if nothing else was found.
    pub(crate) nvidias: Vec<Artifact>,
    /// Packages that generate their GPU code at run time, which only count if nothing else was found.
    pub(crate) compiling: Vec<Artifact>,
}

/// Surveys a tree. `prefix` is its path in the file system that is searched for libraries.
pub(crate) fn survey(tree: &Tree<FileFacts>, prefix: &str) -> Survey {
    let mut survey = Survey::default();
    for (path, node) in tree.iter() {
        let path = format!("{prefix}/{path}");
        let facts = match node.kept() {
            Some(FileFacts::Elf(facts)) => facts,
            Some(FileFacts::OpensDriver) => {
                survey.reaching.push(path);
                continue;
            }
            Some(FileFacts::Text(_)) | None => continue,
        };
        // cudock itself opens the driver to test it, which is not evidence about the other files.
        if facts.is_own {
            continue;
        }
        survey.components.extend(components::component(&path));
        survey.findings.extend(damage(&path, facts));
        if let Some(code) = &facts.code {
            survey.code.push(CodeAt { path: path.clone(), code: code.clone() });
        } else if facts.strings.reaches_driver {
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
        || facts.strings.runtime_inside
        || facts.strings.opens_driver
        || facts.linkage.needed.iter().any(links)
}

/// Whether a program belongs to a toolkit or a Python distribution: those are not what an image is for.
fn belongs_to_others(path: &str) -> bool {
    components::is_toolkit_file(path) || path.contains("/site-packages/") || path.contains("/dist-packages/")
}

/// The finding about a corrupt file.
pub(crate) fn damage(path: &str, facts: &ElfFacts) -> Option<Finding> {
    let damage = facts.damage.as_ref()?;
    let message = format!("{path} is corrupt: {damage}");
    let fix = "install it again: a broken download or a full disk leaves such files";
    let finding = Finding::new(codes::UNREADABLE_BINARY, Severity::Warning, message, fix);
    Some(finding.with_evidence([FindingEvidence::new(path, damage.clone())]))
}

impl<'a> ArtifactFinder<'a> {
    /// Looks for libraries as a program does that is started with these variables, on a processor as images name it.
    pub(crate) fn new(
        facts: &'a Facts,
        files: &'a dyn Contents,
        environment: &BTreeMap<String, String>,
        cpu: Option<&NamedArch>,
        completeness: Completeness,
    ) -> Self {
        let cpu_arch = cpu.and_then(NamedArch::arch).unwrap_or_default();
        Self { facts, files, search: Search::new(files, environment, cpu_arch), cpu_arch, completeness }
    }

    /// Evidence of what was surveyed: frameworks and extensions in Python environments, programs, and libraries that
    /// nothing was found to load.
    pub(crate) fn evidence(
        &self,
        mut survey: Survey,
        pythons: &[PythonEnvironment],
        start: Evidence,
    ) -> Evidence {
        let mut evidence = start;
        for python in pythons {
            evidence.artifacts.extend(self.frameworks(python, &mut survey));
            // A wheel is not a component of itself.
            if evidence.kind != SubjectKind::Wheel {
                evidence.components.extend(components::distributions(python));
            }
        }
        self.programs_and_rest(survey, &mut evidence);
        evidence
    }

    /// Programs as artifacts, and then libraries that no program and no framework was found to load.
    fn programs_and_rest(&self, survey: Survey, evidence: &mut Evidence) {
        let Survey { mut code, programs, components, findings, nvidias, compiling, reaching: _ } = survey;
        evidence.components.extend(components);
        evidence.findings.extend(findings);
        for path in &programs {
            let Some(artifact) = self.program(path, self.completeness) else { continue };
            if let Code::Files(used) = &artifact.code {
                code.retain(|at| !used.iter().any(|file| file.path == at.path));
            }
            evidence.artifacts.push(artifact);
        }
        let (toolkit, rest): (Vec<CodeAt>, Vec<CodeAt>) =
            code.into_iter().partition(|at| components::is_toolkit_file(&at.path));
        for at in rest {
            evidence.artifacts.extend(self.program(&at.path, Completeness::Partial));
        }
        // The CPU build of a framework does not use NVIDIA's libraries next to it.
        if !evidence.artifacts.is_empty() {
            return;
        }
        evidence.artifacts.extend(nvidias);
        // NVIDIA's libraries alone do nothing in an image; in a directory they are what the user wants to know about.
        if evidence.kind == SubjectKind::Directory && !toolkit.is_empty() {
            evidence.artifacts.push(self.package("NVIDIA's libraries".to_owned(), toolkit, Role::Vendor));
        }
        if evidence.artifacts.is_empty() {
            evidence.artifacts.extend(compiling);
        }
    }
}

/// The processor architecture of most files of a tree.
pub(crate) fn machine_of(tree: &Tree<FileFacts>) -> Option<NamedArch> {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for (_, node) in tree.iter() {
        if let Some(FileFacts::Elf(facts)) = node.kept() {
            *counts.entry(facts.linkage.machine).or_default() += 1;
        }
    }
    counts.remove(&0);
    architecture(counts.into_iter().max_by_key(|(_, count)| *count)?.0)
}
