//! Signing in: which way is used, and the tokens that it gave.
//!
//! Each way is one form or one GET request, or a run of az. `docs/azure.md` lists them in the order in which they are tried.

mod azure_cli;
mod certificate;
mod clock;
mod device_code;
mod error;
mod managed_identity;
mod service_principal;
mod token;
mod token_endpoint;
mod workload_identity;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use cudock_base::{Environment, Secret, lock, text};

use self::azure_cli::AzureCli;
use self::certificate::ClientCertificate;
use self::device_code::DeviceCode;
use self::managed_identity::ManagedIdentity;
use self::service_principal::Application;
use self::token::AccessToken;
use self::workload_identity::TokenIssuer;
use crate::cloud::Audience;

pub(crate) use self::clock::ServerClock;
pub use self::device_code::Prompt;
pub use self::error::SignInError;
pub use self::token::Principal;
pub(crate) use self::token_endpoint::TokenRequest;

const METHOD: &str = "CUDOCK_AZURE_SIGN_IN";
const TENANT: &str = "AZURE_TENANT_ID";
const CLIENT: &str = "AZURE_CLIENT_ID";
const SECRET: &str = "AZURE_CLIENT_SECRET";
const CERTIFICATE: &str = "AZURE_CLIENT_CERTIFICATE_PATH";
const SEND_CHAIN: &str = "AZURE_CLIENT_SEND_CERTIFICATE_CHAIN";
const FEDERATED_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
const GITHUB_URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const GITHUB_TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";
const SUBSCRIPTION: &str = "AZURE_SUBSCRIPTION_ID";

/// A way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInMethod {
    AzureCli,
    ServicePrincipal,
    WorkloadIdentity,
    ManagedIdentity,
    DeviceCode,
}

impl SignInMethod {
    const ALL: [(&'static str, Self); 5] = [
        ("az", Self::AzureCli),
        ("service-principal", Self::ServicePrincipal),
        ("workload-identity", Self::WorkloadIdentity),
        ("managed-identity", Self::ManagedIdentity),
        ("device-code", Self::DeviceCode),
    ];

    /// What users call them.
    pub fn names() -> [&'static str; 5] {
        Self::ALL.map(|(name, _)| name)
    }
}

impl FromStr for SignInMethod {
    type Err = SignInError;

