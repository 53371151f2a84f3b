//! The environment in which libraries are searched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::{Arch, Environment};
use cudock_host::{Files, Root, python};

use crate::env::{CONDA_PREFIX, LD_LIBRARY_PATH, PATH, PYENV_ROOT, VIRTUAL_ENV};

/// The variables, file system and directories that are searched.
#[derive(Debug, Clone)]
pub struct SearchContext {
    pub environment: Environment,
    pub root: Root,
    /// The project directory, whose `.venv` is searched.
    pub project: Option<PathBuf>,
    /// The directory of installations; see [`Installer::directory`](super::Installer::directory).
    pub cache: Option<PathBuf>,
    /// The processor.
    pub cpu: Arch,
}

pub(super) struct PythonEnvironment {
    pub(super) prefix: String,
    pub(super) by: &'static str,
    pub(super) site_packages: Vec<String>,
}

impl SearchContext {
    /// The machine of this process.
    pub fn of_process(environment: Environment, project: Option<PathBuf>, cache: Option<PathBuf>) -> Self {
        let project = project.map(|directory| std::path::absolute(&directory).unwrap_or(directory));
        Self { environment, root: Root::live(), project, cache, cpu: Arch::CURRENT }
    }

    /// The variables that `cudock_host` uses.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        let text = |name: &str| Some((name.to_owned(), self.environment.get(name)?.to_str()?.to_owned()));
        [VIRTUAL_ENV, CONDA_PREFIX, PATH, PYENV_ROOT, LD_LIBRARY_PATH].into_iter().filter_map(text).collect()
    }

    /// The Python environments: the active ones, the project's own, that of `python3`, and the user's.
    pub(super) fn python_environments(&self) -> Vec<PythonEnvironment> {
        let files: &dyn Files = &self.root;
        let mut prefixes: Vec<(String, &'static str)> = Vec::new();
        for name in [VIRTUAL_ENV, CONDA_PREFIX] {
            prefixes.extend(self.environment.path(name).and_then(|path| Some((text_of(&path)?, name))));
        }
        let own = self.project.as_ref().map(|project| project.join(".venv"));
        prefixes.extend(own.and_then(|path| Some((text_of(&path)?, ".venv"))));
        let mut variables = self.variables();
        // The active environments are listed already; this finds the one of `python3` in `PATH`.
        variables.remove(VIRTUAL_ENV);
        variables.remove(CONDA_PREFIX);
        prefixes.extend(python::prefix(files, &variables));
        // Every Python of the user imports what `pip install --user` installed.
        let of_user = self.environment.home().map(|home| home.join(".local"));
        prefixes.extend(of_user.and_then(|path| Some((text_of(&path)?, "pip install --user"))));
        let mut environments: Vec<PythonEnvironment> = Vec::new();
        for (prefix, by) in prefixes {
            let prefix = prefix.trim_end_matches('/').to_owned();
            if files.is_dir(&prefix)
                && !environments.iter().any(|known| files.real(&known.prefix) == files.real(&prefix))
            {
                let site_packages = python::site_packages(files, &prefix);
                environments.push(PythonEnvironment { prefix, by, site_packages });
            }
        }
        environments
    }
}

pub(super) fn text_of(path: &Path) -> Option<String> {
    path.to_str().filter(|path| path.starts_with('/')).map(str::to_owned)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writes files of these names in a directory.
    pub(in crate::runtime) fn put(root: &Path, directory: &str, names: &[&str]) {
        std::fs::create_dir_all(root.join(directory)).unwrap();
        for name in names {
            std::fs::write(root.join(directory).join(name), "x").unwrap();
        }
    }

    /// A machine whose files are below `root`.
    pub(in crate::runtime) fn machine(root: &Path, variables: &[(&str, &str)]) -> SearchContext {
        SearchContext {
            environment: Environment::of(root, variables.iter().copied()),
            root: Root::tree(root).unwrap(),
            project: Some(PathBuf::from("/project")),
            cache: Some(PathBuf::from("/cache/runtimes")),
            cpu: Arch::X86_64,
        }
    }
}
