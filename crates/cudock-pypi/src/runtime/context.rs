//! The machine that is searched, and the directories on it that may hold libraries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::Environment;
use cudock_host::{Files, Root, python};

use crate::env::{CONDA_PREFIX, LD_LIBRARY_PATH, PATH, PYENV_ROOT, VIRTUAL_ENV};

/// A machine as far as the search for libraries sees it.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its variables.
    pub environment: Environment,
    /// Its file system.
    pub root: Root,
    /// The directory of the project, whose `.venv` is looked into.
    pub project: Option<PathBuf>,
    /// Where our own installations are; see [`Installer::directory`](super::Installer::directory).
    pub cache: Option<PathBuf>,
    /// The processor, as [`std::env::consts::ARCH`] names it.
    pub cpu: String,
}

/// A Python environment.
pub(super) struct PythonPlace {
    pub(super) prefix: String,
    pub(super) by: &'static str,
    pub(super) site_packages: Vec<String>,
}

impl Machine {
    /// The one this process runs on.
    pub fn this(environment: Environment, project: Option<PathBuf>, cache: Option<PathBuf>) -> Self {
        let project = project.map(|directory| std::path::absolute(&directory).unwrap_or(directory));
        Self { environment, root: Root::live(), project, cache, cpu: std::env::consts::ARCH.to_owned() }
    }

    /// The variables in the words of `cudock_host`.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        let text = |name: &str| Some((name.to_owned(), self.environment.get(name)?.to_str()?.to_owned()));
        [VIRTUAL_ENV, CONDA_PREFIX, PATH, PYENV_ROOT, LD_LIBRARY_PATH].into_iter().filter_map(text).collect()
    }

    /// The Python environments that may be meant: the active ones, the project's own, that of `python3`, and the
    /// user's.
    pub(super) fn python_places(&self) -> Vec<PythonPlace> {
        let files: &dyn Files = &self.root;
        let mut prefixes: Vec<(String, &'static str)> = Vec::new();
        for name in [VIRTUAL_ENV, CONDA_PREFIX] {
            prefixes.extend(self.environment.path(name).and_then(|path| Some((text_of(&path)?, name))));
        }
        let own = self.project.as_ref().map(|project| project.join(".venv"));
        prefixes.extend(own.and_then(|path| Some((text_of(&path)?, ".venv"))));
        let mut variables = self.variables();
        // The environments that are named outright are there already; this asks for the one on the path.
        variables.remove(VIRTUAL_ENV);
        variables.remove(CONDA_PREFIX);
        prefixes.extend(python::prefix(files, &variables));
        // What `pip install --user` has put there, every Python of the user imports.
        let of_user = self.environment.home().map(|home| home.join(".local"));
        prefixes.extend(of_user.and_then(|path| Some((text_of(&path)?, "pip install --user"))));
        let mut places: Vec<PythonPlace> = Vec::new();
        for (prefix, by) in prefixes {
            let prefix = prefix.trim_end_matches('/').to_owned();
            if files.is_dir(&prefix)
                && !places.iter().any(|known| files.real(&known.prefix) == files.real(&prefix))
            {
                let site_packages = python::site_packages(files, &prefix);
                places.push(PythonPlace { prefix, by, site_packages });
            }
        }
        places
    }
}

pub(super) fn text_of(path: &Path) -> Option<String> {
    path.to_str().filter(|path| path.starts_with('/')).map(str::to_owned)
}
