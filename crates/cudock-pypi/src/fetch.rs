//! One wheel, from the first place that has it with the right hash.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_facts::tables::RuntimeWheel;
use cudock_registry::parts::{
    Again, Answer, Begun, Failure, Finished, Get, Http, HttpOptions, Partial, Transfer, broken, failure,
    header, is_loopback, retry_after,
};
use cudock_registry::{Asked, BlobStore, Digest, Progress, RegistryError, Retries, Secret};
use ureq::Body;
use ureq::http::Response;

use crate::address::{Address, Place};
use crate::error::{PypiError, Tried, Why};
use crate::index;
use crate::settings::Settings;
use crate::wheel::failed;

/// What fetching depends on.
pub(crate) struct Fetcher<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) store: &'a BlobStore,
    pub(crate) progress: &'a Arc<dyn Progress>,
    pub(crate) retries: Retries,
    pub(crate) offline: bool,
}

/// A place to ask, and how.
enum Source<'a> {
    /// A file that may be the wheel.
    File(PathBuf),
    /// A page of links.
    Page(&'a Address, Address),
}

/// Why a place did not give the wheel: its own failure, or ours, which ends the search.
enum Miss {
    Place(Tried),
    Ours(PypiError),
}

impl From<RegistryError> for Miss {
    fn from(error: RegistryError) -> Self {
        Self::Ours(error.into())
    }
}

impl Fetcher<'_> {
    /// The wheel's path in the store, verified.
    pub(crate) fn wheel(&self, wheel: &RuntimeWheel) -> Result<PathBuf, PypiError> {
        let digest: Digest = format!("sha256:{}", wheel.sha256)
            .parse()
            .map_err(|error| PypiError::Cache(RegistryError::Digest(error)))?;
        if let Some(path) = self.store.path_of(&digest) {
            return Ok(path);
        }
        let (mut sources, left_out) = self.sources(wheel);
        let places = sources.len();
        let mut http = None;
        let mut tried = Vec::new();
        for (index, source) in sources.drain(..).enumerate() {
            let retries = if index + 1 < places { self.retries.for_mirror() } else { self.retries };
            let result = match source {
                Source::File(path) => self.copied(wheel, &digest, &path),
                Source::Page(configured, page) => {
                    let http = match &mut http {
                        Some(http) => http,
                        none => none.insert(self.http()?),
                    };
                    Request { fetcher: self, http, wheel, configured, retries }.fetched(&page, &digest)
                }
            };
            match result {
                Ok(path) => return Ok(path),
                Err(Miss::Ours(error)) => return Err(error),
                Err(Miss::Place(place)) => tried.push(place),
            }
        }
        let file = wheel.file.clone();
        if self.offline && left_out {
            let requirement = format!("{}=={}", wheel.package, wheel.version);
            return Err(PypiError::Offline { file, requirement, cpu: wheel.cpu.clone() });
        }
        Err(if tried.is_empty() {
            PypiError::NoPlace { file }
        } else {
            PypiError::Unavailable { file, tried }
        })
    }

    /// Folders of this machine before the network; and whether the network was left out.
    fn sources(&self, wheel: &RuntimeWheel) -> (Vec<Source<'_>>, bool) {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for index in &self.settings.indexes {
            match index {
                Place::Local(folder) => {
                    here.push(Source::File(folder.join(&wheel.package).join(&wheel.file)));
                }
                Place::Remote(address) => there.push(Source::Page(address, address.page(&wheel.package))),
            }
        }
        for place in &self.settings.find_links {
            match place {
                Place::Local(path) if path.file_name().is_some_and(|name| name == wheel.file.as_str()) => {
                    here.push(Source::File(path.clone()));
                }
                Place::Local(folder) => here.push(Source::File(folder.join(&wheel.file))),
                Place::Remote(address) => there.push(Source::Page(address, address.clone())),
            }
        }
        let left_out = self.offline;
        if !self.offline {
            here.append(&mut there);
        }
        (here, left_out)
    }

    fn http(&self) -> Result<Http, PypiError> {
        Ok(Http::new(&HttpOptions {
            certificates: self.settings.certificates.clone(),
            patience: self.settings.patience,
            trusted: self.settings.trusted_hosts.clone(),
            proxy: self.settings.proxy.clone(),
        })?)
    }

    fn begin(&self, wheel: &RuntimeWheel, digest: &Digest) -> Result<Begun, RegistryError> {
        self.store.begin(digest, wheel.size, &|| self.progress.waiting(&wheel.file))
    }

    /// Copies a file of this machine, so that nobody can change it between its being verified and used.
    fn copied(&self, wheel: &RuntimeWheel, digest: &Digest, path: &Path) -> Result<PathBuf, Miss> {
        let place = || path.parent().unwrap_or(path).display().to_string();
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(Miss::Place(Tried::new(place(), Why::NotListed, "it does not have it")));
            }
            Err(error) => {
                return Err(Miss::Place(Tried::new(place(), Why::Unreachable, error.to_string())));
            }
        };
        let mut partial = match self.begin(wheel, digest)? {
            Begun::Complete(path) => return Ok(path),
            Begun::Partial(partial) => partial,
        };
        partial.restart()?;
        let wrong = |partial: &mut Partial, reason: String| match partial.restart() {
            Ok(()) => Miss::Place(Tried::new(place(), Why::WrongBytes, reason)),
            Err(error) => error.into(),
        };
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    if !partial.append(buffer.get(..count).unwrap_or_default())? {
                        let reason = format!("its file has more than {} bytes", wheel.size);
                        return Err(wrong(&mut partial, reason));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Miss::Ours(failed("read", path)(error))),
            }
        }
        match partial.finish()? {
            Finished::Complete(path) => Ok(path),
            Finished::WrongDigest { got } => {
                let reason = format!("its file has {got}, not {digest}");
                Err(wrong(&mut partial, reason))
            }
        }
    }
}

