//! Wheels: uv chooses versions, and the index lists the files of each.

mod groups;
pub mod tags;
mod uv;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::{Environment, FileError};
use cudock_facts::Facts;
use cudock_facts::tables::RuntimeWheel;
use cudock_pypi::Offered;

use crate::file::{LockFile, LockedWheel};
use crate::{LockError, PackageFetcher, Upgrade};
use tags::{PythonPlatform, WheelName};
use uv::{Pin, Uv};

/// The requested Python packages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedPackages {
    /// Requirement files and `pyproject.toml`, relative to the project's directory.
    pub(crate) files: Vec<PathBuf>,
    /// The directory of a `uv.lock`, relative to the project's directory.
    pub(crate) uv_project: Option<PathBuf>,
    /// Requirements of cudock's own tables.
    pub(crate) requirements: Vec<String>,
}

impl WantedPackages {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.uv_project.is_none() && self.requirements.is_empty()
    }
}

/// Locks the wheels that packages need on a platform.
pub(crate) struct WheelLocker<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) facts: &'a Facts,
    pub(crate) fetcher: &'a PackageFetcher,
    pub(crate) platform: PythonPlatform,
    pub(crate) directory: &'a Path,
}

impl WheelLocker<'_> {
    pub(crate) fn lock(
        &self,
        wanted: &WantedPackages,
        previous: Option<&LockFile>,
        upgrade: &Upgrade,
    ) -> Result<Vec<LockedWheel>, LockError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let uv = Uv::find(self.environment, self.facts, self.fetcher)?;
        let temporary = self.fetcher.scratch()?;
        let mut sources = wanted.files.clone();
        let mut write = |name: &str, text: String| {
            let path = temporary.path().join(name);
            std::fs::write(&path, text).map_err(FileError::at("write", &path))?;
            sources.push(path);
            Ok::<(), LockError>(())
        };
        if let Some(project) = &wanted.uv_project {
            write("uv.lock.txt", uv.export(&self.directory.join(project))?)?;
        }
        if !wanted.requirements.is_empty() {
            write("image.txt", wanted.requirements.join("\n"))?;
        }
        let wheels = previous.map(|lock| lock.wheels.as_slice()).unwrap_or_default();
        let known: BTreeMap<_, _> =
            wheels.iter().map(|wheel| (wheel.name.clone(), wheel.version.clone())).collect();
        let pins = uv.compile(self.directory, &sources, self.platform, &known, upgrade)?;
        pins.iter().map(|pin| self.wheel_of(pin, temporary.path())).collect()
    }

    /// The wheel of a version that fits the platform best.
    fn wheel_of(&self, pin: &Pin, temporary: &Path) -> Result<LockedWheel, LockError> {
        let is_of_version = |file: &str| {
            let wheel = WheelName::parse(file);
            wheel.is_some_and(|wheel| wheel.name == pin.name && same_version(wheel.version, &pin.version))
        };
        let fits =
            |file: &str| WheelName::parse(file).is_some_and(|wheel| wheel.rank(self.platform).is_some());
        let wanted = |file: &str, sha256: Option<&str>| {
            let known = sha256.is_none_or(|sha256| pin.hashes.iter().any(|hash| hash == sha256));
            known && is_of_version(file) && fits(file)
        };
        let offered = self.fetcher.offered(&pin.name, &wanted)?;
        let Some(file) = tags::best(offered.iter().map(|one| one.file.as_str()), self.platform) else {
            return Err(self.no_wheel(pin, &is_of_version));
        };
        let chosen = offered.iter().find(|one| one.file == file && one.sha256.is_some());
        let unlisted = || LockError::NotListed { name: pin.name.clone(), version: pin.version.clone() };
        let chosen = chosen.ok_or_else(unlisted)?;
        let inside = temporary.display().to_string();
        let reasons = pin.reason.split(", ").map(|reason| match reason.strip_prefix("-r ") {
            Some(path) if path.starts_with(&inside) && path.ends_with("uv.lock.txt") => "uv.lock",
            Some(path) if path.starts_with(&inside) => "[image]",
            Some(path) => path,
            None => reason,
        });
        let reason = reasons.collect::<Vec<_>>().join(", ");
        locked(chosen, &pin.name, &pin.version, reason).ok_or_else(unlisted)
    }

    fn no_wheel(&self, pin: &Pin, is_of_version: &dyn Fn(&str) -> bool) -> LockError {
        let (name, version) = (pin.name.clone(), pin.version.clone());
        // The error is about what exists; that this cannot be listed either is the lesser problem.
        let existing = self.fetcher.offered(&name, &|file, _| is_of_version(file)).unwrap_or_default();
        if existing.is_empty() {
            return LockError::NotListed { name, version };
        }
        let platform = format!("Python 3.{} on {}", self.platform.python, self.platform.arch.name());
        let existing = existing.into_iter().map(|one| one.file).collect();
        LockError::NoWheel { name, version, platform, existing }
    }

    /// Locks a wheel of the tables.
    pub(crate) fn pinned(&self, wheel: &RuntimeWheel, reason: &str) -> Result<LockedWheel, LockError> {
        let wanted = |file: &str, sha256: Option<&str>| {
            file == wheel.file && sha256.is_none_or(|sha256| sha256 == wheel.sha256)
        };
        let offered = self.fetcher.offered(&wheel.package, &wanted)?;
        let unlisted =
            || LockError::NotListed { name: wheel.package.clone(), version: wheel.version.to_string() };
        let chosen = offered.first().ok_or_else(unlisted)?;
        let offered = Offered { sha256: Some(wheel.sha256.clone()), size: wheel.size, ..chosen.clone() };
        let version = wheel.version.to_string();
        locked(&offered, &wheel.package, &version, reason.to_owned()).ok_or_else(unlisted)
    }
}

