//! HTTP responses.

use std::io::{self, Read};
use std::time::Duration;

use cudock_base::{Secret, Timestamp, text};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::{Response as HttpResponse, Uri};

use crate::authorization::redact;
use crate::error::{HttpError, HttpErrorKind};
use crate::url;

/// Maximum number of bytes read from an error's body.
const MAX_ERROR_BODY: u64 = 64 << 10;
/// Maximum delay accepted from a server.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum length of a server's message in an error, in characters.
const MAX_MESSAGE: usize = 200;

/// A response whose body has not been read.
#[derive(Debug)]
pub struct Response {
    pub(crate) inner: HttpResponse<Body>,
    pub(crate) url: Uri,
    pub(crate) is_from_origin: bool,
    pub(crate) authorization: Option<Secret>,
}

/// Formats of error bodies: Azure's `error`, the registries' `errors`, docker's `message`.
#[derive(Default, Deserialize)]
struct ErrorBody {
    error: Option<ErrorDetail>,
    #[serde(default)]
    errors: Vec<ErrorDetail>,
    message: Option<String>,
}

#[derive(Default, Deserialize)]
struct ErrorDetail {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// A server's explanation of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorMessage {
    /// A code, where the server has one.
    pub code: Option<String>,
    /// A text that is safe to show.
    pub message: Option<String>,
}

impl Response {
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// All values of a header that are text.
    pub fn headers<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.inner.headers().get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }

    /// Whether it was sent by the origin first contacted, and not by one that it redirected to. A
    /// challenge from elsewhere must not be followed: it would send the credentials to whatever
    /// server it names.
    pub fn is_from_origin(&self) -> bool {
        self.is_from_origin
    }

    /// The URL after all redirects.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The media type without parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let bare = self.header("content-type")?.split(';').next()?.trim().to_ascii_lowercase();
        (!bare.is_empty()).then_some(bare)
    }

    /// Whether it is a web page, as proxies and portals that want a sign-in send in place of anything else.
    pub fn is_web_page(&self) -> bool {
        self.media_type().as_deref() == Some("text/html")
    }

    /// The size of the body, where it is known.
    pub fn content_length(&self) -> Option<u64> {
        self.inner.body().content_length()
    }

    /// The delay that the server requests. Dates are ignored: clocks differ, and the usual delay
    /// suffices.
    pub fn retry_after(&self) -> Option<Duration> {
        let requested = self.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)?;
        Some(requested.min(MAX_RETRY_AFTER))
    }

    /// When the server sent it, by the server's clock.
    pub fn date(&self) -> Option<Timestamp> {
        Timestamp::parse_http(self.header("date")?)
    }

    /// The URL in a header such as `Location`, made absolute.
    pub fn linked_url(&self, name: &str) -> Option<String> {
        self.header(name).map(|reference| url::join(&self.url, reference))
    }

    /// Reads the whole body; an error if it is larger than `limit`.
    pub fn bytes(&mut self, limit: u64) -> Result<Vec<u8>, HttpError> {
        let too_large =
            || HttpError::new(HttpErrorKind::TooLarge, format!("the response is larger than {limit} bytes"));
        if self.content_length().is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        let mut body = self.inner.body_mut().as_reader().take(limit.saturating_add(1));
        body.read_to_end(&mut bytes)
            .map_err(|error| HttpError::new(HttpErrorKind::Transient, describe_read_error(&error)))?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
            Err(too_large())
        } else {
            Ok(bytes)
        }
    }

    /// Reads the whole body as JSON; an error if it is larger than `limit`. A body that ends early is retried: it was cut
    /// on its way.
    pub fn json<T: DeserializeOwned>(&mut self, limit: u64) -> Result<T, HttpError> {
        let bytes = self.bytes(limit)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            if error.is_eof() {
                return HttpError::new(HttpErrorKind::Transient, "the response ends early");
            }
            // Not the value that does not fit: it may be a token.
            let reason = format!("unexpected JSON at line {}, column {}", error.line(), error.column());
            HttpError::new(HttpErrorKind::Malformed, reason)
        })
    }

    /// The body as a stream. Its errors are described by [`describe_read_error`].
    pub fn into_reader(self) -> impl Read + use<> {
        self.inner.into_body().into_reader()
    }

    /// The server's explanation of an error, as far as it can be read. Authorization that it echoes is left out.
    pub fn error_message(&mut self) -> ErrorMessage {
        let is_web_page = self.is_web_page();
        let mut bytes = Vec::new();
        // A message that cannot be read is as good as none.
        let _ = self.inner.body_mut().as_reader().take(MAX_ERROR_BODY).read_to_end(&mut bytes);
        let (code, message) = match serde_json::from_slice::<ErrorBody>(&bytes) {
            Ok(body) => match body.error.or_else(|| body.errors.into_iter().next()) {
                Some(detail) => (detail.code, detail.message),
                None => (None, body.message),
            },
            Err(_) if is_web_page => (None, None),
            Err(_) => (None, Some(String::from_utf8_lossy(&bytes).into_owned())),
        };
        let shown = |text: String| {
            // Both the header and what follows its scheme.
            let credentials = self
                .authorization
                .iter()
                .filter_map(|header| header.expose().split_once(' '))
                .map(|(_, rest)| Secret::new(rest));
            let text = redact(&text, &credentials.chain(self.authorization.clone()).collect::<Vec<_>>());
            Some(text::truncate(text.trim(), MAX_MESSAGE)).filter(|text| !text.is_empty())
        };
        ErrorMessage { code: code.and_then(shown), message: message.and_then(shown) }
    }

    /// The response if its status is from 200 to 299; else an error with the server's message.
    pub fn error_for_status(self) -> Result<Self, HttpError> {
        if (200..300).contains(&self.status()) { Ok(self) } else { Err(self.into_status_error()) }
    }

    /// An error of this status, with the server's message.
    pub fn into_status_error(mut self) -> HttpError {
        let message = self.error_message().message;
        HttpError::status(self.status(), message.as_deref(), self.retry_after())
    }
}

/// Why reading a body ended early.
pub fn describe_read_error(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        Some(inner) => HttpError::from(inner).reason,
        None => error.to_string(),
    }
}
