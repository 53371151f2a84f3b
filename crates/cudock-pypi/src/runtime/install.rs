//! Installing: the wheel is fetched, its libraries are taken out, and the folder appears whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_facts::Facts;
use cudock_facts::tables::RuntimeWheel;
use cudock_host::Root;
use cudock_registry::parts::{Silent, lock};
use cudock_registry::{BlobStore, Environment, Progress, Retries};

use super::find::{at, find};
use super::places::{Machine, text_of};
use super::{Found, FoundBy, Package};
use crate::error::PypiError;
use crate::fetch::Fetcher;
use crate::settings::Settings;
use crate::wheel::{failed, unpack};

/// Left free on the disk besides what an installation takes.
const SPARE: u64 = 16 << 20;

/// Installs runtimes below the cache. Any number of processes may do so at once: one does the work, the others wait.
pub struct Installer {
    /// Where packages come from.
    pub settings: Settings,
    /// The cache.
    pub store: BlobStore,
    /// Never ask the network.
    pub offline: bool,
    /// Who wants to know how far transfers are.
    pub progress: Arc<dyn Progress>,
    /// How failures are repeated.
    pub retries: Retries,
}

/// What [`Installer::install`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The library.
    pub found: Found,
    /// Whether it was fetched now, or had been there.
    pub fresh: bool,
}

impl Installer {
    /// As pip and the cache are set up in this environment.
    pub fn from_environment(environment: &Environment) -> Result<Self, PypiError> {
        Ok(Self {
            settings: Settings::from_environment(environment)?,
            store: BlobStore::user_cache_in(environment)?,
            offline: false,
            progress: Arc::new(Silent),
            retries: Retries::default(),
        })
    }

    /// Where installations lie.
    pub fn folder(&self) -> PathBuf {
        self.store.folder().join(RUNTIMES)
    }

    /// Where installations lie in an environment, if it has a place for them; nothing is made.
    pub fn directory_in(environment: &Environment) -> Option<PathBuf> {
        Some(BlobStore::user_cache_path(environment)?.join(RUNTIMES))
    }

    /// Installs this wheel, if it is not there whole.
    pub fn install(&self, wheel: &RuntimeWheel) -> Result<Installed, PypiError> {
        let name = format!("{}-{}-{}", wheel.package, wheel.version, wheel.cpu);
        let folder = self.folder().join(&name);
        if let Some(found) = whole(&folder, wheel) {
            return Ok(Installed { found, fresh: false });
        }
        fs::create_dir_all(self.folder()).map_err(failed("make folder", &self.folder()))?;
        let lock_path = self.folder().join(format!(".{name}.lock"));
        let locked = File::create(&lock_path).map_err(failed("write", &lock_path))?;
        lock(&locked, &|| self.progress.waiting(&wheel.file)).map_err(failed("lock", &lock_path))?;
        if let Some(found) = whole(&folder, wheel) {
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
        let archive = fetcher.wheel(wheel)?;
        let unfinished = self.folder().join(format!(".{name}.new"));
        let result = put(&archive, wheel, &unfinished, &folder);
        if result.is_err() {
            // The next run removes what stays.
            let _ = fs::remove_dir_all(&unfinished);
        }
        result?;
        // All that is needed of it is out, and it is as large as that. One that stays does no harm.
        let _ = fs::remove_file(&archive);
        let lost = || failed("read", &folder)(io::Error::other("what was just written there is not there"));
        Ok(Installed { found: whole(&folder, wheel).ok_or_else(lost)?, fresh: true })
    }

    /// Says beforehand that the disk is too small; one that cannot be asked is tried.
    fn check_space(&self, wheel: &RuntimeWheel) -> Result<(), PypiError> {
        let path = self.folder();
        let Ok(stat) = rustix::fs::statvfs(&path) else { return Ok(()) };
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let needed = wheel.size.saturating_add(wheel.unpacked()).saturating_add(SPARE);
        if free < needed { Err(PypiError::Space { path, free, needed }) } else { Ok(()) }
    }
}

/// Below the cache.
const RUNTIMES: &str = "runtimes";

/// The library for a package: found, else installed. The installer, which needs a cache it can write to, is made only
/// then.
pub fn ensure(
    package: Package,
    machine: &Machine,
    facts: &Facts,
    installer: impl FnOnce() -> Result<Installer, PypiError>,
) -> Result<Installed, PypiError> {
    if let Some(found) = find(package, machine)? {
        return Ok(Installed { found, fresh: false });
    }
    installer()?.install(wheel_for(package, &machine.cpu, facts)?)
}

/// The wheel of the tables for a package and a processor.
pub fn wheel_for<'a>(package: Package, cpu: &str, facts: &'a Facts) -> Result<&'a RuntimeWheel, PypiError> {
    facts
        .runtimes()
        .newest(package.name(), cpu)
        .ok_or_else(|| PypiError::NoWheel { package: package.name().to_owned(), cpu: cpu.to_owned() })
}

/// The installation, if every file is there with its size.
fn whole(folder: &Path, wheel: &RuntimeWheel) -> Option<Found> {
    let is_there = |name: &str, size: u64| {
        fs::symlink_metadata(folder.join(name)).is_ok_and(|file| file.is_file() && file.len() == size)
    };
    if !wheel.members.iter().all(|member| is_there(member.name(), member.size)) {
        return None;
    }
    let library = wheel.members.iter().find(|member| member.path == wheel.library)?;
    let path = text_of(&std::path::absolute(folder.join(library.name())).ok()?)?;
    Some(at(&Root::live(), &path, &FoundBy::Cache))
}

/// Unpacks beside the place and moves into it, so that nobody sees half an installation.
fn put(archive: &Path, wheel: &RuntimeWheel, unfinished: &Path, folder: &Path) -> Result<(), PypiError> {
    remove(unfinished)?;
    fs::create_dir(unfinished).map_err(failed("make folder", unfinished))?;
    unpack(archive, wheel, unfinished)?;
    File::open(unfinished).and_then(|opened| opened.sync_all()).map_err(failed("sync", unfinished))?;
    // What is in the way was not whole, or we would not be here.
    remove(folder)?;
    fs::rename(unfinished, folder).map_err(failed("write", folder))
}

fn remove(folder: &Path) -> Result<(), PypiError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", folder)(error)),
        _ => Ok(()),
    }
}
