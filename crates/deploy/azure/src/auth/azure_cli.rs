//! Tokens of the Azure CLI, which signs in by itself.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cudock_base::files::is_executable;
use cudock_base::{Environment, Secret, bounded_output};
use serde::Deserialize;

use super::SignInError;
use super::clock::ServerClock;
use super::error::malformed;
use super::token::AccessToken;
use super::token_endpoint::until;
use crate::cloud::Audience;

const METHOD: &str = "az";
/// az is a Python program that may have to reach the network first.
const TIMEOUT: Duration = Duration::from_secs(90);
const MAX_OUTPUT: u64 = 1 << 20;
/// Assumed remaining lifetime of a token without a time; the next request runs az again, which has
/// a cache of its own.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(super) struct AzureCli {
    /// Absent if it is not installed.
    program: Option<PathBuf>,
    tenant: Option<String>,
    subscription: Option<String>,
}

/// The output of `az account get-access-token`. `expiresOn` is local time without a zone, and is
/// not used.
#[derive(Deserialize)]
struct CliToken {
    #[serde(rename = "accessToken")]
    token: Secret,
    /// Expiry in seconds since 1970; since az 2.54.
    expires_on: Option<u64>,
}

/// The output of `az account show`.
#[derive(Deserialize)]
struct CliAccount {
    id: String,
}

impl AzureCli {
    pub(super) fn new(
        environment: &Environment,
        tenant: Option<String>,
        subscription: Option<String>,
    ) -> Self {
        let directories = environment.program_directories();
        let program =
            directories.iter().map(|directory| directory.join("az")).find(|program| is_executable(program));
        Self { program, tenant, subscription }
    }

    pub(super) fn token(&self, audience: &Audience, clock: &ServerClock) -> Result<AccessToken, SignInError> {
        let scope = audience.scope();
        let mut args = vec!["account", "get-access-token", "-o", "json", "--scope", &scope];
        // The two exclude each other, and the subscription implies the tenant.
        match (&self.subscription, &self.tenant) {
            (Some(subscription), _) => args.extend(["--subscription", subscription]),
            (None, Some(tenant)) => args.extend(["--tenant", tenant]),
            (None, None) => {}
        }
        let CliToken { token, expires_on } = self.run(&args)?;
        if token.is_empty() {
            return Err(malformed(METHOD, "its token is empty"));
        }
        let lifetime = expires_on.map_or(UNKNOWN_LIFETIME, |end| until(end, clock.now()));
        Ok(AccessToken::new(token, lifetime))
    }

    /// The subscription that `az account set` chose.
    pub(super) fn default_subscription(&self) -> Result<String, SignInError> {
        let account: CliAccount = self.run(&["account", "show", "-o", "json"])?;
        Ok(account.id)
    }

    fn run<T: for<'a> Deserialize<'a>>(&self, args: &[&str]) -> Result<T, SignInError> {
        let program = self.program.as_ref().ok_or(SignInError::NotSignedIn)?;
        let output = bounded_output(Command::new(program).args(args), b"", TIMEOUT, MAX_OUTPUT)
            .map_err(|error| malformed(METHOD, &error.to_string()))?;
        if !output.status.success() {
            return Err(SignInError::azure_cli(&String::from_utf8_lossy(&output.stderr)));
        }
        // Leave the output out of the error: it may contain a token.
        serde_json::from_slice(&output.stdout).map_err(|_| malformed(METHOD, "its output is not as expected"))
    }
}
