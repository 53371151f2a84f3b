//! Which way to sign in is used: options and environment variables, in a fixed order.

use std::str::FromStr;
use std::sync::Mutex;

use cudock_base::{Environment, Secret, text};

use super::azure_cli::AzureCli;
use super::certificate::ClientCertificate;
use super::device_code::{self, DeviceCode, Prompt};
use super::error::SignInError;
use super::flow::Flow;
use super::managed_identity::ManagedIdentity;
use super::method::SignInMethod;
use super::service_principal::Application;
use super::workload_identity::{self, TokenIssuer};

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

impl FromStr for SignInMethod {
    type Err = SignInError;

    fn from_str(name: &str) -> Result<Self, SignInError> {
        let method = Self::ALL.iter().find(|(known, _)| *known == name);
        let invalid = || SignInError::Invalid { name: "sign-in method", value: text::truncate(name, 40) };
        method.map(|(_, method)| *method).ok_or_else(invalid)
    }
}

/// The user's settings. Absent ones come from environment variables.
#[derive(Clone, Default)]
pub struct SignInOptions {
    pub method: Option<SignInMethod>,
    pub tenant: Option<String>,
    pub client_id: Option<String>,
    pub subscription: Option<String>,
    /// Shows the user what to do for a device code; that needs one.
    pub prompt: Option<Prompt>,
}

/// Options with what variables add.
pub(super) struct SignInSettings {
    method: Option<SignInMethod>,
    tenant: Option<String>,
    client_id: Option<String>,
    pub(super) subscription: Option<String>,
    prompt: Option<Prompt>,
}

impl SignInSettings {
    pub(super) fn new(environment: &Environment, options: &SignInOptions) -> Result<Self, SignInError> {
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

    pub(super) fn flows(&self, environment: &Environment) -> Result<Vec<Flow>, SignInError> {
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
    use crate::auth::SignIn;

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
