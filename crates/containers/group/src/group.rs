//! A container group as plain data: what is left of the file when it is found good.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::probe::Timing;
use crate::resources::Resources;
use crate::restart::RestartPolicy;
use cudock_base::{Secret, Span};

/// Containers that share a network, a localhost and volumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub name: String,
    /// The region, which matters where the group is deployed to Azure.
    pub location: Option<String>,
    pub os: Os,
    pub restart_policy: RestartPolicy,
    /// Init containers, which run one after another before the others start.
    pub init_containers: Vec<Container>,
    /// Containers that run at the same time.
    pub containers: Vec<Container>,
    pub volumes: Vec<Volume>,
    pub address: Option<Address>,
    /// How names are looked up, if not as on the host.
    pub dns: Option<Dns>,
    /// How images are pulled from private registries.
    pub credentials: Vec<Credential>,
}

impl Group {
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// The mounted volumes that cannot be made here and for which no directory was given (`--volume
    /// NAME=DIR`).
    pub fn missing_volumes<'g>(&'g self, given: &[&str]) -> Vec<&'g Volume> {
        let mounted = |name: &str| {
            self.all_containers().any(|container| container.mounts.iter().any(|mount| mount.volume == name))
        };
        self.volumes
            .iter()
            .filter(|volume| !matches!(volume.kind, VolumeKind::EmptyDir | VolumeKind::Secret(_)))
            .filter(|volume| mounted(&volume.name) && !given.contains(&volume.name.as_str()))
            .collect()
    }

    /// Init containers, then the others.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.init_containers.iter().chain(&self.containers)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Os {
    #[default]
    Linux,
    /// Read, but not run here.
    Windows,
}

/// One container. Init containers have neither ports, resources nor probes.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// Unlike any other in the group.
    pub name: String,
    pub image: String,
    /// Program and arguments instead of the image's entry point and command; empty to run those of the image. No
    /// shell is involved.
    pub command: Vec<String>,
    /// The variables, in the order of the file.
    pub environment: Vec<Variable>,
    pub ports: Vec<Port>,
    pub resources: Option<Resources>,
    pub mounts: Vec<Mount>,
    /// The container is killed when it fails.
    pub liveness: Option<Probe>,
    pub readiness: Option<Probe>,
    pub security: Option<Security>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub value: VariableValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableValue {
    Plain(String),
    Secure(Secret),
    /// The name of a secret in a key vault, which is not available here.
    Reference(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Never 0.
    pub port: u16,
    pub protocol: PortProtocol,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PortProtocol {
    #[default]
    Tcp,
    Udp,
}

impl PortProtocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A volume in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub volume: String,
    /// Absolute, without `..`, not the root.
    pub path: String,
    pub read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Unlike any other in the group.
    pub name: String,
    pub kind: VolumeKind,
    pub span: Span,
}

/// The last three cannot be made here: a directory of the host is needed in their stead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeKind {
    /// A directory that begins empty and lasts as long as the group.
    EmptyDir,
    /// Files by name. No name leads out of its directory.
    Secret(BTreeMap<String, Secret<Vec<u8>>>),
    /// Files from a key vault.
    SecretReference,
    /// A clone of a repository.
    GitRepo,
    /// A share of Azure Files.
    AzureFile { read_only: bool },
}

impl VolumeKind {
    /// The key of the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EmptyDir => "emptyDir",
            Self::Secret(_) => "secret",
            Self::SecretReference => "secretReference",
            Self::GitRepo => "gitRepo",
            Self::AzureFile { .. } => "azureFile",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub action: ProbeAction,
    pub timing: Timing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAction {
    /// A command inside of the container; healthy if it exits with 0.
    Exec(Vec<String>),
    /// A GET request to the container; healthy from status 200 to 399.
    HttpGet(HttpGet),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGet {
    /// It begins with `/`.
    pub path: String,
    pub port: u16,
    /// Whether it goes over TLS; the certificate is not checked.
    pub https: bool,
    /// Headers besides those every request has.
    pub headers: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether Azure would give it a public address.
    pub public: bool,
    pub ports: Vec<Port>,
    /// The label of its name in Azure.
    pub dns_name_label: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns {
    pub servers: Vec<IpAddr>,
    /// Domains to look in.
    pub search: Vec<String>,
    /// Options of the resolver.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The registry, without a protocol.
    pub server: String,
    pub username: Option<String>,
    pub password: Option<Secret>,
}

/// The user and privileges of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    pub privileged: Option<bool>,
    /// Whether a program may have more rights than the one that started it.
    pub allow_privilege_escalation: Option<bool>,
    /// Capabilities besides the usual ones.
    pub add: Vec<String>,
    /// Capabilities to go without.
    pub drop: Vec<String>,
    pub user: Option<u32>,
    pub group: Option<u32>,
    /// A seccomp profile: the bytes of a JSON document.
    pub seccomp: Option<Vec<u8>>,
}
