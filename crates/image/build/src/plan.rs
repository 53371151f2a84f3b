//! Turns packages and the files of a project into the files of an image. Nothing is written here.

use std::collections::{BTreeMap, BTreeSet};

use cudock_base::text::path::{join, parent};
use cudock_fatbin::{KeptLibraries, KnownUse, LinkedFile, is_cuda_library, is_library};
use cudock_image::FileKind;
use cudock_lock::LayerGroup;

use crate::error::BuildError;
use crate::files::empty_library::empty_library;
use crate::files::file::{FileSource, ImageFile};
use crate::files::rules::{RuleSet, UNUSABLE_PROVIDERS, UNUSED_LIBRARIES, UNUSED_LINKS};
use crate::files::system;
use crate::input::{CUDA, InputPackage, PlanInput, RUNTIME};
use crate::unpack::{PackageKind, PackedEntry, Scheme};

/// Directories of old that are links to those below `/usr`.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// A file that is not in the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedFile {
    pub rule: &'static str,
    pub path: String,
    pub bytes: u64,
    /// The package it is from.
    pub package: String,
    /// Why, where the rule does not say it all.
    pub reason: Option<String>,
}

/// The files of an image.
#[derive(Debug, Default)]
pub struct ImagePlan {
    pub files: BTreeMap<String, ImageFile>,
    pub omitted: Vec<OmittedFile>,
    /// Why a library is there, by path.
    pub reasons: BTreeMap<String, String>,
    pub warnings: Vec<String>,
}

impl ImagePlan {
    pub fn new(input: &PlanInput<'_>) -> Result<Self, BuildError> {
        let mut plan = Self::default();
        for package in input.packages {
            plan.warnings.extend(
                package.unpacked.list.notes.iter().map(|note| format!("{}: {note}", package.origin.name)),
            );
            for entry in &package.unpacked.list.entries {
                let Some(path) = place(entry, package, input.python) else { continue };
                plan.add(file(entry, package, path), input.rules);
            }
        }
        for file in &input.own {
            plan.files.insert(file.path.clone(), file.clone());
        }
        let mut linked = plan.linked(input.operators.is_some());
        if input.rules.has(UNUSABLE_PROVIDERS) {
            plan.omit_unusable_providers(&mut linked);
        }
        plan.choose_libraries(&linked, input);
        plan.report_missing(&linked, input.operators.is_some());
        system::add(&mut plan.files, input, &linked);
        plan.redirect_through_links();
        plan.check_parents()?;
        Ok(plan)
    }

    /// Fails if something is in a file: packages, the project and other packages each have paths of their own, and nothing else keeps
    /// them from naming one path as a file and as a directory.
    fn check_parents(&self) -> Result<(), BuildError> {
        for file in self.files.values() {
            let blocking = |parent: &str| self.files.get(parent).filter(|found| !found.kind.is_directory());
            let Some(parent) = parents(&file.path).find_map(blocking) else { continue };
            let reason = if parent.origin == file.origin {
                format!("it has /{}, and /{} below it", parent.path, file.path)
            } else {
                format!(
                    "its /{} is below /{}, which is a file of {}",
                    file.path, parent.path, parent.origin.name
                )
            };
            return Err(BuildError::Package { name: file.origin.name.clone(), reason });
        }
        Ok(())
    }

    fn add(&mut self, file: ImageFile, rules: &RuleSet) {
        if let Some(rule) = rules.omits(&file) {
            self.omit(rule.name, &file, None);
            return;
        }
        if let Some(known) = self.files.get(&file.path) {
            let directories = known.kind.is_directory() && file.kind.is_directory();
            if !directories && !has_same_content(known, &file) {
                self.warnings.push(format!(
                    "{} and {} both have /{}: that of the latter is used",
                    known.origin.name, file.origin.name, file.path
                ));
            }
            if directories {
                return;
            }
        }
        self.files.insert(file.path.clone(), file);
    }

    fn omit(&mut self, rule: &'static str, file: &ImageFile, reason: Option<String>) {
        if !file.kind.is_directory() {
            let (path, bytes, package) = (file.path.clone(), file.size(), file.origin.name.clone());
            self.omitted.push(OmittedFile { rule, path, bytes, package, reason });
        }
    }

