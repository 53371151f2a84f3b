//! Sign-in by a code that the user types into a browser, on this machine or another.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudock_base::{Secret, lock};
use cudock_http::{Method, Request, sleep_unless};

use super::SignInError;
use super::error::malformed;
use super::token::AccessToken;
use super::token_endpoint::{TokenRequest, TokenResponse};
use crate::cloud::Audience;

const METHOD: &str = "a device code";
/// The Azure CLI's own, a public client that every tenant knows.
pub(super) const DEFAULT_CLIENT: &str = "04b07795-8ddb-461a-bbee-02f9e1bf7b46";
/// Any tenant with work or school accounts.
pub(super) const DEFAULT_TENANT: &str = "organizations";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// RFC 8628, sections 3.2 and 3.5.
const DEFAULT_INTERVAL: u64 = 5;
const SLOW_DOWN: Duration = Duration::from_secs(5);

/// Shows the user what to do.
pub type Prompt = Arc<dyn Fn(&str) + Send + Sync>;

pub(super) struct DeviceCode {
    pub(super) tenant: String,
    pub(super) client_id: String,
    pub(super) prompt: Prompt,
    /// Replaced by each use. It is not stored: az does that better.
    pub(super) refresh_token: Mutex<Option<Secret>>,
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCode").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

/// The next action after a refusal while the user signs in.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Again(Duration),
    GiveUp,
}

fn after_refusal(error: Option<&str>, interval: Duration) -> Next {
    match error {
        Some("authorization_pending") => Next::Again(interval),
        Some("slow_down") => Next::Again(interval + SLOW_DOWN),
        _ => Next::GiveUp,
    }
}

impl DeviceCode {
    pub(super) fn token(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
    ) -> Result<AccessToken, SignInError> {
        let scope = format!("{} offline_access openid profile", audience.scope());
        let mut refresh_token = lock(&self.refresh_token);
        let refreshed = refresh_token.as_ref().map(|refresh| self.refresh(request, &scope, refresh));
        let response = match refreshed {
            Some(Ok(response)) => response,
            // A network that fails now would fail again.
            Some(Err(error)) if !matches!(error, SignInError::Refused { .. }) => return Err(error),
            _ => self.ask_user(request, &scope)?,
        };
        if let Some(next) = response.field("refresh_token") {
            *refresh_token = Some(Secret::new(next));
        }
        response.token(METHOD, request.clock)
    }

    fn refresh(
        &self,
        request: &TokenRequest<'_>,
        scope: &str,
        refresh_token: &Secret,
    ) -> Result<TokenResponse, SignInError> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", self.client_id.as_str()),
            ("refresh_token", refresh_token.expose().as_str()),
            ("scope", scope),
        ];
        request.post(METHOD, &self.tenant, &fields, &[refresh_token])
    }

    fn ask_user(&self, request: &TokenRequest<'_>, scope: &str) -> Result<TokenResponse, SignInError> {
        let http = |error| SignInError::Http { method: METHOD, error };
        let url = format!("{}/{}/oauth2/v2.0/devicecode", request.cloud.authority(), self.tenant);
        let fields = [("client_id", self.client_id.as_str()), ("scope", scope)];
        let begun = request.send(&Request::new(Method::POST, url).form(&fields)).map_err(http)?;
        if begun.status != 200 {
            return Err(SignInError::refused(METHOD, begun.status, &begun.body, []));
        }
        let (Some(code), Some(message)) = (begun.field("device_code"), begun.field("message")) else {
            return Err(malformed(METHOD, "the response has no device_code"));
        };
        let code: Secret = Secret::new(code);
        let number =
            |name: &str, default| begun.body.get(name).and_then(serde_json::Value::as_u64).unwrap_or(default);
        let deadline = Instant::now() + Duration::from_secs(number("expires_in", 900).min(3600));
        let mut interval = Duration::from_secs(number("interval", DEFAULT_INTERVAL).min(60));
        (self.prompt)(&cudock_base::text::truncate(message, 500));
        let fields = [
            ("grant_type", GRANT),
            ("client_id", self.client_id.as_str()),
            ("device_code", code.expose().as_str()),
        ];
        let poll = Request::new(Method::POST, request.endpoint(&self.tenant)).form(&fields);
        loop {
            if !sleep_unless(request.canceled, interval) {
                return Err(SignInError::Canceled);
            }
            let response = request.send(&poll).map_err(http)?;
            if response.status == 200 {
                return Ok(response);
            }
            match after_refusal(response.field("error"), interval) {
                Next::Again(next) if Instant::now() < deadline => interval = next,
                _ => return Err(SignInError::refused(METHOD, response.status, &response.body, [&code])),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pending_sign_in_is_polled_again() {
        let interval = Duration::from_secs(5);
        for (error, next) in [
            (Some("authorization_pending"), Next::Again(interval)),
            (Some("slow_down"), Next::Again(Duration::from_secs(10))),
            (Some("authorization_declined"), Next::GiveUp),
            (Some("expired_token"), Next::GiveUp),
            (Some("bad_verification_code"), Next::GiveUp),
            (None, Next::GiveUp),
        ] {
            assert_eq!(after_refusal(error, interval), next, "{error:?}");
        }
    }
}
