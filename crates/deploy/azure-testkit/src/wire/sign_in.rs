//! Tokens: their owner, API and expiry.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::cloud::Cloud;
use crate::state::identity::{CLIENT_ID, TENANT, Token};
use crate::time::utc;
use crate::wire::answer::Answer;
use crate::wire::route::RUN_HISTORY;

impl Cloud {
    /// `POST /{tenant}/oauth2/v2.0/token` with the fields of its form.
    pub(crate) fn sign_in(&mut self, tenant: &str, fields: &[(String, String)]) -> Answer {
        let field = |name: &str| {
            fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str())
        };
        let refuse = |error: &str, code: u64, text: &str| {
            let body = json!({
                "error": error, "error_description": format!("AADSTS{code}: {text}"), "error_codes": [code],
                "timestamp": utc(self.now), "trace_id": "", "correlation_id": "",
            });
            Answer::json(if error == "invalid_client" { 401 } else { 400 }, body)
        };
        if tenant != TENANT {
            return refuse("invalid_request", 90_002, "Tenant not found.");
        }
        if field("grant_type") != "client_credentials" {
            return refuse("unsupported_grant_type", 70_003, "The grant type is not supported.");
        }
        if field("client_id") != CLIENT_ID || field("client_secret") != self.client_secret {
            return refuse("invalid_client", 7_000_215, "Invalid client secret provided.");
        }
        let Some(audience) = field("scope").strip_suffix("/.default").map(str::to_owned) else {
            return refuse("invalid_scope", 1_002_012, "The scope is not valid: it must end in /.default.");
        };
        let token = self.issue_token(&audience);
        let lifetime = self.settings.token_lifetime;
        Answer::json(
            200,
            json!({"token_type": "Bearer", "expires_in": lifetime, "ext_expires_in": lifetime, "access_token": token}),
        )
    }

    pub(crate) fn issue_token(&mut self, audience: &str) -> String {
        let expires = self.now + self.settings.token_lifetime;
        let claims =
            json!({"aud": audience, "appid": CLIENT_ID, "oid": CLIENT_ID, "tid": TENANT, "exp": expires});
        let part = |text: String| URL_SAFE_NO_PAD.encode(text);
        let signature = format!("{:016x}{:016x}", self.random.next(), self.random.next());
        let header = part(json!({"alg": "none", "typ": "JWT"}).to_string());
        let token = format!("{header}.{}.{}", part(claims.to_string()), part(signature));
        self.tokens.insert(token.clone(), Token { audience: audience.to_owned(), expires });
        token
    }

    /// No token that was issued so far is valid any longer.
    pub(crate) fn expire_tokens(&mut self) {
        self.tokens.clear();
    }

    /// 401 unless the header has a token for this API.
    pub(crate) fn refuse_token(&self, authorization: Option<&str>, path: &str) -> Option<Answer> {
        let refuse = |code: &str, message: &str| {
            let challenge =
                format!("Bearer authorization_uri=\"{}/{TENANT}\", error=\"invalid_token\"", self.base);
            Some(Answer::error(401, code, message).with("WWW-Authenticate", challenge))
        };
        let Some(token) = authorization.and_then(|value| value.strip_prefix("Bearer ")) else {
            return refuse(
                "AuthenticationFailed",
                "Authentication failed. The 'Authorization' header is missing.",
            );
        };
        let Some(token) = self.tokens.get(token).filter(|token| token.expires > self.now) else {
            return refuse("ExpiredAuthenticationToken", "The access token has expired.");
        };
        let is_resource_manager = path.starts_with("/subscriptions") || path.starts_with("/providers");
        let is_right = if path.ends_with("/logstream") {
            token.audience == "logs"
        } else if is_resource_manager {
            token.audience.contains("management")
        } else if path.starts_with(RUN_HISTORY) {
            token.audience.contains("ml.azure.com") || token.audience.contains("management")
        } else {
            token.audience.contains("batch")
        };
        if is_right {
            return None;
        }
        refuse(
            "InvalidAuthenticationTokenAudience",
            "The access token has been obtained for another audience.",
        )
    }
}
