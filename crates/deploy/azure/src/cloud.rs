//! Azure's clouds: where their APIs are, and for which audience a token must be.

use cudock_base::text::percent;
use cudock_base::{Environment, ErrorKind, Report};
use cudock_http::Uri;

use crate::call::{Call, Plane};

/// The cloud, by the name that az has for it.
const CLOUD: &str = "CUDOCK_AZURE_CLOUD";
/// Base URLs in place of those of the cloud.
const RESOURCE_MANAGER: &str = "CUDOCK_AZURE_RESOURCE_MANAGER";
const BATCH: &str = "CUDOCK_AZURE_BATCH";
const ML: &str = "CUDOCK_AZURE_ML";
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";

/// Stands for the host that would be used, in the base URL of a plane with many hosts.
const HOST: &str = "{host}";

/// An unknown cloud, or a URL that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    #[error("unknown Azure cloud `{0}`")]
    Name(String),
    #[error("{variable} is not a URL such as https://management.azure.com")]
    Endpoint { variable: &'static str },
}

impl Report for CloudError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Name(_) => {
                let names: Vec<&str> = CLOUDS.iter().map(|facts| facts.name).collect();
                vec![format!("the clouds are {}", names.join(", "))]
            }
            Self::Endpoint { variable } => vec![format!("unset {variable} to use the cloud's own")],
        }
    }
}

/// The constants of a cloud. Hosts are without `https://`.
#[derive(Debug, PartialEq, Eq)]
struct CloudFacts {
    name: &'static str,
    authority: &'static str,
    resource_manager: &'static str,
    batch_suffix: &'static str,
    batch_audience: &'static str,
    ml_suffix: &'static str,
    ml_audience: &'static str,
    /// The audience of the tokens that other issuers make for this cloud.
    token_exchange: &'static str,
}

/// The values are from azure-cli's cloud.py; suffixes of data planes from the names of their
/// private DNS zones.
static CLOUDS: [CloudFacts; 3] = [
    CloudFacts {
        name: "AzureCloud",
        authority: "login.microsoftonline.com",
        resource_manager: "management.azure.com",
        batch_suffix: "batch.azure.com",
        batch_audience: "batch.core.windows.net",
        ml_suffix: "api.azureml.ms",
        ml_audience: "ml.azure.com",
        token_exchange: "api://AzureADTokenExchange",
    },
    CloudFacts {
        name: "AzureChinaCloud",
        authority: "login.chinacloudapi.cn",
        resource_manager: "management.chinacloudapi.cn",
        batch_suffix: "batch.chinacloudapi.cn",
        batch_audience: "batch.chinacloudapi.cn",
        ml_suffix: "api.ml.azure.cn",
        ml_audience: "ml.azure.cn",
        token_exchange: "api://AzureADTokenExchangeChina",
    },
    CloudFacts {
        name: "AzureUSGovernment",
        authority: "login.microsoftonline.us",
        resource_manager: "management.usgovcloudapi.net",
        batch_suffix: "batch.usgovcloudapi.net",
        batch_audience: "batch.core.usgovcloudapi.net",
        ml_suffix: "api.ml.azure.us",
        ml_audience: "ml.azure.us",
        token_exchange: "api://AzureADTokenExchangeUSGov",
    },
];

/// A cloud and its endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloud {
    facts: &'static CloudFacts,
    authority: String,
    resource_manager: String,
    /// The URL of all Batch accounts, in place of a host for each, which it may contain as
    /// [`HOST`].
    batch: Option<String>,
    /// The URL of all regions' run histories, in the same form.
    ml: Option<String>,
}

impl Default for Cloud {
    fn default() -> Self {
        let [public, ..] = &CLOUDS;
        Self::of(public)
    }
}

impl Cloud {
    fn of(facts: &'static CloudFacts) -> Self {
        Self {
            facts,
            authority: format!("https://{}", facts.authority),
            resource_manager: format!("https://{}", facts.resource_manager),
            batch: None,
            ml: None,
        }
    }

    /// The cloud with this name: `AzureCloud`, `AzureChinaCloud` or `AzureUSGovernment`.
    pub fn named(name: &str) -> Result<Self, CloudError> {
        let facts = CLOUDS.iter().find(|facts| facts.name.eq_ignore_ascii_case(name));
        facts.map(Self::of).ok_or_else(|| CloudError::Name(cudock_base::text::truncate(name, 40)))
    }

    /// The cloud and the endpoints that environment variables name; else the public cloud.
    pub fn from_environment(environment: &Environment) -> Result<Self, CloudError> {
        let named = environment.get(CLOUD).map(|name| Self::named(&name.to_string_lossy()));
        named.unwrap_or_else(|| Ok(Self::default()))?.with_endpoints_of(environment)
    }

