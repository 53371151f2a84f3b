//! Asks for a list page by page, with patience for a service that stumbles and none for one that lies.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use cudock_registry::parts::{
    Again, Failure, Get, Http, HttpOptions, Trouble, broken, header, retry_after, shortened,
};
use cudock_registry::{Asked, Progress, RegistryError, Retries};

use crate::endpoint::Endpoint;
use crate::error::Why;
use crate::page::{Page, Row};

/// A page of a thousand rows has about a megabyte.
const LARGEST_PAGE: u64 = 32 << 20;
/// A region has some ten pages.
const MOST_PAGES: u32 = 500;

/// How the service is asked.
#[derive(Debug, Clone)]
pub struct Connection {
    /// A bundle of certificates to trust; Mozilla's are trusted where there is none.
    pub certificates: Option<PathBuf>,
    /// How long the service may say nothing.
    pub patience: Duration,
    /// How failures are repeated.
    pub retries: Retries,
}

impl Default for Connection {
    /// Waits that begin with some seconds: who is asked too often is not helped by a second question at once.
    fn default() -> Self {
        Self {
            certificates: None,
            patience: Duration::from_secs(60),
            retries: Retries { first_wait: Duration::from_secs(2), ..Retries::default() },
        }
    }
}

/// A page that could not be had.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) page: u32,
    pub(crate) reason: String,
    pub(crate) why: Why,
}

/// What a list came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    pub(crate) pages: u32,
    pub(crate) rows: u64,
}

pub(crate) struct Service<'a> {
    http: Http,
    endpoint: &'a Endpoint,
    retries: Retries,
    progress: &'a dyn Progress,
}

impl<'a> Service<'a> {
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        connection: &Connection,
        progress: &'a dyn Progress,
    ) -> Result<Self, RegistryError> {
        let options = HttpOptions {
            certificates: connection.certificates.clone(),
            ..HttpOptions::patient(connection.patience)
        };
        Ok(Self { http: Http::new(&options)?, endpoint, retries: connection.retries, progress })
    }

    /// Hands every row of a list to `take`, whose error is one of the page.
    pub(crate) fn walk(
        &self,
        region: &str,
        filter: &str,
        mut take: impl FnMut(&Row<'_>) -> Result<(), String>,
    ) -> Result<Walked, Stopped> {
        let mut walked = Walked::default();
        let mut address = self.endpoint.first_page(filter);
        let mut seen = BTreeSet::new();
        loop {
            walked.pages += 1;
            let page = walked.pages;
            let stopped = |reason, why| Stopped { page, reason, why };
            let bytes = self.page(region, page, &address).map_err(|(reason, why)| stopped(reason, why))?;
            seen.insert(address);
            let wrong = |reason| stopped(reason, Why::Protocol);
            let list = Page::parse(&bytes).map_err(|error| wrong(not_a_page(&error)))?;
            if let Some(other) = list.currency.as_deref().filter(|currency| *currency != "USD") {
                return Err(wrong(format!("it sent prices in {}, not in USD", crate::rules::shown(other))));
            }
            for row in list.rows() {
                take(row).map_err(wrong)?;
                walked.rows += 1;
            }
            let Some(link) = list.next.as_deref().filter(|link| !link.trim().is_empty()) else {
                return Ok(walked);
            };
            address = self.endpoint.next_page(link).map_err(wrong)?;
            if seen.contains(&address) {
                return Err(wrong("its pages go in circles".to_owned()));
            }
            if page == MOST_PAGES {
                return Err(wrong(format!("its list has more than {MOST_PAGES} pages")));
            }
        }
    }

    /// The bytes of a page that can be read as JSON to its end.
    fn page(&self, region: &str, page: u32, address: &str) -> Result<Vec<u8>, (String, Why)> {
        // The attempts speak the registries' errors, which have no word for what this service does wrong.
        let why = Cell::new(Why::Protocol);
        let asked = Asked {
            registry: self.endpoint.host().to_owned(),
            repository: region.to_owned(),
            what: format!("page {page}"),
        };
        let answer =
            self.retries.repeated(self.progress, &asked.what, || self.attempt(address, &asked, &why));
        answer.map_err(|error| match error {
            RegistryError::Unreachable { reason, .. } | RegistryError::Protocol { reason, .. } => {
                (reason, why.get())
            }
            other => (other.to_string(), why.get()),
        })
    }

    fn attempt(&self, address: &str, asked: &Asked, why: &Cell<Why>) -> Result<Vec<u8>, Failure> {
        let failed = |kind: Why, reason: String, again: Again| {
            why.set(kind);
            Failure { error: RegistryError::Unreachable { asked: Box::new(asked.clone()), reason }, again }
        };
        let get = Get { accept: Some("application/json"), ..Get::default() };
        let mut answer = self.http.get(address, &get).map_err(|trouble| match trouble {
            Trouble::Network(reason) => failed(Why::Unreachable, reason, Again::After(None)),
            Trouble::Final(reason) if reason.contains("certificate") => {
                failed(Why::Certificate, reason, Again::Never)
            }
            Trouble::Final(reason) => failed(Why::Unreachable, reason, Again::Never),
            Trouble::Refused(reason) => failed(Why::Protocol, reason, Again::Never),
        })?;
        if !answer.is_of_origin {
            let elsewhere = answer.url.host().unwrap_or("elsewhere").to_owned();
            let reason = format!("it sends us to another host, {}", crate::rules::shown(&elsewhere));
            return Err(failed(Why::Protocol, reason, Again::Never));
        }
        let status = answer.response.status().as_u16();
        let after = retry_after(header(&answer.response, "retry-after"));
        let is_web_page = header(&answer.response, "content-type")
            .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"));
        match status {
            200 if is_web_page => {
                let reason = "it answers with a web page, as proxies do that want a sign-in".to_owned();
                return Err(failed(Why::Protocol, reason, Again::Never));
            }
            200 => {}
            429 => {
                let reason = "it says that it was asked too often".to_owned();
                return Err(failed(Why::TooOften(after), reason, Again::After(after)));
            }
            408 | 500..=599 => {
                return Err(failed(
                    Why::Status(status),
                    format!("it answered {status}"),
                    Again::After(after),
                ));
            }
            _ => {
                let mut said = Vec::new();
                // What it says is a courtesy; that it cannot be read changes nothing.
                let _ = answer.response.body_mut().as_reader().take(2000).read_to_end(&mut said);
                let said = shortened(String::from_utf8_lossy(&said).trim(), 200);
                let said = if said.is_empty() || is_web_page { String::new() } else { format!(": {said}") };
                return Err(failed(Why::Status(status), format!("it answered {status}{said}"), Again::Never));
            }
        }
        let mut bytes = Vec::new();
        let mut body = answer.response.body_mut().as_reader().take(LARGEST_PAGE + 1);
        body.read_to_end(&mut bytes)
            .map_err(|error| failed(Why::Unreachable, broken(&error), Again::After(None)))?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST_PAGE) {
            let reason = format!("its page has more than {LARGEST_PAGE} bytes");
            return Err(failed(Why::Protocol, reason, Again::Never));
        }
        // One that breaks off without an error of the connection was cut on its way.
        match Page::parse(&bytes) {
            Err(error) if error.is_eof() => {
                Err(failed(Why::Protocol, not_a_page(&error), Again::After(None)))
            }
            _ => Ok(bytes),
        }
    }
}

fn not_a_page(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "its answer breaks off".to_owned();
    }
    format!("its answer is no price list: {}", shortened(&error.to_string(), 160))
}
