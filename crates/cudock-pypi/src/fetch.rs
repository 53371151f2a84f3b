//! Fetches a wheel from the first source that has it with the right hash.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::{Digest, FileError, Secret, files};
use cudock_facts::tables::RuntimeWheel;
use cudock_http::url::is_loopback;
use cudock_http::{
    Blob, BlobStore, Client, ClientOptions, Download, DownloadError, Finished, HttpError, HttpErrorKind,
    PartialFile, Progress, Request, RetryPolicy,
};

use crate::error::{FailedSource, PypiError, SourceErrorKind};
use crate::index;
use crate::settings::Settings;
use crate::url::{DisplaySafeUrl, PackageSource};

pub(crate) struct Fetcher<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) store: &'a BlobStore,
    pub(crate) progress: &'a Arc<dyn Progress>,
    pub(crate) retries: RetryPolicy,
    pub(crate) offline: bool,
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
    pub(crate) fn wheel(&self, wheel: &RuntimeWheel) -> Result<PathBuf, PypiError> {
        let digest: Digest = format!("sha256:{}", wheel.sha256).parse()?;
        if let Some(path) = self.store.path_of(&digest) {
            return Ok(path);
        }
        let sources = self.sources(wheel);
        let count = sources.len();
        let mut client = None;
        let mut tried = Vec::new();
        for (index, source) in sources.into_iter().enumerate() {
            let retries = if index + 1 < count { self.retries.for_mirror() } else { self.retries };
            let result = match source {
                WheelSource::File(path) => self.copy(wheel, &digest, &path),
                WheelSource::Page(configured, page) => {
                    let client = match &mut client {
                        Some(client) => client,
                        none => none.insert(self.client()?),
                    };
                    IndexRequest { fetcher: self, client, wheel, configured, retries }.fetch(&page, &digest)
                }
            };
            match result {
                Ok(path) => return Ok(path),
                Err(SourceError::Local(error)) => return Err(error),
                Err(SourceError::Source(failure)) => tried.push(failure),
            }
        }
        let file = wheel.file.clone();
        if self.offline {
            let requirement = format!("{}=={}", wheel.package, wheel.version);
            return Err(PypiError::Offline { file, requirement });
        }
        Err(if tried.is_empty() {
            PypiError::NoSource { file }
        } else {
            PypiError::Unavailable { file, tried }
        })
    }

    /// The sources, local directories first; only those with `offline`.
    fn sources(&self, wheel: &RuntimeWheel) -> Vec<WheelSource<'_>> {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for index in &self.settings.indexes {
            match index {
                PackageSource::Local(directory) => {
                    here.push(WheelSource::File(directory.join(&wheel.package).join(&wheel.file)));
                }
                PackageSource::Remote(url) => there.push(WheelSource::Page(url, url.page(&wheel.package))),
            }
        }
        for source in &self.settings.find_links {
            match source {
                PackageSource::Local(path)
                    if path.file_name().is_some_and(|name| name == wheel.file.as_str()) =>
                {
                    here.push(WheelSource::File(path.clone()));
                }
                PackageSource::Local(directory) => here.push(WheelSource::File(directory.join(&wheel.file))),
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

    fn begin(&self, wheel: &RuntimeWheel, digest: &Digest) -> Result<Blob, FileError> {
        self.store.begin(digest, wheel.size, &|| self.progress.waiting(&wheel.file))
    }

    /// Copies a local file, so that it cannot change between verification and use.
    fn copy(&self, wheel: &RuntimeWheel, digest: &Digest, path: &Path) -> Result<PathBuf, SourceError> {
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
        let mut partial = match self.begin(wheel, digest)? {
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
                let reason = format!("digest mismatch: expected {digest}, got {actual}");
                Err(wrong(&mut partial, reason))
            }
        }
    }
}

/// A request for the wheel at one index or page of links.
struct IndexRequest<'a> {
    fetcher: &'a Fetcher<'a>,
    client: &'a Client,
    wheel: &'a RuntimeWheel,
    configured: &'a DisplaySafeUrl,
    retries: RetryPolicy,
}

impl IndexRequest<'_> {
    fn fetch(&self, page: &DisplaySafeUrl, digest: &Digest) -> Result<PathBuf, SourceError> {
        let failed = |kind, reason: String| {
            SourceError::Source(FailedSource::new(self.configured.to_string(), kind, reason))
        };
        let is_plain = page.url().scheme_str() == Some("http");
        if is_plain && !is_loopback(page.host()) && !self.client.is_trusted(page.url()) {
            let reason = "refused plain http, which can be tampered with, from an untrusted host";
            return Err(failed(SourceErrorKind::Insecure, reason.to_owned()));
        }
        let Some(listed) = self.find_on(page)? else {
            return Err(failed(SourceErrorKind::NotListed, format!("does not list {}", self.wheel.file)));
        };
        if let Some(other) = listed.sha256.filter(|sha256| *sha256 != self.wheel.sha256) {
            let reason = format!("lists the file with sha256:{other}, not {digest}");
            return Err(failed(SourceErrorKind::WrongBytes, reason));
        }
        let mut partial = match self.fetcher.begin(self.wheel, digest)? {
            Blob::Complete(path) => return Ok(path),
            Blob::Partial(partial) => partial,
        };
        let request = self.request(&listed.url);
        let download =
            Download { name: &self.wheel.file, progress: &**self.fetcher.progress, retries: self.retries };
        let downloaded = download.run(&mut partial, |from_byte| {
            let response = self.client.send(&request.clone().range_from(from_byte))?;
            match response.status() {
                200 | 206 => Ok(response),
                416 if from_byte.is_some() => Ok(response),
                _ => Err(response.into_status_error()),
            }
        });
        downloaded.map_err(|error| match error {
            DownloadError::File(error) => error.into(),
            DownloadError::Request(error) | DownloadError::Body(error) => self.failed(&listed.url, &error),
            error @ (DownloadError::WrongSize(_) | DownloadError::WrongDigest { .. }) => {
                failed(SourceErrorKind::WrongBytes, error.to_string())
            }
        })
    }

    fn find_on(&self, page: &DisplaySafeUrl) -> Result<Option<index::Listed>, SourceError> {
        let request = self.request(page).accept(index::ACCEPT);
        let found = self.retries.run(&**self.fetcher.progress, "page", || {
            let mut response = self.client.send(&request)?.error_for_status()?;
            let bytes = response.bytes(index::MAX_PAGE)?;
            let page = DisplaySafeUrl::of(response.url().clone());
            let media_type = response.header("content-type");
            index::find(&bytes, media_type, &page, &self.wheel.file, &self.wheel.sha256)
                .map_err(|reason| HttpError::new(HttpErrorKind::Malformed, reason))
        });
        found.map_err(|error| self.failed(page, &error))
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
