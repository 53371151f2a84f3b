//! Signing in: from a challenge and a credential to the header that answers it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cudock_base::text::percent;
use cudock_base::{Secret, lock};
use cudock_http::url::{self, is_loopback};
use cudock_http::{
    Client, HttpError, HttpErrorKind, Method, Request, Response, basic_authorization, bearer_authorization,
};
use serde::Deserialize;

use crate::challenge::Challenge;
use crate::credentials::{Credential, Credentials, Lookup};
use crate::error::{Error, Resource};
use crate::mirrors::Source;

const MAX_TOKEN_RESPONSE: u64 = 1 << 20;
/// The lifetime of a token that does not say so, in seconds; the distribution specification's number.
const DEFAULT_LIFETIME: u64 = 60;

/// The header that answers a registry's challenge, and what must not be shown of it.
#[derive(Debug, Clone)]
pub(crate) struct Authorization {
    pub(crate) header: Option<Secret>,
    /// Whether there is a credential behind it, rather than an anonymous token.
    pub(crate) signed_in: bool,
    /// Why a configured credential could not be used.
    pub(crate) problem: Option<String>,
    /// Secrets to remove from a registry's messages.
    pub(crate) secrets: Vec<Secret>,
    /// The challenge that was answered, to answer it again when this has expired.
    challenge: Challenge,
    expires: Option<Instant>,
}

/// Authorizations by registry and repository, renewed when they expire or are refused.
pub(crate) struct Authorizations {
    credentials: Credentials,
    cache: Mutex<HashMap<(String, String), Authorization>>,
}

#[derive(Deserialize)]
struct TokenForm {
    token: Option<Secret>,
    access_token: Option<Secret>,
    expires_in: Option<u64>,
}

impl Authorizations {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials, cache: Mutex::default() }
    }

    /// The authorization of an earlier request, if it has not expired.
    pub(crate) fn cached(&self, source: &Source) -> Option<Authorization> {
        lock(&self.cache)
            .get(&key(source))
            .filter(|authorization| authorization.expires.is_none_or(|expires| Instant::now() < expires))
            .cloned()
    }

    /// The last challenge of the registry for this repository.
    pub(crate) fn known_challenge(&self, source: &Source) -> Option<Challenge> {
        lock(&self.cache).get(&key(source)).map(|authorization| authorization.challenge.clone())
    }

    /// Answers a challenge. Without a credential, Bearer gives an anonymous token, and Basic gives nothing.
    pub(crate) fn answer(
        &self,
        http: &Client,
        source: &Source,
        challenge: &Challenge,
        resource: &Resource,
    ) -> Result<Authorization, Error> {
        let Lookup { credential, problem } = self.credentials.find(&source.registry, &source.repository)?;
        let mut authorization = Authorization {
            header: None,
            signed_in: credential.is_some(),
            problem,
            secrets: credential.iter().flat_map(secrets_of).collect(),
            challenge: challenge.clone(),
            expires: None,
        };
        match challenge {
            Challenge::Basic => match &credential {
                Some(Credential::Password { user, password }) => {
                    authorization.header = Some(basic_authorization(user, password.expose()));
                }
                Some(Credential::IdentityToken(_)) => {
                    authorization.problem = Some(
                        "the credential is an identity token, but the registry requires a password"
                            .to_owned(),
                    );
                }
                None => {}
            },
            Challenge::Bearer { realm, service, scope } => {
                let default_scope = format!("repository:{}:pull", source.repository);
                let request = TokenRequest {
                    realm,
                    service: service.as_deref(),
                    scope: scope.as_deref().filter(|scope| !scope.is_empty()).unwrap_or(&default_scope),
                    from_loopback: is_loopback(&source.registry),
                };
                let (token, lifetime) = request.send(http, credential.as_ref(), &authorization, resource)?;
                authorization.header = Some(bearer_authorization(&token));
                authorization.secrets.push(token);
                authorization.expires = Some(Instant::now() + lifetime);
            }
        }
        lock(&self.cache).insert(key(source), authorization.clone());
        Ok(authorization)
    }
}

