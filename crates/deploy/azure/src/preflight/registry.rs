//! Whether the signed-in account may pull an image, by doing what a pull begins with.

use cudock_base::Secret;
use cudock_base::text::percent;
use cudock_http::{Client, HttpError, HttpErrorKind, Method, Request, bearer_authorization};
use serde::Deserialize;

use crate::call::Plane;
use crate::client::AzureClient;
use crate::error::AzureError;

/// Bytes of a token response, at most.
const MAX_TOKEN: u64 = 64 << 10;

const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json, \
                         application/vnd.docker.distribution.manifest.v2+json";

/// The registries of all clouds.
const REGISTRIES: [&str; 3] = [".azurecr.io", ".azurecr.cn", ".azurecr.us"];

/// Whether a server is a registry of Azure. The account's token must not be sent to any other.
pub fn is_azure_registry(server: &str) -> bool {
    let is_host = server.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    let server = server.to_ascii_lowercase();
    is_host && REGISTRIES.iter().any(|registry| server.ends_with(registry))
}

/// An image in a registry of Azure ([`is_azure_registry`]).
#[derive(Debug, Clone)]
pub struct PullQuestion {
    /// The registry's URL: `https://team.azurecr.io`.
    pub registry: String,
    pub repository: String,
    /// The tag or digest.
    pub reference: String,
}

/// The credentials of a request to a registry for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullCredentials {
    /// The deployment has none.
    Anonymous,
    /// The user name and password of the deployment.
    Password,
    /// The account that is signed in; the deployment pulls with an identity, which cannot be used from here.
    Account,
}

/// Whether an image can be pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullResult {
    Allowed,
    Denied(PullCredentials),
    /// The registry has no such image.
    NotFound,
    Unreachable(String),
}

#[derive(Deserialize)]
struct Exchanged {
    refresh_token: Secret,
}

#[derive(Deserialize)]
struct Granted {
    access_token: Secret,
}

impl AzureClient {
    /// Whether the account that is signed in may pull an image.
    pub fn pull_right(&self, question: &PullQuestion) -> PullResult {
        let sign_in = self.principal().and_then(|principal| {
            let token = self.token(&Plane::ResourceManager)?;
            Ok::<_, AzureError>((principal.tenant.unwrap_or_default(), token))
        });
        match sign_in {
            Ok((tenant, token)) => pull_right(self.http(), question, &tenant, &token),
            Err(error) => PullResult::Unreachable(error.to_string()),
        }
    }
}

/// Exchanges a token for Resource Manager for one of the registry, requests the right to pull, and
/// requests the manifest without reading it.
fn pull_right(client: &Client, question: &PullQuestion, tenant: &str, token: &Secret) -> PullResult {
    let registry = question.registry.trim_end_matches('/');
    let service = registry.split_once("://").map_or(registry, |(_, host)| host);
    let post = |path: &str, fields: &[(&str, &str)]| {
        Request::new(Method::POST, format!("{registry}{path}")).form(fields)
    };
    let exchange = post(
        "/oauth2/exchange",
        &[
            ("grant_type", "access_token"),
            ("service", service),
            ("tenant", tenant),
            ("access_token", token.expose().as_str()),
        ],
    );
    let granted = client.send_for_json(&exchange, MAX_TOKEN).and_then(|exchanged: Exchanged| {
        let scope = format!("repository:{}:pull", question.repository);
        let fields = [
            ("grant_type", "refresh_token"),
            ("service", service),
            ("scope", scope.as_str()),
            ("refresh_token", exchanged.refresh_token.expose().as_str()),
        ];
        client.send_for_json(&post("/oauth2/token", &fields), MAX_TOKEN)
    });
    let asked = granted.and_then(|granted: Granted| {
        let repository: Vec<String> = question.repository.split('/').map(percent::encode).collect();
        let url = format!("{registry}/v2/{}/manifests/{}", repository.join("/"), question.reference);
        let bearer = bearer_authorization(&granted.access_token);
        client.send(&Request::new(Method::HEAD, url).accept(MANIFESTS).authorization(Some(bearer)))
    });
    match asked.and_then(cudock_http::Response::error_for_status) {
        Ok(_) => PullResult::Allowed,
        Err(HttpError { kind: HttpErrorKind::Status(401 | 403), .. }) => {
            PullResult::Denied(PullCredentials::Account)
        }
        Err(HttpError { kind: HttpErrorKind::Status(404), .. }) => PullResult::NotFound,
        Err(error) => PullResult::Unreachable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registries_of_azure_get_a_token() {
        for server in [
            "team.azurecr.io",
            "Team.AzureCR.io",
            "a.westeurope.data.azurecr.io",
            "t.azurecr.cn",
            "t.azurecr.us",
        ] {
            assert!(is_azure_registry(server), "{server}");
        }
        for server in [
            "docker.io",
            "azurecr.io",
            "team.azurecr.io.example.com",
            "example.com#.azurecr.io",
            "example.com?.azurecr.io",
            "me@example.com:443\\.azurecr.io",
            "team.azurecr.io:5000",
            "",
        ] {
            assert!(!is_azure_registry(server), "{server}");
        }
    }
}
