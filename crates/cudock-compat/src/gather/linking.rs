//! What the dynamic loader would find for a program, and what it would not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cudock_host::host::FoundBy;
use cudock_host::loader::{Directory, directories};

use super::components::vendor_library;
use super::contents::Contents;
use crate::evidence::{Effect, Missing};

/// Libraries that come with the driver and are never part of an image.
pub(crate) fn belongs_to_driver(name: &str) -> bool {
    let named = ["libcuda.so.1", "libnvcuvid.so.1", "libnvoptix.so.1", "libcudadebugger.so.1"];
    named.contains(&name) || (name.starts_with("libnvidia-") && name.ends_with(".so.1"))
}

/// Where a loader looks.
pub(crate) struct Search<'f> {
    files: &'f dyn Contents,
    directories: Vec<Directory>,
}

/// All libraries of a program.
#[derive(Debug, Default)]
pub(crate) struct Closure {
    /// By the name they are asked for.
    pub(crate) found: BTreeMap<String, String>,
    /// What is asked for and not found.
    pub(crate) missing: Vec<Gone>,
    /// The library, the version it lacks, and who asks for it.
    pub(crate) lacking: Vec<(String, String, String)>,
    /// Whether something names libcuda among what it cannot start without.
    pub(crate) links_driver: bool,
}

impl Closure {
    /// What is not found, or lacks a version, with what follows from it.
    pub(crate) fn into_missing(self, effect: Effect) -> Vec<Missing> {
        let gone = self.missing.into_iter().map(|Gone { name, needed_by, broken }| Missing {
            library: name,
            needed_by,
            version: None,
            broken,
            effect,
        });
        let lacking = self.lacking.into_iter().map(|(library, version, needed_by)| Missing {
            library,
            needed_by,
            version: Some(version),
            broken: None,
            effect,
        });
        gone.chain(lacking).collect()
    }
}

/// A library that is asked for and not found.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) name: String,
    pub(crate) needed_by: String,
    /// A file that ends the search, because it is none.
    pub(crate) broken: Option<String>,
}

/// A library that is still to be looked at, with the directories its loaders hand down.
struct Open {
    path: String,
    inherited: Vec<String>,
}

impl<'f> Search<'f> {
    pub(crate) fn new(
        files: &'f dyn Contents,
        environment: &BTreeMap<String, String>,
        cpu_arch: &str,
    ) -> Self {
        Self { files, directories: directories(files, environment, cpu_arch) }
    }

    pub(crate) fn directories(&self) -> &[Directory] {
        &self.directories
    }

    fn of(&self, found_by: impl Fn(FoundBy) -> bool) -> impl Iterator<Item = &str> {
        self.directories
            .iter()
            .filter(move |directory| found_by(directory.found_by))
            .map(|directory| directory.path.as_str())
    }

