//! Why a request to Azure failed, and what to do about it.

mod body;
mod cause;
pub(crate) mod network;

use std::fmt;
use std::time::Duration;

use cudock_base::{ErrorKind, Report, Secret, Timestamp, text};
use cudock_http::{CertificateError, HttpError};
use serde_json::Value;

use self::body::explanation;
use self::network::network_hint;
use crate::auth::SignInError;
use crate::cloud::CloudError;

pub use self::body::QuotaShortage;
pub use self::cause::Cause;

/// Maximum length of a service's message, in characters.
const MAX_MESSAGE: usize = 500;
const MAX_CODE: usize = 100;

/// Why a request to Azure failed. No variant holds a secret or a signed URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AzureError {
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// The service refused the request, or failed.
    #[error(transparent)]
    Service(Box<ServiceError>),
    /// There was no usable response.
    #[error("{action}: {error}")]
    Http { action: String, error: HttpError },
    #[error("{action}: timed out after {} s", after.as_secs())]
    TimedOut { action: String, after: Duration },
    #[error("{action}: canceled")]
    Canceled { action: String },
    /// A request that cannot be sent to any host.
    #[error("{action}: invalid path, account or region")]
    InvalidCall { action: String },
    #[error("{action}: {reason}")]
    Paging { action: String, reason: &'static str },
    #[error("{}", describe_subscriptions(names))]
    Subscription {
        /// The subscriptions to choose from.
        names: Vec<String>,
    },
    #[error(transparent)]
    Cloud(#[from] CloudError),
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

fn describe_subscriptions(names: &[String]) -> String {
    match names {
        [] => "no subscription of this sign-in is enabled".to_owned(),
        names => format!("{} subscriptions to choose from", names.len()),
    }
}

/// An error from a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// The method and path of the request.
    pub action: String,
    /// Status of the response; an operation that failed is reported with 200.
    pub status: u16,
    /// The most specific one.
    pub code: Option<String>,
    pub message: Option<String>,
    /// The id for Azure's support.
    pub request_id: Option<String>,
    /// When it was sent, by the service's clock.
    pub date: Option<Timestamp>,
    pub retry_after: Option<Duration>,
    pub cause: Cause,
    pub quota: Option<QuotaShortage>,
}

impl ServiceError {
    /// Reads the body of an error, and removes these secrets, in case it echoes them.
    pub(crate) fn new<'a>(
        action: &str,
        status: u16,
        body: &Value,
        secrets: impl IntoIterator<Item = &'a Secret>,
    ) -> Self {
        let node = explanation(body).unwrap_or_default();
        let known = match node.cause() {
            Cause::Other => Cause::of_status(status),
            // A request that comes too early is refused, whatever the code.
            _ if status == 429 => Cause::Throttled,
            cause => cause,
        };
        let plain = || body.as_str().filter(|text| !text.trim_start().starts_with('<')).map(str::to_owned);
        let message = node.message.or_else(plain).filter(|text| !text.trim().is_empty());
        let message = message.map(|text| cudock_http::redact(&text, secrets));
        Self {
            action: action.to_owned(),
            status,
            code: node.code.map(|code| text::truncate(&code, MAX_CODE)),
            quota: message.as_deref().filter(|_| known.is_placement()).and_then(QuotaShortage::parse),
            message: message.map(|message| text::truncate(message.trim(), MAX_MESSAGE)),
            request_id: None,
            date: None,
            retry_after: None,
            cause: known,
        }
    }

    pub(crate) fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.iter().any(|known| code.eq_ignore_ascii_case(known)))
    }

    /// Whether the service itself reports that the resource at the path does not exist. The 404 of
    /// a proxy does not, nor does one for a wrong subscription: believing it would leave
    /// resources behind.
    fn is_not_found(&self) -> bool {
        const ABOUT_OTHERS: [&str; 5] = [
            "SubscriptionNotFound",
            "InvalidSubscriptionId",
            "InvalidResourceType",
            "InvalidResourceNamespace",
            "NoRegisteredProviderFound",
        ];
        matches!(self.status, 404 | 410)
            && (self.code.is_some() || self.request_id.is_some())
            && !self.has_code(&ABOUT_OTHERS)
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.action)?;
        match (&self.code, &self.message) {
            (Some(code), Some(message)) => write!(f, "{code}: {message}")?,
            (Some(text), None) | (None, Some(text)) => f.write_str(text)?,
            (None, None) => f.write_str(&HttpError::status(self.status, None, None).reason)?,
        }
        match &self.request_id {
            Some(id) => write!(f, " (request id {id})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ServiceError {}

impl AzureError {
    /// The error of the service, if it responded.
    pub fn service(&self) -> Option<&ServiceError> {
        match self {
            Self::Service(error) => Some(error),
            _ => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        self.service().map(|error| error.status)
    }

    pub fn cause(&self) -> Cause {
        match self {
            Self::Service(error) => error.cause,
            Self::SignIn(_) => Cause::Unauthorized,
            _ => Cause::Other,
        }
    }

    /// Whether the service reports that the requested resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.service().is_some_and(ServiceError::is_not_found)
    }

    pub(crate) fn has_code(&self, codes: &[&str]) -> bool {
        self.service().is_some_and(|error| error.has_code(codes))
    }
}

impl From<ServiceError> for AzureError {
    fn from(error: ServiceError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl Report for AzureError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::SignIn(error) => error.kind(),
            Self::Cloud(error) => error.kind(),
            Self::Certificates(error) => error.kind(),
            Self::InvalidCall { .. } | Self::Subscription { .. } => ErrorKind::Input,
            Self::Service(_)
            | Self::Http { .. }
            | Self::TimedOut { .. }
            | Self::Canceled { .. }
            | Self::Paging { .. } => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::SignIn(error) => error.hints(),
            Self::Cloud(error) => error.hints(),
            Self::Certificates(error) => error.hints(),
            Self::Service(error) => service_hints(error),
            Self::Http { error, .. } => network_hint(error).into_iter().collect(),
            Self::Subscription { names } => {
                let choice = names.iter().take(5).map(|name| format!("export AZURE_SUBSCRIPTION_ID={name}"));
                choice.chain(names.is_empty().then(|| "run `az login`".to_owned())).collect()
            }
            Self::TimedOut { .. }
            | Self::Canceled { .. }
            | Self::InvalidCall { .. }
            | Self::Paging { .. } => Vec::new(),
        }
    }
}

fn service_hints(error: &ServiceError) -> Vec<String> {
    let quota = error.quota.as_ref().map(|quota| {
        let QuotaShortage { region, limit, used, required } = quota;
        format!("{region} has a quota of {limit} cores, {used} in use; this needs {required} more")
    });
    let retry_after = match (error.cause, error.retry_after) {
        (Cause::Throttled, Some(wait)) => Some(format!("try again in {} s", wait.as_secs())),
        _ => error.cause.hint().map(str::to_owned),
    };
    quota.into_iter().chain(retry_after).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(status: u16, body: &Value) -> AzureError {
        ServiceError::new("GET /x", status, body, []).into()
    }

    #[test]
    fn a_404_counts_only_if_the_service_says_so() {
        let not_found = |code: &str| json!({"error": {"code": code, "message": "m"}});
        for (status, body, expected) in [
            (404, not_found("ResourceGroupNotFound"), true),
            (404, not_found("NotFound"), true),
            (404, json!({"code": "PoolNotFound", "message": {"value": "m"}}), true),
            (404, not_found("SubscriptionNotFound"), false),
            (404, not_found("InvalidResourceType"), false),
            (404, json!("<html>not found</html>"), false),
            (403, not_found("ResourceNotFound"), false),
        ] {
            assert_eq!(service(status, &body).is_not_found(), expected, "{status} {body}");
        }
        let bare = ServiceError::new("GET /x", 404, &Value::Null, []);
        let identified = ServiceError { request_id: Some("1".to_owned()), ..bare };
        assert!(AzureError::from(identified).is_not_found());
    }

    #[test]
    fn messages_name_the_request_the_code_and_the_id_and_hold_no_secret() {
        let secret = Secret::new("swordfish");
        let body = json!({"error": {"code": "A", "message": "swordfish\u{1b}[31m"}});
        let error = ServiceError::new("PUT /x", 400, &body, [&secret]);
        let error = ServiceError { request_id: Some("r".to_owned()), ..error };
        assert_eq!(error.to_string(), "PUT /x: A: … [31m (request id r)");
        assert_eq!(service(502, &json!("<html>")).to_string(), "GET /x: server returned 502 Bad Gateway");
        assert_eq!(service(500, &json!("try later")).to_string(), "GET /x: try later");
    }

    #[test]
    fn a_429_is_throttling_and_a_quota_tells_its_numbers() {
        let busy =
            json!({"code": "OperationNotAllowed", "message": "exceeding approved LowPriorityCores quota"});
        assert_eq!(service(429, &busy).cause(), Cause::Throttled);
        let message = "exceeding approved Total Regional Cores quota. Location: westus, Current Limit: 10, \
            Current Usage: 10, Additional Required: 2";
        let error = service(409, &json!({"error": {"code": "QuotaExceeded", "message": message}}));
        assert_eq!(error.cause(), Cause::RegionalQuota);
        assert_eq!(error.hints()[0], "westus has a quota of 10 cores, 10 in use; this needs 2 more");
    }
}
