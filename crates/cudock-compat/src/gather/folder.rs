//! A folder of programs or packages on this machine.

use std::collections::BTreeMap;
use std::path::Path;

use cudock_host::host::PythonEnvironment;
use cudock_host::python;
use cudock_image::{Tree, walk_folder};

use super::contents::{Disk, TreeFiles};
use super::frameworks::{self, Wholeness};
use super::image::python_environments;
use super::kept::{self, Kept};
use super::linking::Search;
use super::survey::{machine_of, programs_and_rest, survey};
use super::{Context, GatherError, Subject, components, cpu_arch, started_with};
use crate::evidence::{Evidence, SubjectKind};

pub(super) fn evidence(folder: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let real = folder.canonicalize().map_err(|source| GatherError::Io { path: folder.to_owned(), source })?;
    let prefix = real.to_string_lossy().into_owned();
    let tree = walk_folder(&real, true, kept::look)?;
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
        let (units, late) =
            frameworks::units(context.facts, &files, &search, &python, arch, wholeness, &mut survey);
        evidence.units.extend(units);
        evidence.findings.extend(late);
        evidence.components.extend(components::distributions(&python));
    }
    programs_and_rest(context.facts, &files, &search, survey, wholeness, &mut evidence);
    if evidence.units.is_empty()
        && let Some(file) = ENVIRONMENT_FILES.iter().map(|file| real.join(file)).find(|file| file.is_file())
        && let Ok(subject @ Subject::Environment(..)) = super::subject::file(&file)
    {
        // A project that is not built yet: what it says will be installed.
        return super::gather(&subject, &file.display().to_string(), context);
    }
    evidence.environment = environment;
    Ok(evidence)
}

/// What a project says of itself, the most precise first.
const ENVIRONMENT_FILES: [&str; 5] =
    ["uv.lock", "requirements.txt", "environment.yml", "pyproject.toml", "Dockerfile"];

/// The directories of packages below a folder, as paths of this machine.
fn environments_below(tree: &Tree<Kept>, files: &Disk, prefix: &str) -> Vec<PythonEnvironment> {
    let below = python_environments(tree, &TreeFiles(tree), &BTreeMap::new());
    let sites = below.into_iter().flat_map(|environment| environment.site_packages);
    let sites = sites.map(|site| format!("{prefix}{}", site.trim_end_matches('/')));
    sites.map(|site| python::at(files, site.clone(), "found", vec![site])).collect()
}
