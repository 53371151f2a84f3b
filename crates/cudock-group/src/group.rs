//! A container group as plain data: what is left of the file when it is found good.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use crate::api_version::ApiVersion;
use crate::kept::KeptValue;
use crate::probe::Timing;
use crate::resources::Resources;
use crate::restart::RestartPolicy;
use cudock_base::{Secret, Span};

/// Containers that share a network, a localhost and volumes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    /// The version of Azure's interface the file is written for.
    pub api_version: Option<ApiVersion>,
    /// What the containers are built for.
    pub os: Os,
    /// What happens when a container ends.
    pub restart_policy: RestartPolicy,
    /// Those that run one after another before the others start.
    pub init_containers: Vec<Container>,
    /// Those that run side by side.
    pub containers: Vec<Container>,
    /// What can be mounted.
    pub volumes: Vec<Volume>,
    /// How the group is reached.
    pub address: Option<Address>,
    /// How names are looked up, if not as on the host.
    pub dns: Option<Dns>,
    /// How images are pulled from private registries.
    pub credentials: Vec<Credential>,
    /// What means nothing here, by its place in the file: `location`, `properties.diagnostics`.
    pub kept: BTreeMap<String, KeptValue>,
}

impl Group {
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// The volumes that cannot be made here and that nobody gave a directory for (`--volume NAME=DIR`), of those that are
    /// mounted.
    pub fn missing_volumes<'g>(&'g self, given: &[&str]) -> Vec<&'g Volume> {
        let mounted = |name: &str| {
            self.all_containers().any(|container| container.mounts.iter().any(|mount| mount.volume == name))
        };
        self.volumes
            .iter()
            .filter(|volume| volume.kind.cannot_be_made() && mounted(&volume.name))
            .filter(|volume| !given.contains(&volume.name.as_str()))
            .collect()
    }

    /// Init containers, then the others.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.init_containers.iter().chain(&self.containers)
    }

    /// How many GPUs the group asks for.
    pub fn gpus(&self) -> u32 {
        let counts = self.containers.iter().filter_map(|container| container.resources.as_ref()?.gpu());
        counts.map(|gpu| gpu.count).fold(0, u32::saturating_add)
    }
}

/// What containers are built for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    #[default]
    Linux,
    /// Windows: read, but not run here.
    Windows,
}

/// One container. Init containers have neither ports, resources nor probes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Container {
    /// Its name, unlike any other in the group.
    pub name: String,
    pub image: String,
    /// Program and arguments instead of the image's entry point and command; empty to run those of the image. No
    /// shell is involved.
    pub command: Vec<String>,
    /// Variables, in the order of the file.
    pub environment: Vec<Variable>,
    /// Ports it listens on.
    pub ports: Vec<Port>,
    /// What it needs and may use.
    pub resources: Option<Resources>,
    pub mounts: Vec<Mount>,
    /// Whether it is alive: it is killed when it is not.
    pub liveness: Option<Probe>,
    /// Whether it is ready to be asked.
    pub readiness: Option<Probe>,
    /// Who it runs as and what it may do.
    pub security: Option<Security>,
    /// Where it stands in the file.
    #[serde(skip)]
    pub span: Span,
}

/// A variable of a container's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    pub name: String,
    pub value: VariableValue,
}

/// What a variable holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableValue {
    /// Text anybody may see.
    Plain(String),
    /// Text nobody may see.
    Secure(Secret),
    /// The name of a secret in a key vault, which cannot be asked for here.
    Reference(String),
}

/// A port and its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Port {
    /// The number, never 0.
    pub port: u16,
    pub protocol: PortProtocol,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PortProtocol {
    #[default]
    Tcp,
    Udp,
}

impl PortProtocol {
    /// In lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A volume in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    pub volume: String,
    /// Where: absolute, without `..`, not the root.
    pub path: String,
    /// Whether the container may not write to it.
    pub read_only: bool,
}

/// Something to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Its name, unlike any other in the group.
    pub name: String,
    pub kind: VolumeKind,
    /// Where it stands in the file.
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// A directory that begins empty and lasts as long as the group.
    EmptyDir,
    /// Files by name. No name leads out of its directory.
    Secret(BTreeMap<String, Secret<Vec<u8>>>),
    /// Files from a key vault: cannot be made here.
    SecretReference(BTreeMap<String, String>),
    /// A clone of a repository: cannot be made here.
    GitRepo {
        /// Its URL; secret, since it may hold a token.
        repository: Secret,
        /// The directory within the volume.
        directory: Option<String>,
        /// The commit.
        revision: Option<String>,
    },
    /// A share of Azure Files: cannot be made here.
    AzureFile {
        share: String,
        account: String,
        /// The account's key.
        key: Option<Secret>,
        /// Whether nobody may write to it.
        read_only: bool,
    },
}

impl VolumeKind {
    /// Whether a directory of the host is needed in its stead.
    pub fn cannot_be_made(&self) -> bool {
        !matches!(self, Self::EmptyDir | Self::Secret(_))
    }

    /// The key of the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EmptyDir => "emptyDir",
            Self::Secret(_) => "secret",
            Self::SecretReference(_) => "secretReference",
            Self::GitRepo { .. } => "gitRepo",
            Self::AzureFile { .. } => "azureFile",
        }
    }
}

/// How a container is asked after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// What is asked.
    pub action: ProbeAction,
    /// When, and how often it may fail.
    pub timing: Timing,
}

/// What a probe asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeAction {
    /// A command inside of the container; healthy if it exits with 0.
    Exec(Vec<String>),
    /// A GET request to the container; healthy from status 200 to 399.
    HttpGet(HttpGet),
}

/// A request of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpGet {
    /// The path, which begins with `/`.
    pub path: String,
    pub port: u16,
    /// Whether it goes over TLS; the certificate is not checked.
    pub https: bool,
    /// Headers besides those every request has.
    pub headers: Vec<(String, String)>,
}

/// How a group is reached from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// Whether Azure would give it a public address.
    pub public: bool,
    /// The ports that are published.
    pub ports: Vec<Port>,
    /// The label of its name in Azure.
    pub dns_name_label: Option<String>,
}

/// How names are looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dns {
    /// Servers to ask.
    pub servers: Vec<IpAddr>,
    /// Domains to look in.
    pub search: Vec<String>,
    /// Options of the resolver.
    pub options: Vec<String>,
}

/// How images are pulled from a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Credential {
    /// The registry, without a protocol.
    pub server: String,
    /// The user.
    pub username: Option<String>,
    pub password: Option<Secret>,
}

/// Who a container runs as and what it may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Security {
    /// All rights on the host.
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
