//! Requests to the service that issues tokens, and its responses.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cudock_base::{Secret, Timestamp};
use cudock_http::{Client, HttpError, HttpErrorKind, NoProgress, Request, RetryPolicy};
use serde_json::Value;

use super::SignInError;
use super::clock::ServerClock;
use super::error::malformed;
use super::token::AccessToken;
use crate::cloud::Cloud;

/// Maximum size of a token response.
const MAX_RESPONSE: u64 = 256 << 10;

/// State shared by all sign-in methods.
pub(crate) struct TokenRequest<'a> {
    pub(crate) http: &'a Client,
    pub(crate) cloud: &'a Cloud,
    pub(crate) retries: RetryPolicy,
    pub(crate) clock: &'a ServerClock,
    pub(crate) canceled: &'a AtomicBool,
}

/// A response, whatever its status.
pub(super) struct TokenResponse {
    pub(super) status: u16,
    pub(super) body: Value,
    date: Option<Timestamp>,
}

impl TokenRequest<'_> {
    /// The token endpoint of a tenant.
    pub(super) fn endpoint(&self, tenant: &str) -> String {
        format!("{}/{tenant}/oauth2/v2.0/token", self.cloud.authority())
    }

    /// Sends a request until the response is final.
    pub(super) fn send(&self, request: &Request) -> Result<TokenResponse, HttpError> {
        self.retries.run(&NoProgress, "sign-in", || send_once(self.http, self.clock, request, is_final))
    }

    /// Requests a token with the fields of a form. `secrets` are left out of errors.
    pub(super) fn post(
        &self,
        method: &'static str,
        tenant: &str,
        fields: &[(&str, &str)],
        secrets: &[&Secret],
    ) -> Result<TokenResponse, SignInError> {
        let request = Request::new(cudock_http::Method::POST, self.endpoint(tenant))
            .accept("application/json")
            .form(fields);
        let response = self.send(&request).map_err(|error| SignInError::Http { method, error })?;
        if response.status == 200 {
            return Ok(response);
        }
        Err(SignInError::refused(method, response.status, &response.body, secrets.iter().copied()))
    }
}

/// Sends a request once. A status that is not final by `is_final` becomes an error that may be retried.
pub(super) fn send_once(
    http: &Client,
    clock: &ServerClock,
    request: &Request,
    is_final: impl FnOnce(u16) -> bool,
) -> Result<TokenResponse, HttpError> {
    let mut response = http.send(request)?;
    let (status, date) = (response.status(), response.date());
    clock.observe(date);
    if !is_final(status) {
        // Without the server's message, which may echo a secret.
        let error = HttpError::status(status, None, response.retry_after());
        // The reason names the status; the kind is one that is retried.
        let kind = if error.is_transient() { error.kind } else { HttpErrorKind::Status(503) };
        return Err(HttpError { kind, ..error });
    }
    let bytes = response.bytes(MAX_RESPONSE)?;
    Ok(TokenResponse { status, body: serde_json::from_slice(&bytes).unwrap_or_default(), date })
}

fn is_final(status: u16) -> bool {
    !matches!(status, 408 | 429 | 500..)
}

impl TokenResponse {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.body.get(name)?.as_str()
    }

    /// The token in a successful response. Its expiry is relative to the response (`expires_in`),
    /// or by the issuer's clock (`expires_on`), which the response's date shows; both are numbers
    /// or text.
    pub(super) fn token(
        &self,
        method: &'static str,
        clock: &ServerClock,
    ) -> Result<AccessToken, SignInError> {
        let token = self.field("access_token").filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| malformed(method, "the response has no access_token"))?;
        let lifetime = match (self.seconds("expires_in"), self.seconds("expires_on")) {
            (Some(seconds), _) => Duration::from_secs(seconds),
            (None, Some(end)) => until(end, self.date.unwrap_or_else(|| clock.now())),
            (None, None) => {
                return Err(malformed(method, "the response does not contain the expiry of the token"));
            }
        };
        Ok(AccessToken::new(Secret::new(token), lifetime))
    }

    fn seconds(&self, name: &str) -> Option<u64> {
        let value = self.body.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    }
}

/// The time from `now` until an epoch in seconds.
pub(super) fn until(epoch: u64, now: Timestamp) -> Duration {
    Duration::from_secs(epoch).saturating_sub(Duration::from_millis(now.millis().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_s_end_is_read_in_every_form() {
        let date = Timestamp::parse("2040-01-01T00:00:00Z");
        let epoch = date.unwrap().millis().unwrap() / 1000;
        for (body, is_fresh) in [
            (json!({"expires_in": 3599}), Some(true)),
            (json!({"expires_in": "3599", "expires_on": "0"}), Some(true)),
            (json!({"expires_on": (epoch + 3600).to_string()}), Some(true)),
            (json!({"expires_on": epoch + 60}), Some(false)),
            (json!({"expires_on": epoch - 60}), Some(false)),
            (json!({"expires_on": "soon"}), None),
            (json!({"expires_in": -1}), None),
        ] {
            let mut body = body;
            body["access_token"] = json!("t");
            let response = TokenResponse { status: 200, body, date };
            let token = response.token("a test", &ServerClock::default());
            assert_eq!(token.ok().map(|token| token.is_fresh()), is_fresh, "{}", response.body);
        }
        for body in
            [json!({"expires_in": 1}), json!({"access_token": 1}), json!([]), json!({"access_token": ""})]
        {
            let response = TokenResponse { status: 200, body, date: None };
            assert!(response.token("a test", &ServerClock::default()).is_err());
        }
    }
}
