//! Fetches a wheel from the first source that has it with the right hash, and lists the files of a package.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::{Algorithm, Digest, FileError, Hasher, Secret, files};
use cudock_http::url::is_loopback;
use cudock_http::{
    Blob, BlobStore, Client, ClientOptions, Download, DownloadError, Finished, HttpError, HttpErrorKind,
    Method, PartialFile, Progress, Request, RetryPolicy,
};

use crate::error::{FailedSource, PypiError, SourceErrorKind};
use crate::index::{self, Listed};
use crate::settings::Settings;
use crate::url::{DisplaySafeUrl, PackageSource};

/// Fetches wheels into a store. Threads may share it.
pub struct Fetcher<'a> {
    pub settings: &'a Settings,
    pub store: &'a BlobStore,
    pub progress: &'a Arc<dyn Progress>,
    pub retries: RetryPolicy,
    /// Never use the network.
    pub offline: bool,
}

/// A wheel that is known by its hash.
#[derive(Debug, Clone, Copy)]
pub struct WheelPin<'a> {
    /// The package's name, normalized.
    pub package: &'a str,
    pub file: &'a str,
    pub size: u64,
    pub digest: &'a Digest,
}

/// A file that a source offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub file: String,
    /// Its SHA-256 in lower-case hexadecimal; always present for files of directories.
    pub sha256: Option<String>,
    /// The path of its URL, or its name in a directory.
    pub path: String,
    pub size: u64,
}

enum WheelSource<'a> {
    File(PathBuf),
    /// A page of links.
    Page(&'a DisplaySafeUrl, DisplaySafeUrl),
}

/// An error of a source, or a local one, which ends the search.
enum SourceError {
    Source(FailedSource),
    Local(PypiError),
}

impl From<FileError> for SourceError {
    fn from(error: FileError) -> Self {
        Self::Local(error.into())
    }
}