    /// The ELF files with the libraries that they link to.
    fn linked(&self, has_model: bool) -> Vec<LinkedFile> {
        let is_elf = |file: &&ImageFile| is_library(file.name()) || file.mode & 0o111 != 0;
        let files: Vec<&ImageFile> = self.files.values().filter(is_elf).collect();
        files.into_iter().filter_map(|file| linkage(file, has_model)).collect()
    }

    /// Leaves out ONNX Runtime's providers that could not be loaded: that for TensorRT, in an image without it.
    fn omit_unusable_providers(&mut self, linked: &mut Vec<LinkedFile>) {
        let present = self.library_names(linked);
        linked.retain(|file| {
            let is_provider = file.name().starts_with("libonnxruntime_providers_");
            let mut needed = file.linkage.needed.iter();
            let missing = needed.find(|name| is_cuda_library(name) && !present.contains(*name));
            let Some(missing) = missing.filter(|_| is_provider) else { return true };
            if let Some(removed) = self.files.remove(&file.path) {
                let reason = format!("it needs {missing}, which is not in the image");
                self.omit(UNUSABLE_PROVIDERS, &removed, Some(reason));
            }
            false
        });
    }

    /// The names under which the loader finds libraries.
    fn library_names(&self, linked: &[LinkedFile]) -> BTreeSet<String> {
        let names = self.files.values().map(ImageFile::name);
        names
            .chain(linked.iter().filter_map(|file| file.linkage.soname.as_deref()))
            .map(str::to_owned)
            .collect()
    }

    fn choose_libraries(&mut self, linked: &[LinkedFile], input: &PlanInput<'_>) {
        let operators = input.operators;
        let hollow = operators.is_some() && input.rules.has(UNUSED_LINKS);
        let known = KnownUse { operators, hollow };
        let chosen = KeptLibraries::of(linked, input.facts.opened_libraries(), known);
        for file in linked {
            let Some(reason) = chosen.hollow.get(&file.path) else { continue };
            let Some(mut removed) = self.files.remove(&file.path) else { continue };
            self.omit(UNUSED_LINKS, &removed, Some(reason.clone()));
            let soname = file.linkage.soname.as_deref().unwrap_or(file.name());
            removed.kind = FileKind::File(FileSource::Bytes(empty_library(soname, file.linkage.machine)));
            self.files.insert(file.path.clone(), removed);
        }
        self.reasons = chosen.kept;
        self.reasons.extend(chosen.hollow);
        if !input.rules.has(UNUSED_LIBRARIES) {
            return;
        }
        for path in &chosen.unused {
            if let Some(file) = self.files.remove(path) {
                self.omit(UNUSED_LIBRARIES, &file, chosen.not_for_model.get(path).cloned());
            }
        }
        // Links to what is no longer there.
        let dangling = |file: &ImageFile| match &file.kind {
            FileKind::Symlink(target) if file.origin.group == LayerGroup::Cuda => {
                chosen.unused.contains(&format!("{}/{target}", parent(&file.path)))
            }
            _ => false,
        };
        self.files.retain(|_, file| !dangling(file));
    }

    /// Warns of libraries that a program or a framework needs, or CUDA in an image that only serves a model, and nothing in the
    /// image has. Elsewhere CUDA has plugins for hardware that most machines lack.
    fn report_missing(&mut self, linked: &[LinkedFile], is_served: bool) {
        let names = self.library_names(linked);
        let own = self.files.values().filter(|file| {
            let group = file.origin.group;
            matches!(group, LayerGroup::Program | LayerGroup::Framework)
                || is_served && group == LayerGroup::Cuda
        });
        let own: BTreeSet<&str> = own.map(|file| file.path.as_str()).collect();
        let mut missing = BTreeSet::new();
        for file in linked.iter().filter(|file| own.contains(file.path.as_str())) {
            for needed in &file.linkage.needed {
                if !names.contains(needed) && !is_of_driver(needed) {
                    missing.insert(format!("/{} needs {needed}, which is not in the image", file.path));
                }
            }
        }
        self.warnings.extend(missing);
    }