    /// Where a library is that was asked for by name alone.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        let searched = self.of(|found_by| found_by != FoundBy::NotSearched);
        searched.map(|directory| format!("{directory}/{name}")).find(|path| self.files.elf(path).is_some())
    }

    /// Where a library is that a program opens by itself: its own paths count, too.
    pub(crate) fn find_for(&self, program: &str, name: &str) -> Option<String> {
        let facts = self.files.elf(program)?;
        let own = |list: &Option<String>| -> Vec<String> {
            list.iter().flat_map(|list| list.split(':')).flat_map(|entry| expanded(entry, program)).collect()
        };
        let (rpath, runpath) = (own(&facts.linkage.rpath), own(&facts.linkage.runpath));
        self.resolve(name, facts.linkage.machine, &rpath, &runpath, &[]).ok()
    }

    /// Everything a file needs, as the loader would find it. `loaded` are directories whose libraries the program loads
    /// by itself before they are asked for.
    pub(crate) fn closure(&self, start: &str, loaded: &[String]) -> Closure {
        let mut closure = Closure::default();
        let mut seen = BTreeSet::new();
        let mut open = VecDeque::from([Open { path: start.to_owned(), inherited: Vec::new() }]);
        let machine = self.files.elf(start).map_or(0, |facts| facts.linkage.machine);
        let mut needs: Vec<(String, String, String)> = Vec::new();
        while let Some(Open { path, inherited }) = open.pop_front() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let Some(facts) = self.files.elf(&path) else { continue };
            let linkage = &facts.linkage;
            for need in &linkage.versions {
                needs.push((need.library.clone(), need.version.clone(), path.clone()));
            }
            let own = |list: &Option<String>| -> Vec<String> {
                list.iter()
                    .flat_map(|list| list.split(':'))
                    .flat_map(|entry| expanded(entry, &path))
                    .collect()
            };
            let runpath = own(&linkage.runpath);
            // A RUNPATH switches off the RPATHs of the file and of all that loaded it.
            let rpaths: Vec<String> = if linkage.runpath.is_some() {
                Vec::new()
            } else {
                own(&linkage.rpath).into_iter().chain(inherited).collect()
            };
            for name in &linkage.needed {
                if belongs_to_driver(name) {
                    closure.links_driver |= name == "libcuda.so.1";
                    continue;
                }
                if closure.found.contains_key(name) || closure.missing.iter().any(|gone| gone.name == *name) {
                    continue;
                }
                match self.resolve(name, machine, &rpaths, &runpath, loaded) {
                    Ok(found) => {
                        closure.found.insert(name.clone(), found.clone());
                        open.push_back(Open { path: found, inherited: rpaths.clone() });
                    }
                    Err(broken) => {
                        closure.missing.push(Gone { name: name.clone(), needed_by: path.clone(), broken });
                    }
                }
            }
        }
        closure.lacking = self.lacking(&closure, needs);
        closure
    }

    /// The first file of that name for this processor. A file that is no library ends the search: the loader stops at it.
    fn resolve(
        &self,
        name: &str,
        machine: u16,
        rpaths: &[String],
        runpath: &[String],
        loaded: &[String],
    ) -> Result<String, Option<String>> {
        let by_path = self.of(|found_by| found_by == FoundBy::LibraryPath);
        let system = self.of(|found_by| matches!(found_by, FoundBy::Configuration | FoundBy::Default));
        let directories = rpaths
            .iter()
            .map(String::as_str)
            .chain(by_path)
            .chain(runpath.iter().map(String::as_str))
            .chain(system)
            .chain(loaded.iter().map(String::as_str));
        let candidates: Vec<String> = if name.contains('/') {
            vec![name.to_owned()]
        } else {
            directories.map(|directory| format!("{directory}/{name}")).collect()
        };
        for path in candidates {
            match self.files.elf(&path) {
                Some(facts) if machine == 0 || facts.linkage.machine == machine => return Ok(path),
                None if self.files.size(&path).is_some() => return Err(Some(path)),
                // Not there, or for another processor.
                None | Some(_) => {}
            }
        }
        Err(None)
    }

    /// Versions that are asked for and not there.
    fn lacking(
        &self,
        closure: &Closure,
        needs: Vec<(String, String, String)>,
    ) -> Vec<(String, String, String)> {
        let mut lacking = Vec::new();
        for (library, version, by) in needs {
            let Some(path) = closure.found.get(&library) else { continue };
            let Some(facts) = self.files.elf(path) else { continue };
            let defines = &facts.linkage.defines;
            // Other makers' libraries may come without versions, and work; NVIDIA's always have them.
            let bare = defines.is_empty() && vendor_library(path).is_none();
            if !bare && !defines.contains(&version) && version != "GLIBC_PRIVATE" {
                lacking.push((library, version, by));
            }
        }
        lacking
    }
}

/// An entry of RPATH or RUNPATH with its variables put in.
fn expanded(entry: &str, file: &str) -> Vec<String> {
    let origin = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let entry = entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin);
    let entry = entry.trim_end_matches('/').to_owned();
    if entry.is_empty() {
        return Vec::new();
    }
    if entry.contains("$LIB") || entry.contains("${LIB}") {
        let with = |lib: &str| entry.replace("${LIB}", lib).replace("$LIB", lib);
        return vec![with("lib/x86_64-linux-gnu"), with("lib64"), with("lib")];
    }
    vec![entry]
}
