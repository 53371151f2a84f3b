//! A folder of programs or packages on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::Arch;
use cudock_host::host::PythonEnvironment;
use cudock_host::python;
use cudock_image::{Tree, walk_directory};

use super::beside::Directory;
use super::contents::{Disk, TreeFiles};
use super::frameworks::{self, Wholeness};
use super::image::python_environments;
use super::kept::{self, Kept};
use super::linking::Search;
use super::survey::{machine_of, programs_and_rest, survey};
use super::{Context, GatherError, Subject, components, cpu_arch, started_with};
use crate::evidence::{Evidence, SubjectKind};
use cudock_declared::{Declared, FileKind, Files, read_sources, read_with_files};

pub(super) fn evidence(folder: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let real = folder.canonicalize().map_err(|source| GatherError::Io { path: folder.to_owned(), source })?;
    // The Dockerfile is the authority: other files count as far as it copies and installs them.
    if let Some(file) = dockerfile(&real) {
        let path = file.display().to_string();
        return super::gather(&Subject::Environment(file, FileKind::Dockerfile), &path, context);
    }
    let prefix = real.to_string_lossy().into_owned();
    let tree = walk_directory(&real, true, kept::look)?;
    let files = Disk::new();
    let environment = started_with(context);
    let cpu = machine_of(&tree);
    let arch = cpu_arch(cpu.as_deref());
    let search = Search::new(&files, &environment, arch);
    let wholeness = if context.on_this_machine { Wholeness::Whole } else { Wholeness::Part };
    let mut survey = survey(&tree, &prefix);
    let mut evidence =
        Evidence { subject: name.to_owned(), kind: SubjectKind::Folder, cpu, ..Evidence::default() };
    for python in environments_below(&tree, &files, &prefix) {
        let units = frameworks::units(context.facts, &files, &search, &python, arch, wholeness, &mut survey);
        evidence.units.extend(units);
        evidence.components.extend(components::distributions(&python));
    }
    programs_and_rest(context.facts, &files, &search, survey, wholeness, &mut evidence);
    // A project that is not built yet: what it says will be installed and compiled.
    if evidence.units.is_empty()
        && let Some(declared) = project(&real, name)?
    {
        return Ok(super::of_declared(&declared, name, context));
    }
    evidence.environment = environment;
    Ok(evidence)
}

/// The file that says how the directory becomes an image. Of several, one for GPUs.
fn dockerfile(directory: &Path) -> Option<PathBuf> {
    for name in ["Dockerfile", "Containerfile", "dockerfile", "docker/Dockerfile", ".docker/Dockerfile"] {
        let path = directory.join(name);
        if path.is_file() {
            return Some(path);
        }
    }
    let mut others: Vec<PathBuf> = Vec::new();
    for directory in [directory.to_owned(), directory.join("docker")] {
        let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        others.extend(entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            path.is_file() && FileKind::guess(&name, "") == Some(FileKind::Dockerfile)
        }));
    }
    others.sort();
    let is_for_gpus = |path: &PathBuf| {
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        ["gpu", "cuda", "nvidia"].iter().any(|word| name.contains(word))
    };
    let chosen = others.iter().position(is_for_gpus).unwrap_or(0);
    others.into_iter().nth(chosen)
}

/// Dependency files that are installed together. A lock file stands for the files it was made from.
const ENVIRONMENT_FILES: [(&str, FileKind); 5] = [
    ("uv.lock", FileKind::UvLock),
    ("requirements.txt", FileKind::Requirements),
    ("environment.yml", FileKind::CondaEnvironment),
    ("environment.yaml", FileKind::CondaEnvironment),
    ("pyproject.toml", FileKind::Pyproject),
];

/// What a directory's dependency files and sources say together; nothing where there are none.
fn project(directory: &Path, name: &str) -> Result<Option<Declared>, GatherError> {
    let files = Directory::new(directory);
    let mut all = read_sources(&files);
    let mut is_project = !all.compiled.is_empty() || !all.notes.is_empty();
    let has_lock = files.text("uv.lock").is_some();
    for (file, kind) in ENVIRONMENT_FILES {
        if has_lock && kind == FileKind::Pyproject {
            continue;
        }
        let Some(text) = files.text(file) else { continue };
        let wrong = |error| GatherError::Declared { file: format!("{name}/{file}"), error };
        let mut declared =
            read_with_files(kind, file, &text, Arch::default(), file, &files).map_err(wrong)?;
        if kind == FileKind::Pyproject {
            declared.keep_default_groups();
        }
        is_project = true;
        all.merge(declared, file);
    }
    Ok(is_project.then_some(all))
}

/// The directories of packages below a folder, as paths of this machine.
fn environments_below(tree: &Tree<Kept>, files: &Disk, prefix: &str) -> Vec<PythonEnvironment> {
    let below = python_environments(tree, &TreeFiles(tree), &BTreeMap::new());
    let sites = below.into_iter().flat_map(|environment| environment.site_packages);
    let sites = sites.map(|site| format!("{prefix}{}", site.trim_end_matches('/')));
    sites.map(|site| python::at(files, site.clone(), "found", vec![site])).collect()
}
