//! Workload identity federation: a token of another issuer, such as Kubernetes or GitHub Actions, in place of a secret.

use std::path::PathBuf;

use cudock_base::text::percent;
use cudock_base::{Secret, files};
use cudock_http::{Request, bearer_authorization};

use super::SignInError;
use super::error::malformed;
use super::service_principal::Application;
use super::token::AccessToken;
use super::token_endpoint::TokenRequest;
use crate::cloud::Audience;

pub(super) const METHOD: &str = "workload identity federation";
/// Maximum size of a token.
const MAX_TOKEN: u64 = 64 << 10;

/// The source of the other issuer's token.
#[derive(Debug, Clone)]
pub(super) enum TokenIssuer {
    /// A file that is replaced while the process runs, so it is read anew for each token.
    File(PathBuf),
    /// The service of GitHub Actions, and the token for it.
    GitHubActions { url: String, token: Secret },
}

impl TokenIssuer {
    pub(super) fn token(
        &self,
        application: &Application,
        request: &TokenRequest<'_>,
        audience: &Audience,
    ) -> Result<AccessToken, SignInError> {
        let assertion = match self {
            Self::File(path) => {
                let unusable = |reason: String| SignInError::File { path: path.clone(), reason };
                let text = files::read_optional(path, MAX_TOKEN)
                    .map_err(|error| unusable(error.to_string()))?
                    .ok_or_else(|| unusable("no such file".to_owned()))?;
                Secret::new(text.trim())
            }
            Self::GitHubActions { url, token } => github_token(url, token, request)?,
        };
        application.token_by_assertion(METHOD, request, audience, &assertion)
    }
}

fn github_token(url: &str, token: &Secret, request: &TokenRequest<'_>) -> Result<Secret, SignInError> {
    let separator = if url.contains('?') { '&' } else { '?' };
    let audience = percent::encode(request.cloud.token_exchange());
    let wanted = Request::get(format!("{url}{separator}audience={audience}"))
        .accept("application/json")
        .authorization(Some(bearer_authorization(token)));
    let response = request.send(&wanted).map_err(|error| SignInError::Http { method: METHOD, error })?;
    if response.status != 200 {
        return Err(SignInError::refused(METHOD, response.status, &response.body, [token]));
    }
    let assertion =
        response.field("value").ok_or_else(|| malformed(METHOD, "GitHub's response has no token"))?;
    Ok(Secret::new(assertion))
}
