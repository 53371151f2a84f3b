//! Signing in: which way is used, and the tokens that it gave.
//!
//! Each way is one form or one GET request, or a run of az. `docs/azure.md` lists them in the order in which they are tried.

mod azure_cli;
mod certificate;
mod clock;
mod device_code;
mod error;
mod flow;
mod managed_identity;
mod method;
mod service_principal;
mod settings;
mod token;
mod token_endpoint;
mod workload_identity;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use cudock_base::{Environment, Secret, lock};

use self::flow::Flow;
use self::settings::SignInSettings;
use self::token::AccessToken;
use crate::cloud::Audience;

pub(crate) use self::clock::ServerClock;
pub use self::device_code::Prompt;
pub use self::error::SignInError;
pub use self::method::SignInMethod;
pub use self::settings::SignInOptions;
pub use self::token::Principal;
pub(crate) use self::token_endpoint::TokenRequest;

/// Signs in when a token is needed, and keeps tokens.
#[derive(Debug)]
pub(crate) struct SignIn {
    /// Tried in this order.
    flows: Vec<Flow>,
    subscription: Option<String>,
    cache: Mutex<TokenCache>,
}

#[derive(Default)]
struct TokenCache {
    tokens: BTreeMap<Audience, AccessToken>,
    /// The flow that worked. The others are not tried any more.
    chosen: Option<usize>,
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tokens.keys()).finish()
    }
}

impl SignIn {
    /// Decides by options and variables how to sign in. Nothing is read or sent yet.
    pub(crate) fn from_environment(
        environment: &Environment,
        options: &SignInOptions,
    ) -> Result<Self, SignInError> {
        let settings = SignInSettings::new(environment, options)?;
        let flows = settings.flows(environment)?;
        Ok(Self { flows, subscription: settings.subscription, cache: Mutex::default() })
    }

    /// A token for an audience: one that is kept, or a new one.
    pub(crate) fn token(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
    ) -> Result<Secret, SignInError> {
        let mut cache = lock(&self.cache);
        let held = cache.tokens.get(audience).cloned();
        if let Some(token) = held.as_ref().filter(|token| token.is_fresh()) {
            return Ok(token.secret.clone());
        }
        match self.acquire(&mut cache.chosen, request, audience) {
            Ok(token) => {
                let secret = token.secret.clone();
                cache.tokens.insert(audience.clone(), token);
                Ok(secret)
            }
            Err(error) => match held {
                Some(token) if error.is_temporary() && !token.is_expired() => Ok(token.secret),
                _ => Err(error),
            },
        }
    }

    fn acquire(
        &self,
        chosen: &mut Option<usize>,
        request: &TokenRequest<'_>,
        audience: &Audience,
    ) -> Result<AccessToken, SignInError> {
        if let Some(flow) = chosen.and_then(|index| self.flows.get(index)) {
            return flow.token(request, audience, true);
        }
        let mut reason = SignInError::NotSignedIn;
        for (index, flow) in self.flows.iter().enumerate() {
            match flow.token(request, audience, false) {
                Ok(token) => {
                    *chosen = Some(index);
                    return Ok(token);
                }
                Err(error) if self.flows.len() == 1 => return Err(error),
                // A source that exists and failed explains more than one that does not exist.
                Err(SignInError::NoManagedIdentity) => {}
                Err(error) if reason == SignInError::NotSignedIn => reason = error,
                Err(_) => {}
            }
        }
        Err(reason)
    }

    /// Forgets a token that a service refused.
    pub(crate) fn forget(&self, audience: &Audience, token: &Secret) {
        let mut cache = lock(&self.cache);
        if cache.tokens.get(audience).is_some_and(|held| held.secret == *token) {
            cache.tokens.remove(audience);
        }
    }

    /// The way that was used; before the first token, the first that is tried.
    pub(crate) fn method(&self) -> &'static str {
        let chosen = lock(&self.cache).chosen.unwrap_or_default();
        self.flows.get(chosen).map_or("none", Flow::name)
    }

    pub(crate) fn principal(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
    ) -> Result<Principal, SignInError> {
        self.token(request, audience).map(|token| Principal::of(&token))
    }

    /// The subscription that options or variables name.
    pub(crate) fn configured_subscription(&self) -> Option<&str> {
        self.subscription.as_deref()
    }

    /// The subscription that az has chosen, if its tokens are used.
    pub(crate) fn cli_subscription(&self) -> Option<Result<String, SignInError>> {
        match self.flows.get(lock(&self.cache).chosen?)? {
            Flow::AzureCli(cli) => Some(cli.default_subscription()),
            _ => None,
        }
    }
}