/// The key of the cache: an authorization is for one repository. If one for pulling does not
/// suffice, the registry sends another challenge.
fn key(source: &Source) -> (String, String) {
    (source.registry.clone(), source.repository.clone())
}

fn secrets_of(credential: &Credential) -> Vec<Secret> {
    match credential {
        Credential::Password { user, password } => {
            let header = basic_authorization(user, password.expose());
            vec![Secret::new(header.expose().trim_start_matches("Basic ")), password.clone()]
        }
        Credential::IdentityToken(token) => vec![token.clone()],
    }
}

/// The parameters of a request to a token service.
struct TokenRequest<'a> {
    realm: &'a str,
    service: Option<&'a str>,
    scope: &'a str,
    from_loopback: bool,
}

impl TokenRequest<'_> {
    fn send(
        &self,
        http: &Client,
        credential: Option<&Credential>,
        authorization: &Authorization,
        resource: &Resource,
    ) -> Result<(Secret, Duration), Error> {
        let failed = |error: HttpError| {
            let reason = format!("token service: {}", error.reason);
            Error::http(resource, HttpError { reason, ..error })
        };
        let realm = self.realm.parse().map_err(|_| malformed("the URL is invalid")).map_err(failed)?;
        url::check(&realm, self.from_loopback).map_err(failed)?;
        let request = match credential {
            Some(Credential::IdentityToken(token)) => Request::new(Method::POST, self.realm).form(&[
                ("grant_type", "refresh_token"),
                ("service", self.service.unwrap_or_default()),
                ("client_id", "cudock"),
                ("scope", self.scope),
                ("refresh_token", token.expose()),
            ]),
            Some(Credential::Password { user, password }) => {
                Request::get(self.url()).authorization(Some(basic_authorization(user, password.expose())))
            }
            None => Request::get(self.url()),
        };
        let response = http.send(&request).map_err(failed)?;
        // Some token services answer 400 to a refresh token that they no longer know.
        if matches!(response.status(), 400 | 401 | 403) {
            return Err(Error::Unauthorized {
                resource: Box::new(resource.clone()),
                signed_in: authorization.signed_in,
                problem: authorization.problem.clone(),
            });
        }
        read_token(response).map_err(failed)
    }

    fn url(&self) -> String {
        let separator = if self.realm.contains('?') { '&' } else { '?' };
        let service = self.service.map(|service| format!("service={}&", percent::encode(service)));
        // A challenge has several scopes in one text with spaces between them, a URL has them one by one.
        let scopes: Vec<_> =
            self.scope.split_whitespace().map(|scope| format!("scope={}", percent::encode(scope))).collect();
        format!("{}{separator}{}{}", self.realm, service.unwrap_or_default(), scopes.join("&"))
    }
}

fn read_token(mut response: Response) -> Result<(Secret, Duration), HttpError> {
    if response.status() != 200 {
        // Its message may echo what was sent.
        return Err(HttpError::status(response.status(), None, response.retry_after()));
    }
    let no_token = || malformed("the response has no token");
    let form: TokenForm =
        serde_json::from_slice(&response.bytes(MAX_TOKEN_RESPONSE)?).map_err(|_| no_token())?;
    let token = form.token.filter(|token| !token.is_empty()).or(form.access_token);
    let token = token
        .filter(|token| !token.is_empty() && token.expose().bytes().all(|byte| byte.is_ascii_graphic()))
        .ok_or_else(no_token)?;
    let lifetime = form.expires_in.unwrap_or(DEFAULT_LIFETIME).clamp(DEFAULT_LIFETIME, 24 * 3600);
    // A few seconds less: the token has to arrive, too.
    Ok((token, Duration::from_secs(lifetime - 5)))
}

fn malformed(reason: &str) -> HttpError {
    HttpError::new(HttpErrorKind::Malformed, reason)
}
