//! Resolves libraries as the dynamic loader does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cudock_base::Arch;
use cudock_base::text::path::parent;
use cudock_host::host::FoundBy;
use cudock_host::loader::{Directory, directories};

use super::components::vendor_library;
use crate::evidence::{Effect, Missing};
use crate::gather::contents::Contents;

/// Libraries that come with the driver and are never part of an image.
pub(crate) fn belongs_to_driver(name: &str) -> bool {
    let named = ["libcuda.so.1", "libnvcuvid.so.1", "libnvoptix.so.1", "libcudadebugger.so.1"];
    named.contains(&name) || (name.starts_with("libnvidia-") && name.ends_with(".so.1"))
}

/// The search path of the loader.
pub(crate) struct Search<'f> {
    files: &'f dyn Contents,
    directories: Vec<Directory>,
}

/// All libraries that a program needs, directly or indirectly.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// Their paths, by the needed name.
    pub(crate) found: BTreeMap<String, String>,
    /// Libraries that are not found, then those that miss a symbol version.
    missing: Vec<Missing>,
    /// Whether libcuda is among them.
    pub(crate) links_driver: bool,
}

impl Dependencies {
    /// The libraries that are not found or miss a symbol version.
    pub(crate) fn into_missing(self, effect: Effect) -> Vec<Missing> {
        self.missing.into_iter().map(|missing| Missing { effect, ..missing }).collect()
    }
}

/// A library whose dependencies are still to be resolved, with the RPATHs that it inherits.
struct Pending {
    path: String,
    inherited: Vec<String>,
}

impl<'f> Search<'f> {
    pub(crate) fn new(
        files: &'f dyn Contents,
        environment: &BTreeMap<String, String>,
        cpu_arch: Arch,
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

    /// The path of a library by its name alone.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        let searched = self.of(|found_by| found_by != FoundBy::NotSearched);
        searched.map(|directory| format!("{directory}/{name}")).find(|path| self.files.elf(path).is_some())
    }

    /// The path of a library that a program opens with dlopen, which also uses the program's own search paths.
    pub(crate) fn find_for(&self, program: &str, name: &str) -> Option<String> {
        let linkage = &self.files.elf(program)?.linkage;
        let (rpath, runpath) =
            (listed(linkage.rpath.as_deref(), program), listed(linkage.runpath.as_deref(), program));
        self.resolve(name, linkage.machine, &rpath, &runpath, &[]).ok()
    }

    /// Resolves everything that a file needs. `loaded` are directories whose libraries the program loads itself before they
    /// are needed.
    pub(crate) fn dependencies(&self, start: &str, loaded: &[String]) -> Dependencies {
        let mut dependencies = Dependencies::default();
        let mut seen = BTreeSet::new();
        let mut pending = VecDeque::from([Pending { path: start.to_owned(), inherited: Vec::new() }]);
        let machine = self.files.elf(start).map_or(0, |facts| facts.linkage.machine);
        let mut versions: Vec<Missing> = Vec::new();
        while let Some(Pending { path, inherited }) = pending.pop_front() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let Some(facts) = self.files.elf(&path) else { continue };
            let linkage = &facts.linkage;
            let missing = |library: &String| Missing::new(library.clone(), path.clone(), Effect::Fails);
            let needed = linkage.versions.iter();
            versions.extend(
                needed.map(|need| Missing { version: Some(need.version.clone()), ..missing(&need.library) }),
            );
            let runpath = listed(linkage.runpath.as_deref(), &path);
            // A RUNPATH switches off the RPATHs of the file and of all that loaded it.
            let rpaths: Vec<String> = if linkage.runpath.is_some() {
                Vec::new()
            } else {
                listed(linkage.rpath.as_deref(), &path).into_iter().chain(inherited).collect()
            };
            for name in &linkage.needed {
                if belongs_to_driver(name) {
                    dependencies.links_driver |= name == "libcuda.so.1";
                    continue;
                }
                if dependencies.found.contains_key(name)
                    || dependencies.missing.iter().any(|known| known.library == *name)
                {
                    continue;
                }
                match self.resolve(name, machine, &rpaths, &runpath, loaded) {
                    Ok(found) => {
                        dependencies.found.insert(name.clone(), found.clone());
                        pending.push_back(Pending { path: found, inherited: rpaths.clone() });
                    }
                    Err(broken) => dependencies.missing.push(Missing { broken, ..missing(name) }),
                }
            }
        }
        versions.retain(|need| self.lacks_version(&dependencies.found, need));
        dependencies.missing.extend(versions);
        dependencies
    }

    /// The first file of that name for this processor. Like the loader, stops at a file that is not a library.
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
        let [rpaths, runpath, loaded] = [rpaths, runpath, loaded].map(|list| list.iter().map(String::as_str));
        let directories = rpaths.chain(by_path).chain(runpath).chain(system).chain(loaded);
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

    /// Whether the library that was found does not define a symbol version.
    fn lacks_version(&self, found: &BTreeMap<String, String>, need: &Missing) -> bool {
        let Some(path) = found.get(&need.library) else { return false };
        let Some(facts) = self.files.elf(path) else { return false };
        let defines = &facts.linkage.defines;
        // Libraries of other vendors may have no versions and work; those of NVIDIA always have them.
        let bare = defines.is_empty() && vendor_library(path).is_none();
        let is_defined = |version: &String| version == "GLIBC_PRIVATE" || defines.contains(version);
        !bare && !need.version.as_ref().is_some_and(is_defined)
    }
}

/// The directories of an RPATH or RUNPATH.
fn listed(list: Option<&str>, file: &str) -> Vec<String> {
    list.into_iter().flat_map(|list| list.split(':')).flat_map(|entry| expanded(entry, file)).collect()
}

/// An entry of RPATH or RUNPATH with its variables expanded.
fn expanded(entry: &str, file: &str) -> Vec<String> {
    let origin = parent(file);
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