/// The wheel, asked for at one index or page of links.
struct Request<'a> {
    fetcher: &'a Fetcher<'a>,
    http: &'a Http,
    wheel: &'a RuntimeWheel,
    configured: &'a Address,
    retries: Retries,
}

impl Request<'_> {
    fn fetched(&self, page: &Address, digest: &Digest) -> Result<PathBuf, Miss> {
        let miss = |why, reason: String| Miss::Place(Tried::new(self.configured.to_string(), why, reason));
        let is_plain = page.url().scheme_str() == Some("http");
        if is_plain && !is_loopback(page.host()) && !self.http.is_trusted(page.url()) {
            let reason = "it is plain http, which anybody can alter, and not trusted".to_owned();
            return Err(miss(Why::Insecure, reason));
        }
        let Some(listed) = self.listed(page)? else {
            let reason = format!("it does not list {}", self.wheel.file);
            return Err(miss(Why::NotListed, reason));
        };
        if let Some(other) = listed.sha256.filter(|sha256| *sha256 != self.wheel.sha256) {
            let reason = format!("it lists the file with sha256:{other}, not {digest}");
            return Err(miss(Why::WrongBytes, reason));
        }
        let mut partial = match self.fetcher.begin(self.wheel, digest)? {
            Begun::Complete(path) => return Ok(path),
            Begun::Partial(partial) => partial,
        };
        let asked = self.asked(&listed.address, &self.wheel.file);
        let authorization = self.authorization(&listed.address);
        let transfer = Transfer {
            get: &|from_byte| {
                let get = Get { authorization: authorization.as_ref(), accept: None, from_byte };
                self.ask(&listed.address, &get, &asked).map(|answer| answer.response)
            },
            name: &self.wheel.file,
            asked: &asked,
            progress: &**self.fetcher.progress,
            retries: self.retries,
        };
        transfer.run(&mut partial).map_err(|error| self.miss(error))
    }

    /// What the page says of the wheel.
    fn listed(&self, page: &Address) -> Result<Option<index::Listed>, Miss> {
        let asked = self.asked(page, "page");
        let authorization = self.authorization(page);
        let get = Get { authorization: authorization.as_ref(), accept: Some(index::ACCEPT), from_byte: None };
        let found = self.retries.repeated(&**self.fetcher.progress, "page", || {
            let mut answer = self.ask(page, &get, &asked)?;
            let bytes = read_page(&mut answer.response, &asked)?;
            let media_type = header(&answer.response, "content-type");
            index::find(&bytes, media_type, &Address::of(answer.url), &self.wheel.file, &self.wheel.sha256)
                .map_err(|reason| RegistryError::Protocol { asked: Box::new(asked.clone()), reason }.into())
        });
        found.map_err(|error| self.miss(error))
    }

    /// Errors of our disk end the search; those of the place are noted.
    fn miss(&self, error: RegistryError) -> Miss {
        match error {
            RegistryError::Store { .. } | RegistryError::Config { .. } => error.into(),
            error => Miss::Place(Tried::from_request(&self.configured.to_string(), &error)),
        }
    }

    fn asked(&self, address: &Address, what: &str) -> Asked {
        Asked {
            registry: address.host().to_owned(),
            repository: self.wheel.package.clone(),
            what: what.to_owned(),
        }
    }

    /// The sign-in in the address itself, else that of a configured address with the same origin, else netrc's.
    fn authorization(&self, address: &Address) -> Option<Secret> {
        let settings = self.fetcher.settings;
        let of_origin = || {
            let configured =
                settings.indexes.iter().chain(&settings.find_links).filter_map(|place| match place {
                    Place::Remote(configured) => Some(configured),
                    Place::Local(_) => None,
                });
            std::iter::once(self.configured)
                .chain(configured)
                .filter(|configured| configured.is_same_origin(address))
                .find_map(Address::authorization)
                .cloned()
        };
        let of_host = || settings.netrc.authorization(address.url().host()?);
        address.authorization().cloned().or_else(of_origin).or_else(of_host)
    }

    /// An answer of 200, 206, or 416 where a part was asked for.
    fn ask(&self, address: &Address, get: &Get<'_>, asked: &Asked) -> Result<Answer, Failure> {
        let answer =
            self.http.get(&address.url().to_string(), get).map_err(|trouble| failure(trouble, asked))?;
        let status = answer.response.status().as_u16();
        let after = retry_after(header(&answer.response, "retry-after"));
        let asked = Box::new(asked.clone());
        let error = match status {
            200 | 206 => return Ok(answer),
            416 if get.from_byte.is_some() => return Ok(answer),
            401 => {
                let signed_in = get.authorization.is_some();
                return Err(RegistryError::Unauthorized { asked, signed_in, trouble: None }.into());
            }
            403 => return Err(RegistryError::Forbidden { asked, said: None }.into()),
            404 | 410 => return Err(RegistryError::NotFound { asked, said: None }.into()),
            429 => RegistryError::TooManyRequests { asked, retry_after: after },
            408 | 500 | 502..=504 => RegistryError::Status { asked, status, said: None },
            _ => return Err(RegistryError::Status { asked, status, said: None }.into()),
        };
        Err(Failure { error, again: Again::After(after) })
    }
}

fn read_page(answer: &mut Response<Body>, asked: &Asked) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().take(index::LARGEST_PAGE + 1).read_to_end(&mut bytes).map_err(|error| {
        let error = RegistryError::Unreachable { asked: Box::new(asked.clone()), reason: broken(&error) };
        Failure { error, again: Again::After(None) }
    })?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= index::LARGEST_PAGE) {
        return Ok(bytes);
    }
    let reason = format!("its page is larger than {} bytes", index::LARGEST_PAGE);
    Err(RegistryError::Protocol { asked: Box::new(asked.clone()), reason }.into())
}