    fn with_endpoints_of(self, environment: &Environment) -> Result<Self, CloudError> {
        let endpoint = |variable: &'static str| {
            environment.get(variable).map(|url| base_url(variable, &url.to_string_lossy())).transpose()
        };
        Ok(Self {
            authority: endpoint(AUTHORITY)?.unwrap_or(self.authority),
            resource_manager: endpoint(RESOURCE_MANAGER)?.unwrap_or(self.resource_manager),
            batch: endpoint(BATCH)?,
            ml: endpoint(ML)?,
            ..self
        })
    }

    /// The name used by az.
    pub fn name(&self) -> &'static str {
        self.facts.name
    }

    /// The base URL of the service that issues tokens.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn token_exchange(&self) -> &'static str {
        self.facts.token_exchange
    }

    /// The URL of a request; `None` if its plane or path cannot be part of one.
    pub(crate) fn url(&self, call: &Call) -> Option<String> {
        let base = match &call.plane {
            Plane::ResourceManager => self.resource_manager.clone(),
            Plane::Batch { account, region, endpoint } => {
                let host = || data_host(endpoint.as_deref(), &[account, region], self.facts.batch_suffix);
                data_url(self.batch.as_deref(), host)?
            }
            Plane::MlHistory { region, endpoint } => {
                let host = || data_host(endpoint.as_deref(), &[region], self.facts.ml_suffix);
                data_url(self.ml.as_deref(), host)?
            }
        };
        call.path.starts_with('/').then(|| format!("{base}{}", percent::repair(&call.path)))
    }

    pub(crate) fn audience(&self, plane: &Plane) -> Audience {
        Audience(match plane {
            Plane::ResourceManager => format!("https://{}/", self.facts.resource_manager),
            Plane::Batch { .. } => format!("https://{}/", self.facts.batch_audience),
            Plane::MlHistory { .. } => format!("https://{}", self.facts.ml_audience),
        })
    }
}

/// Whom a token is for, as managed identities name it: `https://management.azure.com/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Audience(String);

impl Audience {
    pub(crate) fn resource(&self) -> &str {
        &self.0
    }

    pub(crate) fn scope(&self) -> String {
        format!("{}/.default", self.0.trim_end_matches('/'))
    }
}

/// The base URL of a data plane: that of its host, or what replaces it.
fn data_url(replacement: Option<&str>, host: impl FnOnce() -> Option<String>) -> Option<String> {
    match replacement {
        Some(url) if !url.contains(HOST) => Some(url.to_owned()),
        Some(url) => Some(url.replace(HOST, &host()?)),
        None => Some(format!("https://{}", host()?)),
    }
}

/// The host of a data plane: according to a resource, or made of its names; `None` if it is outside
/// of the cloud's domain, whose hosts alone may receive tokens.
fn data_host(endpoint: Option<&str>, labels: &[&str], suffix: &str) -> Option<String> {
    let host = match endpoint {
        Some(endpoint) => endpoint.to_ascii_lowercase(),
        None => format!("{}.{suffix}", labels.join(".")),
    };
    let own = host.strip_suffix(suffix)?.strip_suffix('.')?;
    let is_whole = endpoint.is_some() || labels.iter().all(|label| is_label(label));
    (is_whole && own.split('.').all(is_label)).then_some(host)
}

/// Whether a text can be one label of a host name.
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn base_url(variable: &'static str, text: &str) -> Result<String, CloudError> {
    // The SDKs take the authority without a scheme, too.
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = url.trim_end_matches('/').to_owned();
    let is_usable = url.replace(HOST, "host").parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("https" | "http")) && uri.host().is_some() && uri.query().is_none()
    });
    if is_usable { Ok(url) } else { Err(CloudError::Endpoint { variable }) }
}

#[cfg(test)]
mod tests {
    use cudock_http::Method;

    use super::*;

    fn call(plane: Plane, path: &str) -> Call {
        Call { method: Method::GET, plane, path: path.to_owned(), body: None }
    }

    fn batch(account: &str) -> Plane {
        Plane::Batch { account: account.to_owned(), region: "westeurope".to_owned(), endpoint: None }
    }

    fn history() -> Plane {
        Plane::MlHistory { region: "westeurope".to_owned(), endpoint: None }
    }

