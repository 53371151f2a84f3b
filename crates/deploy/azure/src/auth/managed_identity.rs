//! The managed identity of the Azure resource that this process runs on.

use std::time::Duration;

use cudock_base::text::percent;
use cudock_base::{Environment, Secret};
use cudock_http::{Client, NoProgress, Request, RetryPolicy, Uri};

use super::SignInError;
use super::error::{MANAGED_IDENTITY, is_unreachable, malformed};
use super::token::AccessToken;
use super::token_endpoint::{TokenRequest, send_once};
use crate::cloud::Audience;

/// The address of the metadata service of virtual machines, which no other machine has.
const IMDS: &str = "http://169.254.169.254";
const IMDS_HOST: &str = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
/// Time limit for a metadata service, which may have to fetch the token first.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(super) struct ManagedIdentity {
    service: IdentityEndpoint,
    /// Client id of a user-assigned identity.
    client_id: Option<String>,
}

/// The service that issues the tokens.
#[derive(Debug, Clone)]
enum IdentityEndpoint {
    /// App Service, Functions and Container Apps.
    AppService {
        endpoint: String,
        header: Secret,
    },
    MachineLearning {
        endpoint: String,
        secret: Secret,
    },
    /// Virtual machines, Batch nodes and container groups.
    Imds {
        endpoint: String,
        /// Whether it is only supposed to exist: an error then means that this machine is not in Azure.
        is_probe: bool,
    },
}

impl ManagedIdentity {
    /// The service that variables name, as they are set in App Service, Container Apps and Azure ML.
    pub(super) fn from_variables(environment: &Environment, client_id: Option<&str>) -> Option<Self> {
        let variable = |name: &str| Some(environment.get(name)?.to_string_lossy().into_owned());
        let client_id = client_id.map(str::to_owned);
        // Service Fabric verifies its server by a thumbprint, and Azure Arc has a challenge; neither is supported.
        if variable("IDENTITY_SERVER_THUMBPRINT").is_some() {
            return None;
        }
        if let (Some(endpoint), Some(header)) = (variable("IDENTITY_ENDPOINT"), variable("IDENTITY_HEADER")) {
            let service = IdentityEndpoint::AppService { endpoint, header: Secret::new(header) };
            return Some(Self { service, client_id });
        }
        let (endpoint, secret) = (variable("MSI_ENDPOINT")?, variable("MSI_SECRET")?);
        let client_id = client_id.or_else(|| variable("DEFAULT_IDENTITY_CLIENT_ID"));
        Some(Self {
            service: IdentityEndpoint::MachineLearning { endpoint, secret: Secret::new(secret) },
            client_id,
        })
    }

    /// The metadata service of virtual machines.
    pub(super) fn imds(environment: &Environment, client_id: Option<&str>, is_probe: bool) -> Self {
        let endpoint = environment
            .get(IMDS_HOST)
            .map_or_else(|| IMDS.to_owned(), |host| host.to_string_lossy().trim_end_matches('/').to_owned());
        Self {
            service: IdentityEndpoint::Imds { endpoint, is_probe },
            client_id: client_id.map(str::to_owned),
        }
    }

    pub(super) fn token(
        &self,
        request: &TokenRequest<'_>,
        audience: &Audience,
        has_worked: bool,
    ) -> Result<AccessToken, SignInError> {
        let wanted = self.request(audience);
        let host = wanted.url().parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
        let host = host.ok_or_else(|| malformed(MANAGED_IDENTITY, "its endpoint is not a URL"))?;
        let http = Client::for_metadata(&host, TIMEOUT);
        let (is_imds, is_probe) = match self.service {
            IdentityEndpoint::Imds { is_probe, .. } => (true, is_probe && !has_worked),
            _ => (false, false),
        };
        let max_retries = if is_probe { 0 } else { request.retries.max_retries };
        let response = RetryPolicy { max_retries, ..request.retries }.run(&NoProgress, "sign-in", || {
            // While IMDS is updated, it returns 404 and 410.
            let is_restarting = |status| is_imds && !is_probe && matches!(status, 404 | 410);
            send_once(&http, request.clock, &wanted, |status| {
                !matches!(status, 429 | 500..) && !is_restarting(status)
            })
        });
        let response = response.map_err(|error| match error {
            error if is_imds && !has_worked && is_unreachable(&error) => SignInError::NoManagedIdentity,
            error => SignInError::Http { method: MANAGED_IDENTITY, error },
        })?;
        if response.status != 200 {
            // Another cloud has its metadata service at the same address, and it knows nothing of this path.
            if is_probe && response.status != 400 {
                return Err(SignInError::NoManagedIdentity);
            }
            return Err(SignInError::refused(
                MANAGED_IDENTITY,
                response.status,
                &response.body,
                self.secret(),
            ));
        }
        response.token(MANAGED_IDENTITY, request.clock)
    }

    fn secret(&self) -> Option<&Secret> {
        match &self.service {
            IdentityEndpoint::AppService { header: secret, .. }
            | IdentityEndpoint::MachineLearning { secret, .. } => Some(secret),
            IdentityEndpoint::Imds { .. } => None,
        }
    }

    fn request(&self, audience: &Audience) -> Request {
        let client_id = |parameter: &str| match &self.client_id {
            Some(id) => format!("&{parameter}={}", percent::encode(id)),
            None => String::new(),
        };
        let resource = percent::encode(audience.resource());
        match &self.service {
            IdentityEndpoint::AppService { endpoint, header } => {
                let query = format!("api-version=2019-08-01&resource={resource}{}", client_id("client_id"));
                Request::get(format!("{endpoint}?{query}")).header("X-IDENTITY-HEADER", header.expose())
            }
            IdentityEndpoint::MachineLearning { endpoint, secret } => {
                let query = format!("api-version=2017-09-01&resource={resource}{}", client_id("clientid"));
                Request::get(format!("{endpoint}?{query}")).header("secret", secret.expose())
            }
            IdentityEndpoint::Imds { endpoint, .. } => {
                let query = format!("api-version=2018-02-01&resource={resource}{}", client_id("client_id"));
                let path = "metadata/identity/oauth2/token";
                Request::get(format!("{endpoint}/{path}?{query}")).header("Metadata", "true")
            }
        }
        .without_redirects()
    }
}
