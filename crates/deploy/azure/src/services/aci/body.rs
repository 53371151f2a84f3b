//! A container group as the service takes it.

use serde::Serialize;

use crate::spec::{RegistryAccess, SpecVariable};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupProperties {
    pub(super) os_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<&'static str>,
    pub(super) restart_policy: &'static str,
    pub(super) containers: Vec<Container>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) image_registry_credentials: Vec<RegistryCredential>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ip_address: Option<IpAddress>,
}

#[derive(Debug, Serialize)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) properties: ContainerProperties,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerProperties {
    pub(super) image: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) command: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) environment_variables: Vec<Variable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<Port>,
    pub(super) resources: Resources,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) readiness_probe: Option<Probe>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variable {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Replaced by the secret when the request is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    secure_value: Option<&'static str>,
}

impl Variable {
    pub(super) fn new(variable: &SpecVariable) -> Self {
        match variable {
            SpecVariable::Plain { name, value } => {
                Self { name: name.clone(), value: Some(value.clone()), secure_value: None }
            }
            SpecVariable::Secret { name, .. } => {
                Self { name: name.clone(), value: None, secure_value: Some("") }
            }
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Port {
    pub(super) port: u16,
    pub(super) protocol: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Resources {
    pub(super) requests: Requests,
}

#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pub(super) cpu: f64,
    #[serde(rename = "memoryInGB")]
    pub(super) memory_in_gb: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probe {
    pub(super) http_get: HttpGet,
    pub(super) period_seconds: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct HttpGet {
    pub(super) path: String,
    pub(super) port: u16,
    pub(super) scheme: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct RegistryCredential {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    /// Replaced by the secret when the request is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'static str>,
}

impl RegistryCredential {
    pub(super) fn new(access: &RegistryAccess) -> Self {
        match access {
            RegistryAccess::Identity { server, identity } => Self {
                server: server.clone(),
                identity: Some(identity.clone()),
                username: None,
                password: None,
            },
            RegistryAccess::Password { server, username, .. } => Self {
                server: server.clone(),
                identity: None,
                username: Some(username.clone()),
                password: Some(""),
            },
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct IpAddress {
    #[serde(rename = "type")]
    kind: &'static str,
    ports: Vec<Port>,
}

impl IpAddress {
    pub(super) fn public(port: u16) -> Self {
        Self { kind: "Public", ports: vec![Port { port, protocol: "TCP" }] }
    }
}
