//! Fetches locked files into the cache, from the sources that pip, uv and apt are configured for.

use std::path::PathBuf;
use std::sync::Arc;

use cudock_base::{Arch, Digest, Environment, FileError, ScratchDir};
use cudock_http::{
    Blob, BlobStore, Client, ClientOptions, Download, DownloadError, HttpError, Progress, Request,
    RetryPolicy, Uri,
};
use cudock_pypi::{Fetcher, Offered, PypiError, Settings, WheelPin};

use crate::LockError;
use crate::debian::sources::Release;
use crate::file::{LockFile, LockedDeb, LockedWheel};

/// Fetches files that are known by their hash. Threads may share it.
pub struct PackageFetcher {
    environment: Environment,
    settings: Settings,
    store: BlobStore,
    progress: Arc<dyn Progress>,
    retries: RetryPolicy,
}

impl PackageFetcher {
    pub fn new(environment: &Environment, progress: Arc<dyn Progress>) -> Result<Self, LockError> {
        let directory = environment.cache_directory().ok_or(PypiError::NoCache)?;
        Ok(Self {
            settings: Settings::for_uv(environment)?,
            store: BlobStore::open(directory.join("packages"))?,
            environment: environment.clone(),
            progress,
            retries: RetryPolicy::default(),
        })
    }

    /// Repeats failed requests differently.
    #[must_use]
    pub fn retries(self, retries: RetryPolicy) -> Self {
        Self { retries, ..self }
    }

    /// The cache.
    pub fn store(&self) -> &BlobStore {
        &self.store
    }

    /// A directory for temporary files.
    pub(crate) fn scratch(&self) -> Result<ScratchDir, FileError> {
        ScratchDir::new(&self.store.directory().join("scratch"))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn progress(&self) -> &Arc<dyn Progress> {
        &self.progress
    }

    /// The path of a wheel in the cache, verified.
    pub fn wheel(&self, wheel: &LockedWheel) -> Result<PathBuf, LockError> {
        let (package, file, size) = (wheel.name.as_str(), wheel.file.as_str(), wheel.size);
        Ok(self.index().wheel(WheelPin { package, file, size, digest: &wheel.digest })?)
    }

    /// The path of a Debian package in the cache, verified.
    pub fn deb(&self, lock: &LockFile, deb: &LockedDeb) -> Result<PathBuf, LockError> {
        if let Some(path) = self.store.path_of(&deb.digest) {
            return Ok(path);
        }
        let suite = lock.debian.as_ref().map(|release| release.suite.as_str()).unwrap_or_default();
        let unknown = || LockError::Release { reason: format!("unknown release `{suite}` in the lock file") };
        let release = Release::find(suite).ok_or_else(unknown)?;
        let arch: Arch = lock.target.arch;
        let mirrors = release.mirrors(&self.environment, arch);
        let mirror = mirrors.iter().find(|mirror| mirror.archive == deb.archive).ok_or_else(unknown)?;
        self.blob(&format!("{}/{}", mirror.url, deb.path), &deb.file, deb.size, &deb.digest)
    }

    /// The files of a Python package that `wanted` accepts.
    pub(crate) fn offered(
        &self,
        package: &str,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
    ) -> Result<Vec<Offered>, LockError> {
        Ok(self.index().offered(package, wanted)?)
    }

    fn index(&self) -> Fetcher<'_> {
        Fetcher {
            settings: &self.settings,
            store: &self.store,
            progress: &self.progress,
            retries: self.retries,
            offline: false,
        }
    }

    /// A document of at most `limit` bytes, which the caller verifies.
    pub(crate) fn document(&self, url: &str, limit: u64) -> Result<Vec<u8>, LockError> {
        let client = self.archive_client(url)?;
        let request = Request::get(url);
        let bytes = self
            .retries
            .run(&*self.progress, url, || client.send(&request)?.error_for_status()?.bytes(limit));
        bytes.map_err(|error| failed(url, error))
    }

    /// The path of a file of an archive in the cache, verified.
    pub(crate) fn blob(
        &self,
        url: &str,
        name: &str,
        size: u64,
        digest: &Digest,
    ) -> Result<PathBuf, LockError> {
        if let Some(path) = self.store.path_of(digest) {
            return Ok(path);
        }
        let client = self.archive_client(url)?;
        let request = Request::get(url);
        let mut partial = match self.store.begin(digest, size, &|| self.progress.waiting(name))? {
            Blob::Complete(path) => return Ok(path),
            Blob::Partial(partial) => partial,
        };
        let download = Download { name, progress: &*self.progress, retries: self.retries };
        let downloaded = download.run(&mut partial, |from_byte| client.send_from(&request, from_byte));
        downloaded.map_err(|error| match error {
            DownloadError::File(error) => error.into(),
            DownloadError::Request(error) | DownloadError::Body(error) => failed(url, error),
            error => LockError::WrongBytes { url: url.to_owned(), reason: error.to_string() },
        })
    }

    /// A client for an archive, which may speak plain http: its content is verified by signature and hash.
    fn archive_client(&self, url: &str) -> Result<Client, LockError> {
        let host = url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
        Ok(Client::new(&ClientOptions {
            certificates: self.settings.certificates.clone(),
            timeout: self.settings.timeout,
            trusted_hosts: host.into_iter().collect(),
            proxy: self.settings.proxy.clone(),
        })?)
    }
}

fn failed(url: &str, error: HttpError) -> LockError {
    LockError::Http { url: url.to_owned(), error }
}
