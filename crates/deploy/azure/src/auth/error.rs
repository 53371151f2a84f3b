//! Errors of signing in.

use std::path::PathBuf;

use cudock_base::{ErrorKind, Report, text};
use cudock_http::{HttpError, HttpErrorKind};
use serde_json::Value;

use super::method::SignInMethod;
use crate::error::network::network_hint;

/// The name of this way in errors, which has its own hint.
pub(super) const MANAGED_IDENTITY: &str = "a managed identity";
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 300;

/// Why signing in gave no token. No variant holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignInError {
    /// No way to sign in is configured, and none was found.
    #[error("not signed in to Azure")]
    NotSignedIn,
    /// The service that issues tokens refused.
    #[error("cannot sign in to Azure with {method}: {message}")]
    Refused {
        method: &'static str,
        /// The number after `AADSTS`.
        number: Option<u32>,
        message: String,
    },
    #[error("cannot sign in to Azure with {method}: {error}")]
    Http { method: &'static str, error: HttpError },
    /// A response without a token, or a program's output that is none.
    #[error("cannot sign in to Azure with {method}: {reason}")]
    Malformed { method: &'static str, reason: String },
    /// This machine has no metadata service.
    #[error("no managed identity: this machine has no Azure metadata service")]
    NoManagedIdentity,
    #[error("the Azure CLI failed: {message}")]
    AzureCli { number: Option<u32>, message: String },
    /// A setting that the way to sign in needs.
    #[error("cannot sign in to Azure with {method}: {variable} is not set")]
    Missing { method: &'static str, variable: &'static str },
    #[error("invalid {name} `{value}`")]
    Invalid { name: &'static str, value: String },
    #[error("cannot read {}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("cannot sign in with the certificate in {}: {reason}", path.display())]
    Certificate { path: PathBuf, reason: &'static str },
    #[error("the sign-in was canceled")]
    Canceled,
}

impl SignInError {
    /// The refusal of a token endpoint or metadata service. `secrets` are left out of its message.
    pub(super) fn refused<'a>(
        method: &'static str,
        status: u16,
        body: &Value,
        secrets: impl IntoIterator<Item = &'a cudock_base::Secret>,
    ) -> Self {
        let field = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let described = field("error_description").or_else(|| field("message"));
        let message = described.map(first_line).or_else(|| field("error").map(str::to_owned));
        let message = message.unwrap_or_else(|| format!("server returned {status}"));
        let listed = body.get("error_codes").and_then(|codes| codes.get(0)?.as_u64());
        let number = listed.and_then(|code| u32::try_from(code).ok()).or_else(|| aadsts_number(&message));
        let message = text::truncate(&cudock_http::redact(&message, secrets), MAX_MESSAGE);
        Self::Refused { method, number, message }
    }

    /// The error in az's standard error.
    pub(super) fn azure_cli(stderr: &str) -> Self {
        let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.clone().find(|line| line.starts_with("ERROR")).or_else(|| lines.next());
        let line = line.unwrap_or("no message").trim_start_matches("ERROR:").trim();
        Self::AzureCli {
            number: aadsts_number(line),
            message: text::truncate(&first_line(line), MAX_MESSAGE),
        }
    }

    /// The number after `AADSTS`, by which the reason can be searched for.
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Refused { number, .. } | Self::AzureCli { number, .. } => *number,
            _ => None,
        }
    }

    /// Whether a token that is still valid should be used in place of this failure.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self, Self::Http { .. } | Self::AzureCli { .. } | Self::Malformed { .. })
    }
}

/// The first line, without the identifiers that follow it.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split(" Trace ID:").next().unwrap_or_default().trim().to_owned()
}