impl Fetcher<'_> {
    /// The wheel's path in the store, verified.
    pub fn wheel(&self, wheel: WheelPin<'_>) -> Result<PathBuf, PypiError> {
        if let Some(path) = self.store.path_of(wheel.digest) {
            return Ok(path);
        }
        let sources = self.sources(wheel.package, wheel.file);
        let count = sources.len();
        let mut client = None;
        let mut tried = Vec::new();
        for (index, source) in sources.into_iter().enumerate() {
            let retries = if index + 1 < count { self.retries.for_mirror() } else { self.retries };
            let result = match source {
                WheelSource::File(path) => self.copy(wheel, &path),
                WheelSource::Page(configured, page) => {
                    let client = match &mut client {
                        Some(client) => client,
                        none => none.insert(self.client()?),
                    };
                    IndexRequest { fetcher: self, client, configured, retries }.fetch(wheel, &page)
                }
            };
            match result {
                Ok(path) => return Ok(path),
                Err(SourceError::Local(error)) => return Err(error),
                Err(SourceError::Source(failure)) => tried.push(failure),
            }
        }
        let file = wheel.file.to_owned();
        if self.offline {
            let version = file.split('-').nth(1).unwrap_or_default();
            let requirement = format!("{}=={version}", wheel.package);
            return Err(PypiError::Offline { file, requirement });
        }
        Err(if tried.is_empty() {
            PypiError::NoSource { file }
        } else {
            PypiError::Unavailable { file, tried }
        })
    }

    /// The files of a package that `wanted` accepts by name and hash, from the first source that has any.
    pub fn offered(
        &self,
        package: &str,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
    ) -> Result<Vec<Offered>, PypiError> {
        let mut client = None;
        let mut tried = Vec::new();
        for source in self.sources(package, "") {
            let offered = match source {
                WheelSource::File(directory) => offered_in(&directory, wanted),
                WheelSource::Page(configured, page) => {
                    let client = match &mut client {
                        Some(client) => client,
                        none => none.insert(self.client()?),
                    };
                    let request = IndexRequest { fetcher: self, client, configured, retries: self.retries };
                    request.offered(&page, wanted)
                }
            };
            match offered {
                Ok(offered) if !offered.is_empty() => return Ok(offered),
                Ok(_) => {}
                Err(SourceError::Source(failed)) if failed.kind == SourceErrorKind::NotListed => {}
                Err(SourceError::Source(failed)) => tried.push(failed),
                Err(SourceError::Local(error)) => return Err(error),
            }
        }
        if tried.is_empty() {
            Ok(Vec::new())
        } else {
            Err(PypiError::Unavailable { file: package.to_owned(), tried })
        }
    }

    /// The sources, local directories first; only those with `offline`.
    fn sources(&self, package: &str, file: &str) -> Vec<WheelSource<'_>> {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for index in &self.settings.indexes {
            match index {
                PackageSource::Local(directory) => {
                    here.push(WheelSource::File(directory.join(package).join(file)));
                }
                PackageSource::Remote(url) => there.push(WheelSource::Page(url, url.page(package))),
            }
        }
        for source in &self.settings.find_links {
            match source {
                PackageSource::Local(path) if path.file_name().is_some_and(|name| name == file) => {
                    here.push(WheelSource::File(path.clone()));
                }
                PackageSource::Local(directory) => here.push(WheelSource::File(directory.join(file))),
                PackageSource::Remote(url) => there.push(WheelSource::Page(url, url.clone())),
            }
        }
        if !self.offline {
            here.append(&mut there);
        }
        here
    }

    fn client(&self) -> Result<Client, PypiError> {
        Ok(Client::new(&ClientOptions {
            certificates: self.settings.certificates.clone(),
            timeout: self.settings.timeout,
            trusted_hosts: self.settings.trusted_hosts.clone(),
            proxy: self.settings.proxy.clone(),
        })?)
    }

    fn begin(&self, wheel: WheelPin<'_>) -> Result<Blob, FileError> {
        self.store.begin(wheel.digest, wheel.size, &|| self.progress.waiting(wheel.file))
    }

    /// Copies a local file, so that it cannot change between verification and use.
    fn copy(&self, wheel: WheelPin<'_>, path: &Path) -> Result<PathBuf, SourceError> {
        let failed = |kind, reason: String| {
            let source = path.parent().unwrap_or(path).display().to_string();
            SourceError::Source(FailedSource::new(source, kind, reason))
        };
        let mut file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                failed(SourceErrorKind::NotListed, "not found".to_owned())
            }
            _ => failed(SourceErrorKind::Unreachable, error.to_string()),
        })?;
        let mut partial = match self.begin(wheel)? {
            Blob::Complete(path) => return Ok(path),
            Blob::Partial(partial) => partial,
        };
        partial.restart()?;
        let wrong = |partial: &mut PartialFile, reason: String| match partial.restart() {
            Ok(()) => failed(SourceErrorKind::WrongBytes, reason),
            Err(error) => error.into(),
        };
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let bytes = files::read_some(&mut file, &mut buffer).map_err(FileError::at("read", path))?;
            if bytes.is_empty() {
                break;
            }
            if !partial.append(bytes)? {
                let reason = format!("the file has more than {} bytes", wheel.size);
                return Err(wrong(&mut partial, reason));
            }
        }
        match partial.finish()? {
            Finished::Complete(path) => Ok(path),
            Finished::WrongDigest { actual } => {
                let reason = format!("digest mismatch: expected {}, got {actual}", wheel.digest);
                Err(wrong(&mut partial, reason))
            }
        }
    }
}

/// Requests to one index or page of links.
struct IndexRequest<'a> {
    fetcher: &'a Fetcher<'a>,
    client: &'a Client,
    configured: &'a DisplaySafeUrl,
    retries: RetryPolicy,
}