    fn from_str(name: &str) -> Result<Self, SignInError> {
        let method = Self::ALL.iter().find(|(known, _)| *known == name);
        let invalid = || SignInError::Invalid { name: "sign-in method", value: text::truncate(name, 40) };
        method.map(|(_, method)| *method).ok_or_else(invalid)
    }
}

/// What the user set. What is absent comes from environment variables.
#[derive(Clone, Default)]
pub struct SignInOptions {
    pub method: Option<SignInMethod>,
    pub tenant: Option<String>,
    pub client_id: Option<String>,
    pub subscription: Option<String>,
    /// Shows the user what to do for a device code; that needs one.
    pub prompt: Option<Prompt>,
}

/// Signs in when a token is needed, and keeps tokens.
#[derive(Debug)]
pub struct SignIn {
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

#[derive(Debug)]
enum Flow {
    AzureCli(AzureCli),
    Secret(Application, Secret),
    Certificate(Application, ClientCertificate),
    Federation(Application, TokenIssuer),
    ManagedIdentity(ManagedIdentity),
    DeviceCode(DeviceCode),
}

impl Flow {
    fn token(&self, request: &TokenRequest<'_>, audience: &Audience) -> Result<AccessToken, SignInError> {
        match self {
            Self::AzureCli(cli) => cli.token(audience, request.clock),
            Self::Secret(application, secret) => application.token_by_secret(request, audience, secret),
            Self::Certificate(application, certificate) => {
                application.token_by_certificate(request, audience, certificate)
            }
            Self::Federation(application, issuer) => issuer.token(application, request, audience),
            Self::ManagedIdentity(identity) => identity.token(request, audience),
            Self::DeviceCode(device) => device.token(request, audience),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::AzureCli(_) => "az",
            Self::Secret(..) => "service principal with a secret",
            Self::Certificate(..) => "service principal with a certificate",
            Self::Federation(..) => "workload identity",
            Self::ManagedIdentity(_) => "managed identity",
            Self::DeviceCode(_) => "device code",
        }
    }
}

impl SignIn {
    /// Decides by options and variables how to sign in. Nothing is read or sent yet.
    pub fn from_environment(environment: &Environment, options: &SignInOptions) -> Result<Self, SignInError> {
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
        let mut reason = SignInError::NotSignedIn;
        for (index, flow) in self.flows.iter().enumerate() {
            if chosen.is_some_and(|chosen| chosen != index) {
                continue;
            }
            match flow.token(request, audience) {
                Ok(token) => {
                    *chosen = Some(index);
                    return Ok(token);
                }
                Err(error) if self.flows.len() == 1 => return Err(error),
                // What is there and failed has a better explanation than what is not there.
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
    pub fn method(&self) -> &'static str {
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

/// Options with what variables add.
struct SignInSettings {
    method: Option<SignInMethod>,
    tenant: Option<String>,
    client_id: Option<String>,
    subscription: Option<String>,
    prompt: Option<Prompt>,
}

impl SignInSettings {
    fn new(environment: &Environment, options: &SignInOptions) -> Result<Self, SignInError> {
        let setting = |option: &Option<String>, variable: &str, name: &'static str| {
            let value = option.clone().or_else(|| text_variable(environment, variable));
            match value {
                Some(value) if !is_name(&value) => {
                    Err(SignInError::Invalid { name, value: text::truncate(&value, 60) })
                }
                value => Ok(value),
            }
        };
        let method = match options.method {
            Some(method) => Some(method),
            None => text_variable(environment, METHOD).map(|name| name.parse()).transpose()?,
        };
        Ok(Self {
            method,
            tenant: setting(&options.tenant, TENANT, "tenant")?,
            client_id: setting(&options.client_id, CLIENT, "client id")?,
            subscription: setting(&options.subscription, SUBSCRIPTION, "subscription")?,
            prompt: options.prompt.clone(),
        })
    }

    fn flows(&self, environment: &Environment) -> Result<Vec<Flow>, SignInError> {
        let client_id = self.client_id.as_deref();
        let managed = || ManagedIdentity::from_variables(environment, client_id);
        let azure_cli =
            || Flow::AzureCli(AzureCli::new(environment, self.tenant.clone(), self.subscription.clone()));
        let imds = |is_probe| Flow::ManagedIdentity(ManagedIdentity::imds(environment, client_id, is_probe));
        let flow = match self.method {
            Some(SignInMethod::AzureCli) => azure_cli(),
            Some(SignInMethod::ServicePrincipal) => self
                .service_principal(environment)?
                .ok_or(SignInError::Missing { method: "a service principal", variable: SECRET })?,
            Some(SignInMethod::WorkloadIdentity) => {
                self.federation(environment, true)?.ok_or(SignInError::Missing {
                    method: workload_identity::METHOD,
                    variable: FEDERATED_FILE,
                })?
            }
            Some(SignInMethod::ManagedIdentity) => {
                managed().map_or_else(|| imds(false), Flow::ManagedIdentity)
            }
            Some(SignInMethod::DeviceCode) => self.device_code()?,
            None => match self.service_principal(environment)?.or(self.federation(environment, false)?) {
                Some(flow) => flow,
                None => match managed() {
                    Some(identity) => Flow::ManagedIdentity(identity),
                    None => return Ok(vec![azure_cli(), imds(true)]),
                },
            },
        };
        Ok(vec![flow])
    }

    fn application(&self, method: &'static str) -> Result<Application, SignInError> {
        let part = |value: &Option<String>, variable: &'static str| {
            value.clone().ok_or(SignInError::Missing { method, variable })
        };
        Ok(Application { tenant: part(&self.tenant, TENANT)?, client_id: part(&self.client_id, CLIENT)? })
    }

    fn service_principal(&self, environment: &Environment) -> Result<Option<Flow>, SignInError> {
        if let Some(secret) = text_variable(environment, SECRET) {
            return Ok(Some(Flow::Secret(self.application("a client secret")?, Secret::new(secret))));
        }
        let Some(path) = environment.path(CERTIFICATE) else { return Ok(None) };
        let send_chain = text_variable(environment, SEND_CHAIN)
            .is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"));
        let application = self.application("a certificate")?;
        Ok(Some(Flow::Certificate(application, ClientCertificate { path, send_chain })))
    }

    /// `is_chosen`: whether the user wants it. GitHub offers its tokens to every job, also to those that use az.
    fn federation(&self, environment: &Environment, is_chosen: bool) -> Result<Option<Flow>, SignInError> {
        let issuer = match environment.path(FEDERATED_FILE) {
            Some(file) => TokenIssuer::File(file),
            None => {
                match (text_variable(environment, GITHUB_URL), text_variable(environment, GITHUB_TOKEN)) {
                    (Some(url), Some(token))
                        if is_chosen || (self.client_id.is_some() && self.tenant.is_some()) =>
                    {
                        TokenIssuer::GitHubActions { url, token: Secret::new(token) }
                    }
                    _ => return Ok(None),
                }
            }
        };
        Ok(Some(Flow::Federation(self.application(workload_identity::METHOD)?, issuer)))
    }

    fn device_code(&self) -> Result<Flow, SignInError> {
        let prompt = self.prompt.clone().ok_or(SignInError::NotSignedIn)?;
        let or = |value: &Option<String>, default: &str| value.clone().unwrap_or_else(|| default.to_owned());
        Ok(Flow::DeviceCode(DeviceCode {
            tenant: or(&self.tenant, device_code::DEFAULT_TENANT),
            client_id: or(&self.client_id, device_code::DEFAULT_CLIENT),
            prompt,
            refresh_token: Mutex::default(),
        }))
    }
}

fn text_variable(environment: &Environment, name: &str) -> Option<String> {
    environment.get(name).map(|value| value.to_string_lossy().into_owned())
}

/// Whether a text may be a tenant, client or subscription: an id or a name, and nothing that could be an option of az or
/// lead elsewhere in a URL.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn flows(
        variables: &[(&str, &str)],
        method: Option<SignInMethod>,
    ) -> Result<Vec<&'static str>, SignInError> {
        let environment = Environment::of("/", variables.iter().copied());
        let prompt: Prompt = Arc::new(|_| {});
        let options = SignInOptions { method, prompt: Some(prompt), ..SignInOptions::default() };
        let sign_in = SignIn::from_environment(&environment, &options)?;
        Ok(sign_in.flows.iter().map(Flow::name).collect())
    }

