//! Signing in: from a challenge and a credential to the header that answers it.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use ureq::Body;
use ureq::http::{Response, Uri};

use crate::challenge::Challenge;
use crate::credentials::{Credential, Credentials, Found};
use crate::error::{Asked, RegistryError};
use crate::http::{Get, Http, Trouble, header, may_be_asked};
use crate::mirrors::Place;
use crate::reference::is_loopback;
use crate::retry::{Again, Failure, retry_after};
use crate::secret::Secret;
use crate::text::percent_encoded;

const LARGEST_TOKEN_ANSWER: u64 = 1 << 20;
/// How long a token lives that does not say so; the distribution specification's number.
const SHORTEST_LIFE: u64 = 60;

/// The header that answers a registry's challenge, and what must not be shown of it.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    pub(crate) header: Option<Secret>,
    /// Whether a sign-in stands behind it, rather than nobody.
    pub(crate) signed_in: bool,
    /// Why a configured sign-in could not be had.
    pub(crate) trouble: Option<String>,
    secrets: Vec<Secret>,
    until: Option<Instant>,
}

impl Pass {
    /// A registry's words without our secrets, should it have echoed them.
    pub(crate) fn redacted(&self, said: &str) -> String {
        self.secrets
            .iter()
            .filter(|secret| !secret.is_empty())
            .fold(said.to_owned(), |said, secret| said.replace(secret.expose(), "…"))
    }
}

/// Passes by registry and repository, renewed when they run out or are refused.
pub(crate) struct Passes {
    credentials: Credentials,
    held: Mutex<HashMap<(String, String), Pass>>,
}

#[derive(Deserialize)]
struct TokenForm {
    token: Option<Secret>,
    access_token: Option<Secret>,
    expires_in: Option<u64>,
}

impl Passes {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials, held: Mutex::default() }
    }

    /// The pass of an earlier request, if it still holds.
    pub(crate) fn held(&self, place: &Place) -> Option<Pass> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(&key(place)).filter(|pass| pass.until.is_none_or(|until| Instant::now() < until)).cloned()
    }

    /// Answers a challenge. Without a credential, Bearer gives a token for nobody, and Basic gives nothing.
    pub(crate) fn answer(
        &self,
        http: &Http,
        place: &Place,
        challenge: &Challenge,
        asked: &Asked,
    ) -> Result<Pass, Failure> {
        let Found { credential, trouble } = self.credentials.find(&place.registry, &place.repository)?;
        let mut pass = Pass {
            header: None,
            signed_in: credential.is_some(),
            trouble,
            secrets: credential.iter().flat_map(secrets_of).collect(),
            until: None,
        };
        match challenge {
            Challenge::Basic => match &credential {
                Some(Credential::Password { user, password }) => pass.header = Some(basic(user, password)),
                Some(Credential::IdentityToken(_)) => {
                    pass.trouble = Some(
                        "the sign-in is an identity token, and the registry wants a password".to_owned(),
                    );
                }
                None => {}
            },
            Challenge::Bearer { realm, service, scope } => {
                let by_default = format!("repository:{}:pull", place.repository);
                let wish = Wish {
                    realm,
                    service: service.as_deref(),
                    scope: scope.as_deref().filter(|scope| !scope.is_empty()).unwrap_or(&by_default),
                    at_home: is_loopback(&place.registry),
                };
                let (token, life) = wish.fetch(http, credential.as_ref(), &pass, asked)?;
                pass.header = Some(Secret::new(format!("Bearer {}", token.expose())));
                pass.secrets.push(token);
                pass.until = Some(Instant::now() + life);
            }
        }
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(key(place), pass.clone());
        Ok(pass)
    }
}

/// A pass is for pulling from one repository, whatever scope a challenge spells it with.
fn key(place: &Place) -> (String, String) {
    (place.registry.clone(), place.repository.clone())
}

fn basic(user: &str, password: &Secret) -> Secret {
    Secret::new(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose()))))
}

fn secrets_of(credential: &Credential) -> Vec<Secret> {
    match credential {
        Credential::Password { user, password } => {
            let encoded = basic(user, password).expose().trim_start_matches("Basic ").to_owned();
            vec![Secret::new(encoded), password.clone()]
        }
        Credential::IdentityToken(token) => vec![token.clone()],
    }
}

