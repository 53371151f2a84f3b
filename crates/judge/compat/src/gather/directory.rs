//! Evidence of a directory of programs or packages on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::Arch;
use cudock_host::host::PythonEnvironment;
use cudock_host::python;
use cudock_image::{Tree, walk_directory};

use super::build_context::BuildContext;
use super::contents::{Disk, TreeFiles};
use super::file_facts::{self, FileFacts};
use super::image::python_environments;
use super::survey::{ArtifactFinder, machine_of, survey};
use super::{Context, GatherError, Subject, file_name, started_with};
use crate::evidence::{Evidence, SubjectKind};
use cudock_manifests::{Declared, FileKind, Files, read_sources, read_with_files};

pub(super) fn evidence(directory: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let real = directory.canonicalize().map_err(GatherError::io(directory))?;
    // If there is a Dockerfile, other files only count if it copies and installs them.
    if let Some(file) = dockerfile(&real) {
        let path = file.display().to_string();
        return super::gather(&Subject::Environment(file, FileKind::Dockerfile), &path, context);
    }
    let prefix = real.to_string_lossy().into_owned();
    let tree = walk_directory(&real, true, file_facts::read)?;
    let files = Disk::new();
    let environment = started_with(context);
    let cpu = machine_of(&tree);
    let completeness = context.completeness();
    let finder = ArtifactFinder::new(context.facts, &files, &environment, cpu.as_ref(), completeness);
    let pythons = environments_below(&tree, &files, &prefix);
    let start =
        Evidence { subject: name.to_owned(), kind: SubjectKind::Directory, cpu, ..Evidence::default() };
    let evidence = finder.evidence(survey(&tree, &prefix), &pythons, start);
    // In a project that is not built yet, dependency files say what will be installed and compiled.
    if evidence.artifacts.is_empty()
        && let Some(declared) = project(&real, name)?
    {
        return Ok(super::of_environment(&declared, name, context));
    }
    Ok(Evidence { environment, ..evidence })
}

/// The Dockerfile of a directory; of several, one for GPUs.
fn dockerfile(directory: &Path) -> Option<PathBuf> {
    let usual = ["Dockerfile", "Containerfile", "dockerfile", "docker/Dockerfile", ".docker/Dockerfile"];
    if let Some(path) = usual.map(|name| directory.join(name)).into_iter().find(|path| path.is_file()) {
        return Some(path);
    }
    let mut others: Vec<PathBuf> = Vec::new();
    for directory in [directory.to_owned(), directory.join("docker")] {
        let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        others.extend(entries.map(|entry| entry.path()).filter(|path| {
            path.is_file() && FileKind::guess(&file_name(path), "") == Some(FileKind::Dockerfile)
        }));
    }
    others.sort();
    let is_for_gpus = |path: &PathBuf| {
        let name = file_name(path).to_ascii_lowercase();
        ["gpu", "cuda", "nvidia"].iter().any(|word| name.contains(word))
    };
    let chosen = others.iter().position(is_for_gpus).unwrap_or(0);
    others.into_iter().nth(chosen)
}

/// Dependency files that are installed together. A lock file replaces the files it was made from.
const ENVIRONMENT_FILES: [(&str, FileKind); 5] = [
    ("uv.lock", FileKind::UvLock),
    ("requirements.txt", FileKind::Requirements),
    ("environment.yml", FileKind::CondaEnvironment),
    ("environment.yaml", FileKind::CondaEnvironment),
    ("pyproject.toml", FileKind::Pyproject),
];

/// The dependency files and sources of a directory, merged; none if there are none.
fn project(directory: &Path, name: &str) -> Result<Option<Declared>, GatherError> {
    let files = BuildContext::new(directory);
    let mut all = read_sources(&files);
    let mut is_project = !all.compiled.is_empty() || !all.notes.is_empty();
    let has_lock = files.text("uv.lock").is_some();
    for (file, kind) in ENVIRONMENT_FILES {
        if has_lock && kind == FileKind::Pyproject {
            continue;
        }
        let Some(text) = files.text(file) else { continue };
        let invalid = |error| GatherError::Declared { file: format!("{name}/{file}"), error };
        let mut declared =
            read_with_files(kind, file, &text, Arch::default(), file, &files).map_err(invalid)?;
        if kind == FileKind::Pyproject {
            declared.keep_default_groups();
        }
        is_project = true;
        all.merge(declared, file);
    }
    Ok(is_project.then_some(all))
}

/// The Python environments below a directory, with paths of this machine.
fn environments_below(tree: &Tree<FileFacts>, files: &Disk, prefix: &str) -> Vec<PythonEnvironment> {
    let below = python_environments(tree, &TreeFiles(tree), &BTreeMap::new());
    let sites = below.into_iter().flat_map(|environment| environment.site_packages);
    let sites = sites.map(|site| format!("{prefix}{}", site.trim_end_matches('/')));
    sites.map(|site| python::at(files, site.clone(), "found", vec![site])).collect()
}