impl IndexRequest<'_> {
    fn fetch(&self, wheel: WheelPin<'_>, page: &DisplaySafeUrl) -> Result<PathBuf, SourceError> {
        let failed = |kind, reason: String| {
            SourceError::Source(FailedSource::new(self.configured.to_string(), kind, reason))
        };
        let picked = index::pick(self.list(page)?, wheel.file, wheel.digest.hex());
        let Some(listed) = picked else {
            return Err(failed(SourceErrorKind::NotListed, format!("does not list {}", wheel.file)));
        };
        if let Some(other) = listed.sha256.filter(|sha256| *sha256 != wheel.digest.hex()) {
            let reason = format!("lists the file with sha256:{other}, not {}", wheel.digest);
            return Err(failed(SourceErrorKind::WrongBytes, reason));
        }
        let mut partial = match self.fetcher.begin(wheel)? {
            Blob::Complete(path) => return Ok(path),
            Blob::Partial(partial) => partial,
        };
        let request = self.request(&listed.url);
        let download =
            Download { name: wheel.file, progress: &**self.fetcher.progress, retries: self.retries };
        let downloaded = download.run(&mut partial, |from_byte| self.client.send_from(&request, from_byte));
        downloaded.map_err(|error| match error {
            DownloadError::File(error) => error.into(),
            DownloadError::Request(error) | DownloadError::Body(error) => self.failed(&listed.url, &error),
            error @ (DownloadError::WrongSize(_) | DownloadError::WrongDigest { .. }) => {
                failed(SourceErrorKind::WrongBytes, error.to_string())
            }
        })
    }

    /// The files on a page.
    fn list(&self, page: &DisplaySafeUrl) -> Result<Vec<Listed>, SourceError> {
        let is_plain = page.url().scheme_str() == Some("http");
        if is_plain && !is_loopback(page.host()) && !self.client.is_trusted(page.url()) {
            let reason = "refused plain http, which can be tampered with, from an untrusted host";
            let source = self.configured.to_string();
            return Err(SourceError::Source(FailedSource::new(source, SourceErrorKind::Insecure, reason)));
        }
        let request = self.request(page).accept(index::ACCEPT);
        let listed = self.retries.run(&**self.fetcher.progress, "page", || {
            let mut response = self.client.send(&request)?.error_for_status()?;
            let bytes = response.bytes(index::MAX_PAGE)?;
            let page = DisplaySafeUrl::of(response.url().clone());
            let mut listed = Vec::new();
            index::read(&bytes, response.header("content-type"), &page, &mut |file| listed.push(file))
                .map_err(|reason| HttpError::new(HttpErrorKind::Malformed, reason))?;
            Ok(listed)
        });
        listed.map_err(|error| self.failed(page, &error))
    }

    fn offered(
        &self,
        page: &DisplaySafeUrl,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
    ) -> Result<Vec<Offered>, SourceError> {
        let listed = self.list(page)?.into_iter();
        let wanted = listed.filter(|listed| wanted(&listed.file, listed.sha256.as_deref()));
        wanted
            .map(|listed| {
                let size = listed.size.map_or_else(|| self.size(&listed.url), Ok)?;
                let path = listed.url.url().path().trim_start_matches('/').to_owned();
                Ok(Offered { file: listed.file, sha256: listed.sha256, path, size })
            })
            .collect()
    }

    /// The size of a file, which pages in HTML do not have.
    fn size(&self, url: &DisplaySafeUrl) -> Result<u64, SourceError> {
        let request =
            Request::new(Method::HEAD, url.url().to_string()).authorization(self.authorization(url));
        let size = self.retries.run(&**self.fetcher.progress, "size", || {
            let response = self.client.send(&request)?.error_for_status()?;
            let length = response.header("content-length").and_then(|text| text.trim().parse().ok());
            length.ok_or_else(|| HttpError::new(HttpErrorKind::Malformed, "response without a size"))
        });
        size.map_err(|error| self.failed(url, &error))
    }

    fn request(&self, url: &DisplaySafeUrl) -> Request {
        Request::get(url.url().to_string()).authorization(self.authorization(url))
    }

    fn failed(&self, url: &DisplaySafeUrl, error: &HttpError) -> SourceError {
        let signed_in = self.authorization(url).is_some();
        SourceError::Source(FailedSource::from_http(&self.configured.to_string(), error, signed_in))
    }

    /// The credentials in the URL itself, else those of a configured URL with the same origin, else netrc's.
    fn authorization(&self, url: &DisplaySafeUrl) -> Option<Secret> {
        let settings = self.fetcher.settings;
        let of_origin = || {
            let configured =
                settings.indexes.iter().chain(&settings.find_links).filter_map(|source| match source {
                    PackageSource::Remote(configured) => Some(configured),
                    PackageSource::Local(_) => None,
                });
            std::iter::once(self.configured)
                .chain(configured)
                .filter(|configured| configured.is_same_origin(url))
                .find_map(DisplaySafeUrl::authorization)
                .cloned()
        };
        let of_host = || settings.netrc.authorization(url.url().host()?);
        url.authorization().cloned().or_else(of_origin).or_else(of_host)
    }
}

fn digest_of(path: &Path) -> io::Result<(Digest, u64)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut size) = (Hasher::new(Algorithm::Sha256), 0_u64);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let bytes = files::read_some(&mut file, &mut buffer)?;
        if bytes.is_empty() {
            return Ok((hasher.digest(), size));
        }
        hasher.update(bytes);
        size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }
}

/// The files of a directory; they are hashed only if their name is wanted.
fn offered_in(
    directory: &Path,
    wanted: &dyn Fn(&str, Option<&str>) -> bool,
) -> Result<Vec<Offered>, SourceError> {
    let mut offered = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(offered) };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let Some(file) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        if !path.is_file() || !wanted(&file, None) {
            continue;
        }
        let (digest, size) = digest_of(&path).map_err(FileError::at("read", &path))?;
        if wanted(&file, Some(digest.hex())) {
            offered.push(Offered { path: file.clone(), file, sha256: Some(digest.hex().to_owned()), size });
        }
    }
    offered.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(offered)
}
