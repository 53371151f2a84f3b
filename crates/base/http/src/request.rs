//! An HTTP request to send.

use std::time::Duration;

use cudock_base::Secret;
use cudock_base::text::percent;
use serde::Serialize;
use ureq::http::Method;

use crate::error::{HttpError, HttpErrorKind};

/// A request, which may be sent any number of times.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) authorization: Option<Secret>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) follow_redirects: bool,
}

impl Request {
    /// A request with this method and no body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        let follow_redirects = matches!(method, Method::GET | Method::HEAD);
        let (headers, url) = (Vec::new(), url.into());
        Self { method, url, headers, authorization: None, body: None, deadline: None, follow_redirects }
    }

    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The media types that are understood.
    #[must_use]
    pub fn accept(self, media_types: &str) -> Self {
        self.header("Accept", media_types)
    }

    /// The `Authorization` header. It is sent to the URL's origin, and to no other that this one redirects to.
    #[must_use]
    pub fn authorization(mut self, authorization: Option<Secret>) -> Self {
        self.authorization = authorization;
        self
    }

    /// Requests the bytes from this one on. The response is 206, 200 if the server ignores ranges, or 416.
    #[must_use]
    pub fn range_from(self, byte: Option<u64>) -> Self {
        match byte {
            Some(byte) => self.header("Range", format!("bytes={byte}-")),
            None => self,
        }
    }

    /// Sends these bytes.
    #[must_use]
    pub fn body(mut self, content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Some(bytes.into());
        self.header("Content-Type", content_type)
    }

    /// Sends a value as JSON.
    pub fn json(self, value: &impl Serialize) -> Result<Self, HttpError> {
        let bytes = serde_json::to_vec(value).map_err(|error| {
            HttpError::new(HttpErrorKind::Malformed, format!("cannot write JSON: {error}"))
        })?;
        Ok(self.body("application/json", bytes))
    }

    /// Sends the fields of a form.
    #[must_use]
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", percent::encode(name), percent::encode(value)))
            .collect();
        self.body("application/x-www-form-urlencoded", fields.join("&"))
    }

    /// Gives up after this time, even while the server is still sending. Without a deadline, only
    /// silence is limited.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Returns a redirect in place of following it.
    #[must_use]
    pub fn without_redirects(mut self) -> Self {
        self.follow_redirects = false;
        self
    }

    /// The URL, for the wire and not for messages: it may be signed.
    pub fn url(&self) -> &str {
        &self.url
    }
}