    const APPLICATION: [(&str, &str); 2] = [(TENANT, "t"), (CLIENT, "c")];

    #[test]
    fn variables_decide_in_a_fixed_order() {
        let secret: &[(&str, &str)] = &[(SECRET, "s")];
        let certificate: &[(&str, &str)] = &[(CERTIFICATE, "/c.pem")];
        let file: &[(&str, &str)] = &[(FEDERATED_FILE, "/token")];
        let github: &[(&str, &str)] = &[(GITHUB_URL, "https://github"), (GITHUB_TOKEN, "g")];
        let app_service: &[(&str, &str)] =
            &[("IDENTITY_ENDPOINT", "http://localhost"), ("IDENTITY_HEADER", "h")];
        let ml: &[(&str, &str)] = &[("MSI_ENDPOINT", "http://localhost"), ("MSI_SECRET", "s")];
        for (variables, expected) in [
            (
                vec![secret, certificate, file, github, app_service, ml],
                vec!["service principal with a secret"],
            ),
            (vec![certificate, file, github, app_service], vec!["service principal with a certificate"]),
            (vec![file, github, app_service], vec!["workload identity"]),
            (vec![github, ml], vec!["workload identity"]),
            (vec![app_service], vec!["managed identity"]),
            (vec![ml], vec!["managed identity"]),
            (vec![], vec!["az", "managed identity"]),
        ] {
            let all = [variables.concat(), APPLICATION.to_vec()].concat();
            assert_eq!(flows(&all, None).unwrap(), expected);
        }
        assert_eq!(flows(github, None).unwrap(), ["az", "managed identity"], "without an application");
    }

    #[test]
    fn a_chosen_method_goes_before_the_variables() {
        let all = [&APPLICATION[..], &[(SECRET, "s")]].concat();
        for (name, expected) in [
            ("az", "az"),
            ("service-principal", "service principal with a secret"),
            ("managed-identity", "managed identity"),
            ("device-code", "device code"),
        ] {
            assert_eq!(flows(&all, Some(name.parse().unwrap())).unwrap(), [expected]);
            assert_eq!(flows(&[all.clone(), vec![(METHOD, name)]].concat(), None).unwrap(), [expected]);
        }
    }

    #[test]
    fn what_is_missing_or_invalid_is_named() {
        for (variables, message) in [
            (vec![(SECRET, "s"), (CLIENT, "c")], "AZURE_TENANT_ID is not set"),
            (vec![(CERTIFICATE, "/c.pem"), (TENANT, "t")], "AZURE_CLIENT_ID is not set"),
            (vec![(FEDERATED_FILE, "/f")], "AZURE_TENANT_ID is not set"),
            (vec![(METHOD, "service-principal")], "AZURE_CLIENT_SECRET is not set"),
            (vec![(METHOD, "workload-identity")], "AZURE_FEDERATED_TOKEN_FILE is not set"),
            (vec![(METHOD, "magic")], "invalid sign-in method `magic`"),
            (vec![(TENANT, "--tenant")], "invalid tenant `--tenant`"),
            (vec![(TENANT, "a/b")], "invalid tenant `a/b`"),
            (vec![(SUBSCRIPTION, "a;b")], "invalid subscription `a;b`"),
        ] {
            let error = flows(&variables, None).unwrap_err();
            assert!(error.to_string().ends_with(message), "{error}");
        }
    }

    #[test]
    fn settings_do_not_print_secrets() {
        let swordfish = cudock_testkit::http::secret();
        for variable in [SECRET, GITHUB_TOKEN, "IDENTITY_HEADER", "MSI_SECRET"] {
            let variables = [
                &APPLICATION[..],
                &[
                    (variable, swordfish.as_str()),
                    (GITHUB_URL, "u"),
                    ("IDENTITY_ENDPOINT", "e"),
                    ("MSI_ENDPOINT", "e"),
                ],
            ];
            let environment = Environment::of("/", variables.concat());
            let sign_in = SignIn::from_environment(&environment, &SignInOptions::default()).unwrap();
            assert!(!format!("{sign_in:?}").contains(&swordfish), "{variable}");
        }
    }
}