fn aadsts_number(text: &str) -> Option<u32> {
    let digits = text.split("AADSTS").nth(1)?;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The hint for an AADSTS number.
fn number_hint(number: u32) -> Option<&'static str> {
    Some(match number {
        7_000_215 => "AZURE_CLIENT_SECRET must be the value of the secret, not its id",
        7_000_222 => "the client secret has expired: `az ad app credential reset` makes a new one",
        700_016 => "check AZURE_CLIENT_ID and AZURE_TENANT_ID: the tenant does not have this application",
        90_002 | 900_023 => {
            "check AZURE_TENANT_ID, and that the tenant is in this cloud (CUDOCK_AZURE_CLOUD)"
        }
        700_027 => "add the certificate to the application: `az ad app credential reset --cert`",
        700_024 => "set this machine's clock: the signed request is outside its valid time",
        70_021 | 700_213 | 700_211 => {
            "add a federated credential with exactly this issuer, subject and audience to the application"
        }
        50_076 | 50_079 | 50_158 | 53_003 | 50_199 => {
            "a policy of the tenant requires more: `az login` in a browser, or use a service principal"
        }
        70_043 | 700_082 | 50_173 | 50_078 | 700_084 => "the sign-in has expired: run `az login`",
        65_001 => "an administrator of the tenant has to consent to the application",
        500_011 => "the tenant does not have this service: check CUDOCK_AZURE_CLOUD",
        7_000_218 => "the application is not a public client: use a service principal, or `az login`",
        _ => return None,
    })
}

impl Report for SignInError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } | Self::Invalid { .. } | Self::File { .. } | Self::Certificate { .. } => {
                ErrorKind::Input
            }
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        if let Some(hint) = self.number().and_then(number_hint) {
            return vec![hint.to_owned()];
        }
        let hint = match self {
            Self::NotSignedIn => {
                return vec![
                    "run `az login`".to_owned(),
                    "or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET".to_owned(),
                ];
            }
            Self::AzureCli { .. } => "run `az login`, then `az account show`",
            Self::Refused { method: MANAGED_IDENTITY, .. } => {
                "assign an identity to this resource; if it has several, set AZURE_CLIENT_ID"
            }
            Self::Http { error, .. } => return network_hint(error).into_iter().collect(),
            Self::NoManagedIdentity => {
                "run this on an Azure resource with a managed identity, or run `az login`"
            }
            Self::Invalid { name: "sign-in method", .. } => {
                return vec![format!("the methods are {}", SignInMethod::names().join(", "))];
            }
            Self::Certificate { .. } => {
                "the file must be PEM with an RSA key and its certificate: `openssl pkcs12 -in x.pfx -nodes -out x.pem`"
            }
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

/// Why a server's response cannot be used.
pub(super) fn malformed(method: &'static str, reason: &str) -> SignInError {
    SignInError::Malformed { method, reason: reason.to_owned() }
}

/// Whether the network failed, and there was no response.
pub(super) fn is_unreachable(error: &HttpError) -> bool {
    matches!(error.kind, HttpErrorKind::Transient | HttpErrorKind::Permanent)
}

#[cfg(test)]
mod tests {
    use cudock_base::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_line_and_the_number_are_kept_and_secrets_are_not() {
        let secret = Secret::new("swordfish");
        for (body, number, message) in [
            (
                json!({"error": "invalid_client", "error_codes": [7_000_215],
                    "error_description": "AADSTS7000215: Invalid client secret swordfish.\r\nTrace ID: 1"}),
                Some(7_000_215),
                "AADSTS7000215: Invalid client secret ….",
            ),
            (
                json!({"error_description": "AADSTS90002: Tenant 'x' not found. Trace ID: 1 Correlation ID: 2"}),
                Some(90_002),
                "AADSTS90002: Tenant 'x' not found.",
            ),
            (json!({"error": "invalid_request"}), None, "invalid_request"),
            (json!({"statusCode": 400, "message": "No identity"}), None, "No identity"),
            (json!({"error": {"code": 1}, "error_codes": "x"}), None, "server returned 400"),
            (json!(null), None, "server returned 400"),
        ] {
            let error = SignInError::refused("a test", 400, &body, [&secret]);
            assert_eq!(
                (error.number(), error.to_string()),
                (number, format!("cannot sign in to Azure with a test: {message}"))
            );
        }
    }

    #[test]
    fn az_is_quoted_by_its_error() {
        for (stderr, number, message) in [
            (
                "WARNING: x\nERROR: Please run 'az login' to setup account.\n",
                None,
                "Please run 'az login' to setup account.",
            ),
            (
                "ERROR: AADSTS70043: The refresh token has expired.\nTrace ID: 1",
                Some(70_043),
                "AADSTS70043: The refresh token has expired.",
            ),
            ("", None, "no message"),
        ] {
            let expected = SignInError::AzureCli { number, message: message.to_owned() };
            assert_eq!(SignInError::azure_cli(stderr), expected);
            assert!(expected.hints()[0].contains("az login"));
        }
    }
}
