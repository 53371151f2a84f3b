//! Installs a runtime: the wheel is fetched, its libraries are unpacked, and the directory is renamed into place.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::files::lock;
use cudock_base::{Environment, FileError, NamedArch};
use cudock_facts::Facts;
use cudock_facts::tables::RuntimeWheel;
use cudock_host::Root;
use cudock_http::{BlobStore, NoProgress, Progress, RetryPolicy};

use super::context::{SearchContext, text_of};
use super::find::{at, find};
use super::{FoundBy, Package, RuntimeLibrary};
use crate::error::PypiError;
use crate::fetch::{Fetcher, WheelPin};
use crate::settings::Settings;
use crate::wheel::unpack;

/// Bytes to leave free on the disk.
const SPARE: u64 = 16 << 20;

/// Installs runtimes into the cache. Concurrent processes are allowed: one does the work, the others wait.
pub struct Installer {
    pub settings: Settings,
    pub store: BlobStore,
    /// Never use the network.
    pub offline: bool,
    pub progress: Arc<dyn Progress>,
    pub retries: RetryPolicy,
}

/// The result of [`Installer::install`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub found: RuntimeLibrary,
    /// Whether it was fetched now.
    pub fresh: bool,
}

impl Installer {
    /// Uses the configuration of pip and the cache in this environment.
    pub fn from_environment(environment: &Environment) -> Result<Self, PypiError> {
        Ok(Self {
            settings: Settings::from_environment(environment)?,
            store: BlobStore::open(environment.cache_directory().ok_or(PypiError::NoCache)?)?,
            offline: false,
            progress: Arc::new(NoProgress),
            retries: RetryPolicy::default(),
        })
    }

    /// The directory of installations.
    pub fn directory(&self) -> PathBuf {
        self.store.directory().join(RUNTIMES)
    }

    /// The directory of installations in an environment; it is not created.
    pub fn directory_in(environment: &Environment) -> Option<PathBuf> {
        Some(environment.cache_directory()?.join(RUNTIMES))
    }

    /// Installs a wheel, unless it is already installed.
    pub fn install(&self, wheel: &RuntimeWheel) -> Result<Installed, PypiError> {
        let name = format!("{}-{}-{}", wheel.package, wheel.version, wheel.cpu);
        let directory = self.directory().join(&name);
        if let Some(found) = complete(&directory, wheel) {
            return Ok(Installed { found, fresh: false });
        }
        fs::create_dir_all(self.directory()).map_err(FileError::at("create directory", &self.directory()))?;
        let lock_path = self.directory().join(format!(".{name}.lock"));
        let locked = File::create(&lock_path).map_err(FileError::at("write", &lock_path))?;
        lock(&locked, &|| self.progress.waiting(&wheel.file)).map_err(FileError::at("lock", &lock_path))?;
        if let Some(found) = complete(&directory, wheel) {
            return Ok(Installed { found, fresh: false });
        }
        self.check_space(wheel)?;
        let fetcher = Fetcher {
            settings: &self.settings,
            store: &self.store,
            progress: &self.progress,
            retries: self.retries,
            offline: self.offline,
        };
        let digest = format!("sha256:{}", wheel.sha256).parse()?;
        let (package, file) = (wheel.package.as_str(), wheel.file.as_str());
        let archive = fetcher.wheel(WheelPin { package, file, size: wheel.size, digest: &digest })?;
        let unfinished = self.directory().join(format!(".{name}.new"));
        let result = put(&archive, wheel, &unfinished, &directory);
        if result.is_err() {
            // The next run removes what is left.
            let _ = fs::remove_dir_all(&unfinished);
        }
        result?;
        // The wheel is no longer needed; a leftover is harmless.
        let _ = fs::remove_file(&archive);
        let lost =
            || FileError::at("read", &directory)(io::Error::other("the files just written are missing"));
        Ok(Installed { found: complete(&directory, wheel).ok_or_else(lost)?, fresh: true })
    }

    /// Checks the free space; a disk that does not report it is tried.
    fn check_space(&self, wheel: &RuntimeWheel) -> Result<(), PypiError> {
        let path = self.directory();
        let Ok(stat) = rustix::fs::statvfs(&path) else { return Ok(()) };
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let needed = wheel.size.saturating_add(wheel.unpacked()).saturating_add(SPARE);
        if free < needed { Err(PypiError::Space { path, free, needed }) } else { Ok(()) }
    }
}

const RUNTIMES: &str = "runtimes";

/// Finds the library for a package, or installs it. The installer needs a writable cache, so it is only created then.
pub fn ensure(
    package: Package,
    machine: &SearchContext,
    facts: &Facts,
    installer: impl FnOnce() -> Result<Installer, PypiError>,
) -> Result<Installed, PypiError> {
    if let Some(found) = find(package, machine)? {
        return Ok(Installed { found, fresh: false });
    }
    installer()?.install(wheel_for(package, machine.cpu, facts)?)
}

/// The wheel of the tables for a package and a processor.
pub fn wheel_for(
    package: Package,
    cpu: impl Into<NamedArch>,
    facts: &Facts,
) -> Result<&RuntimeWheel, PypiError> {
    let cpu = cpu.into();
    let wheel = cpu.arch().and_then(|arch| facts.runtimes().newest(package.name(), arch));
    wheel.ok_or_else(|| PypiError::NoWheel { package: package.name().to_owned(), cpu })
}

/// The installation, if every file exists with its size.
fn complete(directory: &Path, wheel: &RuntimeWheel) -> Option<RuntimeLibrary> {
    let is_there = |name: &str, size: u64| {
        fs::symlink_metadata(directory.join(name)).is_ok_and(|file| file.is_file() && file.len() == size)
    };
    if !wheel.members.iter().all(|member| is_there(member.name(), member.size)) {
        return None;
    }
    let library = wheel.members.iter().find(|member| member.path == wheel.library)?;
    let path = text_of(&std::path::absolute(directory.join(library.name())).ok()?)?;
    Some(at(&Root::live(), &path, &FoundBy::Cache))
}

/// Unpacks into `unfinished` and renames it, so that no partial installation is visible.
fn put(archive: &Path, wheel: &RuntimeWheel, unfinished: &Path, directory: &Path) -> Result<(), PypiError> {
    remove(unfinished)?;
    fs::create_dir(unfinished).map_err(FileError::at("create directory", unfinished))?;
    unpack(archive, wheel, unfinished)?;
    File::open(unfinished).and_then(|opened| opened.sync_all()).map_err(FileError::at("sync", unfinished))?;
    // An existing directory is incomplete, or it would have been used.
    remove(directory)?;
    Ok(fs::rename(unfinished, directory).map_err(FileError::at("write", directory))?)
}

fn remove(directory: &Path) -> Result<(), PypiError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::at("remove", directory)(error).into())
        }
        _ => Ok(()),
    }
}
