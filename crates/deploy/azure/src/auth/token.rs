//! Access tokens, and whom they belong to.

use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cudock_base::{Secret, text};
use serde_json::Value;

/// Time before its expiry at which a token is replaced.
const REFRESH_BEFORE: Duration = Duration::from_secs(5 * 60);
/// Maximum lifetime of a token.
const MAX_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(Debug, Clone)]
pub(super) struct AccessToken {
    pub(super) secret: Secret,
    /// Expiry by this machine's monotonic clock, which is never adjusted.
    expires: Instant,
}

impl AccessToken {
    pub(super) fn new(secret: Secret, lifetime: Duration) -> Self {
        Self { secret, expires: Instant::now() + lifetime.min(MAX_LIFETIME) }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.expires > Instant::now() + REFRESH_BEFORE
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expires <= Instant::now()
    }
}

/// The signed-in identity according to the token. Nothing is verified: this is for messages and
/// tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// A user's name, such as `me@example.com`.
    pub user: Option<String>,
    /// The client id of an application or identity.
    pub application: Option<String>,
    pub object_id: Option<String>,
    pub tenant: Option<String>,
}

impl Principal {
    /// The claims of a token; all absent if they cannot be read.
    pub(super) fn of(token: &Secret) -> Self {
        let claims = token
            .expose()
            .split('.')
            .nth(1)
            .and_then(|claims| URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok())
            .and_then(|json| serde_json::from_slice::<Value>(&json).ok())
            .unwrap_or_default();
        let claim = |name: &str| Some(text::truncate(claims.get(name)?.as_str()?, 100));
        Self {
            user: claim("upn").or_else(|| claim("preferred_username")).or_else(|| claim("unique_name")),
            application: claim("appid").or_else(|| claim("azp")),
            object_id: claim("oid"),
            tenant: claim("tid"),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.user.as_deref().or(self.application.as_deref()).or(self.object_id.as_deref());
        f.write_str(name.unwrap_or("an unknown principal"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &str) -> Secret {
        Secret::new(format!("e30.{}.", URL_SAFE_NO_PAD.encode(claims)))
    }

    #[test]
    fn a_token_tells_whom_it_belongs_to() {
        let user = json!({"upn": "me@example.com", "appid": "az", "oid": "1", "tid": "2"}).to_string();
        let principal = Principal::of(&token(&user));
        assert_eq!(principal.to_string(), "me@example.com");
        assert_eq!((principal.object_id.as_deref(), principal.tenant.as_deref()), (Some("1"), Some("2")));
        assert_eq!(Principal::of(&token("{\"appid\":\"app\"}")).to_string(), "app");
    }

    #[test]
    fn an_opaque_token_belongs_to_nobody_known() {
        for opaque in ["", "opaque", "a.b.c", "e30.bm90IGpzb24.", "e30.W10."] {
            assert_eq!(Principal::of(&Secret::new(opaque)), Principal::default(), "{opaque}");
        }
        assert_eq!(Principal::of(&token("{\"oid\":7}")), Principal::default());
    }

    #[test]
    fn a_token_is_replaced_five_minutes_before_its_end() {
        for (lifetime, is_fresh, is_expired) in
            [(3600, true, false), (301, true, false), (300, false, false), (0, false, true)]
        {
            let token = AccessToken::new(Secret::new("x"), Duration::from_secs(lifetime));
            assert_eq!((token.is_fresh(), token.is_expired()), (is_fresh, is_expired), "{lifetime}");
        }
        assert!(AccessToken::new(Secret::new("x"), Duration::MAX).is_fresh());
    }
}