    /// A path through a link of another package becomes the path that the link leads to, since a tar file with both would
    /// depend on their order.
    fn redirect_through_links(&mut self) {
        let links: BTreeMap<String, String> = self
            .files
            .values()
            .filter_map(|file| match &file.kind {
                FileKind::Symlink(target) => Some((file.path.clone(), join(parent(&file.path), target))),
                _ => None,
            })
            .collect();
        let through: Vec<String> = self
            .files
            .keys()
            .filter(|path| parents(path).any(|parent| links.contains_key(parent)))
            .cloned()
            .collect();
        for path in through {
            let Some(mut file) = self.files.remove(&path) else { continue };
            let parent = parents(&path).find(|parent| links.contains_key(*parent)).unwrap_or_default();
            let Some(target) = links.get(parent) else { continue };
            file.path = format!("{target}{}", path.get(parent.len()..).unwrap_or_default());
            self.files.entry(file.path.clone()).or_insert(file);
        }
    }
}

/// Whether a library comes with the driver, which containers get from their host.
fn is_of_driver(name: &str) -> bool {
    name.starts_with("libcuda.so") || name.starts_with("libnvidia-")
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// The path of an entry in the image; none if it has no place there.
fn place(entry: &PackedEntry, package: &InputPackage, python: Option<&str>) -> Option<String> {
    let path = entry.path.as_str();
    if package.kind == PackageKind::Deb {
        let first = path.split('/').next().unwrap_or_default();
        return match MERGED.contains(&first) {
            true if first == path => None,
            true => Some(format!("usr/{path}")),
            false => Some(path.to_owned()),
        };
    }
    let Some(python) = python else { return without_python(entry, package) };
    Some(match entry.scheme {
        Scheme::Root => path.to_owned(),
        Scheme::Site => format!("{}/{path}", site(python)),
        Scheme::Scripts => format!("usr/local/bin/{path}"),
        Scheme::Headers => format!("usr/local/include/python{python}/{path}"),
        Scheme::Data => format!("usr/local/{path}"),
    })
}

/// The directory that Debian's Python imports locally installed packages from.
pub(crate) fn site(python: &str) -> String {
    format!("usr/local/lib/python{python}/dist-packages")
}

/// The path of a wheel's file in an image without Python, where only libraries and licenses are needed.
fn without_python(entry: &PackedEntry, package: &InputPackage) -> Option<String> {
    let path = entry.path.as_str();
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_license = path.contains(".dist-info/") && name.to_ascii_lowercase().starts_with("license");
    if is_license {
        let package = package.origin.name.split(' ').next().unwrap_or_default();
        return Some(format!("usr/share/doc/{package}/{name}"));
    }
    let wanted = if package.members.is_empty() {
        is_library(name)
    } else {
        package.members.iter().any(|member| member == path)
    };
    let directory = if package.origin.group == LayerGroup::Cuda { CUDA } else { RUNTIME };
    wanted.then(|| format!("{directory}/{name}"))
}

fn file(entry: &PackedEntry, package: &InputPackage, path: String) -> ImageFile {
    let kind = entry.kind.with_content(|content| FileSource::Disk {
        path: package.unpacked.content(content.index),
        size: content.size,
        identity: format!("{}#{}", package.unpacked.digest, content.index),
    });
    ImageFile { path, mode: entry.mode, kind, origin: package.origin.clone() }
}

fn has_same_content(one: &ImageFile, other: &ImageFile) -> bool {
    use FileKind::File;
    match (&one.kind, &other.kind) {
        (File(FileSource::Disk { path: one, .. }), File(FileSource::Disk { path: other, .. })) => {
            std::fs::read(one).ok() == std::fs::read(other).ok()
        }
        (one, other) => one == other,
    }
}

fn linkage(file: &ImageFile, has_model: bool) -> Option<LinkedFile> {
    let FileKind::File(FileSource::Disk { path, .. }) = &file.kind else { return None };
    let bytes = cudock_mmap::map(path).ok()?;
    LinkedFile::read(&file.path, &bytes, file.origin.group == LayerGroup::Cuda, has_model)
}