fn locked(offered: &Offered, name: &str, version: &str, reason: String) -> Option<LockedWheel> {
    Some(LockedWheel {
        name: name.to_owned(),
        version: version.to_owned(),
        file: offered.file.clone(),
        path: portable_path(&offered.path).to_owned(),
        size: offered.size,
        digest: format!("sha256:{}", offered.sha256.as_deref()?).parse().ok()?,
        group: groups::of(name),
        reason,
    })
}

/// File names have versions with `_` for `-` and a local part after `+`.
fn same_version(of_file: &str, pinned: &str) -> bool {
    let plain = |text: &str| text.replace(['_', '-'], ".").to_ascii_lowercase();
    plain(of_file) == plain(pinned)
}

/// The path from `packages/` on if it has the public index's layout, so that a lock made with a mirror is the same.
fn portable_path(path: &str) -> &str {
    let is_public = |rest: &str| {
        let lengths: Vec<usize> = rest.split('/').map(str::len).collect();
        matches!(lengths.as_slice(), [2, 2, 60, _])
    };
    let start =
        path.find("packages/").filter(|start| path.get(start + "packages/".len()..).is_some_and(is_public));
    start.and_then(|start| path.get(start..)).unwrap_or(path)
}

/// The CUDA version of wheels: that of the runtime, else that of another library that has CUDA's version.
pub(crate) fn cuda_version(wheels: &[LockedWheel]) -> Option<String> {
    let of = |name: &str| wheels.iter().find(|wheel| wheel.name.starts_with(name));
    let wheel = of("nvidia-cuda-runtime").or_else(|| of("nvidia-cuda-nvrtc"))?;
    let mut parts = wheel.version.split('.');
    Some(format!("{}.{}", parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_do_not_depend_on_the_mirror() {
        let public = format!("packages/4c/4a/{}/a-1-py3-none-any.whl", "d".repeat(60));
        for prefix in ["", "api/pypi/pypi/", "root/pypi/"] {
            assert_eq!(portable_path(&format!("{prefix}{public}")), public);
        }
        for other in ["whl/cu126/torch.whl", "packages/torch.whl", "a.whl"] {
            assert_eq!(portable_path(other), other);
        }
    }

    #[test]
    fn versions_in_file_names_are_recognized() {
        assert!(same_version("2.6.0+cu126", "2.6.0+cu126"));
        assert!(same_version("1.0_1", "1.0-1"));
        assert!(!same_version("1.0", "1.0.1"));
    }
}