/// What a token service is asked for.
struct Wish<'a> {
    realm: &'a str,
    service: Option<&'a str>,
    scope: &'a str,
    at_home: bool,
}

impl Wish<'_> {
    fn fetch(
        &self,
        http: &Http,
        credential: Option<&Credential>,
        pass: &Pass,
        asked: &Asked,
    ) -> Result<(Secret, Duration), Failure> {
        let realm: Uri =
            self.realm.parse().map_err(|_| protocol(asked, "its token service has no address"))?;
        may_be_asked(&realm, self.at_home).map_err(|trouble| failure(trouble, asked))?;
        let answer = match credential {
            Some(Credential::IdentityToken(token)) => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("service", self.service.unwrap_or_default()),
                    ("client_id", "cudock"),
                    ("scope", self.scope),
                    ("refresh_token", token.expose()),
                ];
                http.post_form(self.realm, &form, self.at_home)
            }
            Some(Credential::Password { user, password }) => http
                .get(&self.url(), &Get { authorization: Some(&basic(user, password)), ..Get::default() })
                .map(|answer| answer.response),
            None => http.get(&self.url(), &Get::default()).map(|answer| answer.response),
        };
        read_token(answer.map_err(|trouble| failure(trouble, asked))?, pass, asked)
    }

    fn url(&self) -> String {
        let joint = if self.realm.contains('?') { '&' } else { '?' };
        let service = self.service.map(|service| format!("service={}&", percent_encoded(service)));
        // Several scopes stand in one challenge with spaces between them, and in a URL one by one.
        let scopes: Vec<_> =
            self.scope.split_whitespace().map(|scope| format!("scope={}", percent_encoded(scope))).collect();
        format!("{}{joint}{}{}", self.realm, service.unwrap_or_default(), scopes.join("&"))
    }
}

fn read_token(mut answer: Response<Body>, pass: &Pass, asked: &Asked) -> Result<(Secret, Duration), Failure> {
    let asked_box = || Box::new(asked.clone());
    match answer.status().as_u16() {
        200 => {}
        // Some token services answer 400 to a refresh token that they no longer know.
        400 | 401 | 403 => {
            let (signed_in, trouble) = (pass.signed_in, pass.trouble.clone());
            return Err(RegistryError::Unauthorized { asked: asked_box(), signed_in, trouble }.into());
        }
        429 => {
            let after = retry_after(header(&answer, "retry-after"));
            let error = RegistryError::TooManyRequests { asked: asked_box(), retry_after: after };
            return Err(Failure { error, again: Again::After(after) });
        }
        status => {
            let said = Some("from its token service".to_owned());
            let error = RegistryError::Status { asked: asked_box(), status, said };
            return Err(Failure {
                error,
                again: if status >= 500 { Again::After(None) } else { Again::Never },
            });
        }
    }
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().take(LARGEST_TOKEN_ANSWER).read_to_end(&mut bytes).map_err(|error| {
        failure(Trouble::Network(format!("its token service: {}", crate::http::broken(&error))), asked)
    })?;
    let form: TokenForm = serde_json::from_slice(&bytes)
        .map_err(|_| protocol(asked, "its token service does not answer with a token"))?;
    let token = form.token.filter(|token| !token.is_empty()).or(form.access_token);
    let token = token
        .filter(|token| !token.is_empty() && token.expose().bytes().all(|b| b.is_ascii_graphic()))
        .ok_or_else(|| protocol(asked, "its token service does not answer with a token"))?;
    let life = form.expires_in.unwrap_or(SHORTEST_LIFE).clamp(SHORTEST_LIFE, 24 * 3600);
    // A few seconds less: the token has to arrive, too.
    Ok((token, Duration::from_secs(life - 5)))
}

fn protocol(asked: &Asked, reason: &str) -> Failure {
    RegistryError::Protocol { asked: Box::new(asked.clone()), reason: reason.to_owned() }.into()
}

/// A request that got no answer, as an error about what was asked.
pub fn failure(trouble: Trouble, asked: &Asked) -> Failure {
    let asked = Box::new(asked.clone());
    match trouble {
        Trouble::Network(reason) => {
            Failure { error: RegistryError::Unreachable { asked, reason }, again: Again::After(None) }
        }
        Trouble::Final(reason) => RegistryError::Unreachable { asked, reason }.into(),
        Trouble::Refused(reason) => RegistryError::Protocol { asked, reason }.into(),
    }
}