    #[test]
    fn every_cloud_has_its_hosts_and_audiences() {
        for (name, manager, batch_host, batch_scope, ml_host, ml_scope) in [
            (
                "azurecloud",
                "management.azure.com",
                "a.westeurope.batch.azure.com",
                "batch.core.windows.net",
                "westeurope.api.azureml.ms",
                "ml.azure.com",
            ),
            (
                "AzureChinaCloud",
                "management.chinacloudapi.cn",
                "a.westeurope.batch.chinacloudapi.cn",
                "batch.chinacloudapi.cn",
                "westeurope.api.ml.azure.cn",
                "ml.azure.cn",
            ),
            (
                "AzureUSGovernment",
                "management.usgovcloudapi.net",
                "a.westeurope.batch.usgovcloudapi.net",
                "batch.core.usgovcloudapi.net",
                "westeurope.api.ml.azure.us",
                "ml.azure.us",
            ),
        ] {
            let cloud = Cloud::named(name).unwrap();
            for (plane, host, audience) in [
                (Plane::ResourceManager, manager, manager),
                (batch("a"), batch_host, batch_scope),
                (history(), ml_host, ml_scope),
            ] {
                assert_eq!(cloud.audience(&plane).scope(), format!("https://{audience}/.default"));
                assert_eq!(cloud.url(&call(plane, "/x?y=1")).unwrap(), format!("https://{host}/x?y=1"));
            }
        }
        assert_eq!(
            Cloud::default().audience(&Plane::ResourceManager).resource(),
            "https://management.azure.com/"
        );
        let error = Cloud::named("AzureMars").unwrap_err();
        assert!(error.hints()[0].contains("AzureChinaCloud"), "{error}");
    }

    #[test]
    fn variables_replace_endpoints_and_leave_audiences_alone() {
        let environment = Environment::of(
            "/",
            [
                (CLOUD, "AzureUSGovernment"),
                (RESOURCE_MANAGER, "https://localhost:1/"),
                (BATCH, "https://localhost:2/base"),
                (ML, "http://127.0.0.1:3"),
                (AUTHORITY, "login.example.com/"),
            ],
        );
        let cloud = Cloud::from_environment(&environment).unwrap();
        assert_eq!(cloud.authority(), "https://login.example.com");
        for (plane, url) in [
            (Plane::ResourceManager, "https://localhost:1/x"),
            (batch("a"), "https://localhost:2/base/x"),
            (history(), "http://127.0.0.1:3/x"),
        ] {
            assert_eq!(cloud.url(&call(plane, "/x")).unwrap(), url);
        }
        assert_eq!(cloud.audience(&batch("a")).resource(), "https://batch.core.usgovcloudapi.net/");
        for wrong in ["", "https://", "ftp://a", "https://a/?b", "not a url"] {
            let environment = Environment::of("/", [(ML, wrong)]);
            assert_eq!(Cloud::from_environment(&environment).is_err(), !wrong.is_empty(), "{wrong}");
        }
    }

    #[test]
    fn a_base_url_may_contain_the_host_that_it_replaces() {
        let environment = Environment::of(
            "/",
            [(BATCH, "https://localhost:2/batch/{host}"), (ML, "http://127.0.0.1:3/{host}")],
        );
        let cloud = Cloud::from_environment(&environment).unwrap();
        assert_eq!(
            cloud.url(&call(batch("a"), "/x")).unwrap(),
            "https://localhost:2/batch/a.westeurope.batch.azure.com/x"
        );
        assert_eq!(
            cloud.url(&call(history(), "/x")).unwrap(),
            "http://127.0.0.1:3/westeurope.api.azureml.ms/x"
        );
    }

    #[test]
    fn names_cannot_lead_to_another_host() {
        let cloud = Cloud::default();
        for account in ["", "evil.com/", "a@b", "a.b", "a:1"] {
            assert_eq!(cloud.url(&call(batch(account), "/x")), None, "{account}");
        }
        assert_eq!(cloud.url(&call(Plane::ResourceManager, ".evil.com/")), None);
        let batch_at = |endpoint: &str| Plane::Batch {
            account: "a".to_owned(),
            region: "eastus".to_owned(),
            endpoint: Some(endpoint.to_owned()),
        };
        let url = cloud.url(&call(batch_at("A.westeurope.batch.azure.com"), "/x"));
        assert_eq!(
            url.as_deref(),
            Some("https://a.westeurope.batch.azure.com/x"),
            "not the region of the plan"
        );
        for endpoint in [
            "",
            "batch.azure.com",
            "evil.com",
            "a.evil.com/.batch.azure.com",
            "abatch.azure.com",
            "..batch.azure.com",
        ] {
            assert_eq!(cloud.url(&call(batch_at(endpoint), "/x")), None, "{endpoint}");
        }
        let filter = call(Plane::ResourceManager, "/x?$filter=a eq 'b'");
        assert_eq!(cloud.url(&filter).unwrap(), "https://management.azure.com/x?$filter=a%20eq%20'b'");
    }
}
