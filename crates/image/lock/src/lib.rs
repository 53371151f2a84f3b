//! From `cudock.toml` to `cudock.lock`: every wheel and Debian package of an image with version, path, size and hash.
//!
//! Nothing is resolved here that others resolve better: uv chooses the versions of Python packages, and Debian's archive
//! has one version of each package in a release. What is trusted is a signature for Debian, and the hashes that uv and
//! the index agree on for wheels; mirrors need not be trusted.

pub mod deb;
pub mod debian;
mod error;
mod fetch;
mod file;
mod inputs;
mod libraries;
mod python;
mod report;
mod upgrade;

use std::path::PathBuf;

use cudock_base::{Environment, FileError, files};
use cudock_facts::Facts;
use cudock_project::Project;

pub use error::LockError;
pub use fetch::PackageFetcher;
pub use file::{DebianRelease, LOCK_NAME, LayerGroup, LockFile, LockTarget, LockedDeb, LockedWheel};
pub use inputs::SMALL_CUDNN;
pub use python::tags;
pub use report::{LockReport, LockState};
pub use upgrade::Upgrade;

use debian::{Archive, PYTHON};
use inputs::{LockInputs, differences, image_of};
use python::WheelLocker;
use python::tags::PythonPlatform;

/// The Python of wheels in an image without Python: only their libraries are used, which do not depend on it.
const ANY_PYTHON: u32 = 12;

/// The path of a project's lock file.
pub fn path_of(project: &Project) -> PathBuf {
    project.directory.join(LOCK_NAME)
}

/// Why the lock of a project is out of date; empty if it is current.
pub fn stale_reasons(project: &Project, facts: &Facts, lock: &LockFile) -> Result<Vec<String>, LockError> {
    Ok(differences(&lock.inputs, &LockInputs::of(project, facts)?.digests))
}

/// The lock of a project; an error if there is none, or if it is out of date.
pub fn locked(project: &Project, facts: &Facts) -> Result<LockFile, LockError> {
    image_of(project)?;
    let missing = || LockError::Missing { directory: project.directory.clone() };
    let lock = LockFile::read(&path_of(project))?.ok_or_else(missing)?;
    match stale_reasons(project, facts, &lock)? {
        reasons if reasons.is_empty() => Ok(lock),
        reasons => Err(LockError::Stale { reasons }),
    }
}

/// Locks a project and writes `cudock.lock`, unless it is current and nothing is to be upgraded.
pub fn lock(
    project: &Project,
    facts: &Facts,
    environment: &Environment,
    fetcher: &PackageFetcher,
    upgrade: &Upgrade,
) -> Result<LockReport, LockError> {
    let path = path_of(project);
    let inputs = LockInputs::of(project, facts)?;
    let previous = LockFile::read(&path)?;
    if let (Some(lock), Upgrade::No) = (&previous, upgrade)
        && differences(&lock.inputs, &inputs.digests).is_empty()
    {
        return Ok(LockReport::new(path, lock.clone(), Some(lock)));
    }
    let lock = resolve(project, facts, environment, fetcher, (&inputs, previous.as_ref(), upgrade))?;
    let text = lock.text()?;
    let is_same = matches!(&previous, Some(previous) if previous.text()? == text);
    if !is_same {
        files::remove_abandoned(&path).map_err(FileError::at("write", &path))?;
        files::write_atomically(&path, text.as_bytes()).map_err(FileError::at("write", &path))?;
    }
    Ok(LockReport::new(path, lock, previous.as_ref()))
}

fn resolve(
    project: &Project,
    facts: &Facts,
    environment: &Environment,
    fetcher: &PackageFetcher,
    (inputs, previous, upgrade): (&LockInputs, Option<&LockFile>, &Upgrade),
) -> Result<LockFile, LockError> {
    let image = image_of(project)?;
    let release = inputs.release;
    let minor = |python: &str| python.strip_prefix("3.").and_then(|minor| minor.parse().ok());
    let own_python = inputs.has_python.then(|| minor(release.python)).flatten();
    let platform =
        PythonPlatform { python: own_python.unwrap_or(ANY_PYTHON), glibc: release.glibc, arch: image.arch };
    let locker = WheelLocker { environment, facts, fetcher, platform, directory: &project.directory };
    let mut wheels = locker.lock(&inputs.packages, previous, upgrade)?;
    if let Some(name) = inputs.runtime
        && !wheels.iter().any(|wheel| wheel.name == name)
    {
        let row = facts.runtimes().newest(name, image.arch);
        let row = row.ok_or_else(|| cudock_pypi::PypiError::NoWheel {
            package: name.to_owned(),
            cpu: image.arch.into(),
        })?;
        wheels.push(locker.pinned(row, "model")?);
    }
    let archive = Archive::read(release, image.arch, environment, fetcher)?;
    let mut debs = inputs.debs.clone();
    if inputs.has_python {
        debs.push((PYTHON.to_owned(), "Python packages".to_owned()));
    }
    for (soname, names) in &inputs.libraries {
        let program = image.program.as_ref().map(|program| program.display().to_string()).unwrap_or_default();
        match libraries::first_in(&archive, names) {
            Some(name) => debs.push((name.clone(), format!("{soname} of {program}"))),
            // The project may contain it, next to the program.
            None if image.packages.is_empty() && image.files.is_empty() => {
                return Err(LockError::NoLibrary { library: soname.clone(), program });
            }
            None => {}
        }
    }
    let (debian, debs) = archive.lock(&debs)?;
    let target = LockTarget {
        arch: image.arch,
        python: inputs.has_python.then(|| release.python.to_owned()),
        cuda: python::cuda_version(&wheels),
        gpus: image.targets.clone(),
    };
    let mut lock = LockFile::new(target, inputs.digests.clone());
    wheels.sort_by(|a, b| a.name.cmp(&b.name));
    (lock.debian, lock.debs, lock.wheels) = (Some(debian), debs, wheels);
    Ok(lock)
}
