//! Fetches a price list page by page, with retries and limits.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use cudock_base::text;
use cudock_http::{
    CertificateError, Client, ClientOptions, HttpError, HttpErrorKind, Progress, Request, RetryPolicy,
};

use crate::api::endpoint::Endpoint;
use crate::api::page::{Page, PriceListRow};
use crate::rules::quoted;

/// A page of a thousand rows has about a megabyte.
const MAX_PAGE: u64 = 32 << 20;
/// A region has some ten pages.
const MAX_PAGES: u32 = 500;

#[derive(Debug, Clone)]
pub struct Connection {
    /// A bundle of certificates to trust; Mozilla's are trusted where there is none.
    pub certificates: Option<PathBuf>,
    pub timeout: Duration,
    pub retries: RetryPolicy,
}

impl Default for Connection {
    /// Waits seconds before the first retry, for services that limit the request rate.
    fn default() -> Self {
        Self {
            certificates: None,
            timeout: Duration::from_secs(60),
            retries: RetryPolicy { initial_delay: Duration::from_secs(2), ..RetryPolicy::default() },
        }
    }
}

#[derive(Debug)]
pub(crate) struct PageError {
    pub(crate) page: u32,
    pub(crate) error: HttpError,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListSize {
    pub(crate) pages: u32,
    pub(crate) rows: u64,
}

pub(crate) struct PriceService<'a> {
    client: Client,
    endpoint: &'a Endpoint,
    retries: RetryPolicy,
    progress: &'a dyn Progress,
}

impl<'a> PriceService<'a> {
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        connection: &Connection,
        progress: &'a dyn Progress,
    ) -> Result<Self, CertificateError> {
        let options = ClientOptions {
            certificates: connection.certificates.clone(),
            timeout: connection.timeout,
            ..ClientOptions::default()
        };
        Ok(Self { client: Client::new(&options)?, endpoint, retries: connection.retries, progress })
    }

    /// Passes every row of a list to `take`; an error makes the page malformed.
    pub(crate) fn read_list(
        &self,
        region: &str,
        filter: &str,
        mut take: impl FnMut(&PriceListRow<'_>) -> Result<(), String>,
    ) -> Result<ListSize, PageError> {
        let mut size = ListSize::default();
        let mut address = self.endpoint.first_page(filter);
        let mut seen = BTreeSet::new();
        loop {
            size.pages += 1;
            let page = size.pages;
            let failed = |error| PageError { page, error };
            let malformed = |reason| failed(malformed(reason));
            let what = format!("page {page} of {region} on {}", self.endpoint.host());
            let bytes = self.retries.run(self.progress, &what, || self.fetch(&address)).map_err(failed)?;
            seen.insert(address);
            let list = Page::parse(&bytes).map_err(|error| malformed(not_a_list(&error)))?;
            if let Some(other) = list.currency.as_deref().filter(|currency| *currency != "USD") {
                return Err(malformed(format!("prices are in {}, not in USD", quoted(other))));
            }
            for row in list.rows() {
                take(row).map_err(malformed)?;
                size.rows += 1;
            }
            let Some(link) = list.next.as_deref().filter(|link| !link.trim().is_empty()) else {
                return Ok(size);
            };
            address = self.endpoint.next_page(link).map_err(malformed)?;
            if seen.contains(&address) {
                return Err(malformed("the pages form a cycle".to_owned()));
            }
            if page == MAX_PAGES {
                return Err(malformed(format!("the list has more than {MAX_PAGES} pages")));
            }
        }
    }

    /// The bytes of a complete page.
    fn fetch(&self, address: &str) -> Result<Vec<u8>, HttpError> {
        let mut response = self.client.send(&Request::get(address).accept("application/json"))?;
        if !response.is_from_origin() {
            let host = response.url().host().unwrap_or("elsewhere");
            let reason = format!("refused a redirect to another host, {}", quoted(host));
            return Err(HttpError::new(HttpErrorKind::Refused, reason));
        }
        if response.status() != 200 {
            return Err(response.into_status_error());
        }
        if response.is_web_page() {
            return Err(malformed("got a web page, maybe from a proxy that requires a login".to_owned()));
        }
        let bytes = response.bytes(MAX_PAGE)?;
        match Page::parse(&bytes) {
            Err(error) if error.is_eof() => {
                Err(HttpError::new(HttpErrorKind::Transient, "the response is truncated"))
            }
            _ => Ok(bytes),
        }
    }
}

fn malformed(reason: String) -> HttpError {
    HttpError::new(HttpErrorKind::Malformed, reason)
}

fn not_a_list(error: &serde_json::Error) -> String {
    format!("not a price list: {}", text::truncate(&error.to_string(), 160))
}
