//! The configuration of a container, which does not change while it exists.
//!
//! The command that creates the container writes its config, and the watcher reads it. Values of variables that the user sets
//! are not part of it: they may be secrets, and are passed from process to process in memory ([`Private`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ContainerConfig {
    /// Sixteen hexadecimal digits.
    pub id: String,
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// The image or directory, as the user named it.
    pub image: String,
    /// The digest of the image's manifest or index. A root file system and an archive of docker have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The directories of its layers, the topmost first.
    pub layers: Vec<PathBuf>,
    pub process: ProcessConfig,
    /// Its mounts, besides the standard ones.
    pub mounts: Vec<MountConfig>,
    pub gpus: Option<GpuConfig>,
    /// Whether to compute on its GPUs before its program starts.
    #[serde(default)]
    pub verify_gpu: bool,
    pub limits: Limits,
    pub network: NetworkConfig,
    pub security: Security,
    pub restart: Restart,
    pub stop_signal: String,
    /// Seconds between the stop signal and SIGKILL.
    pub stop_seconds: u32,
    pub remove: bool,
    pub labels: BTreeMap<String, String>,
    /// Annotations of the OCI specification.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub log: LogConfig,
    pub group: Option<String>,
    /// Its System V IPC, POSIX queues and `/dev/shm`.
    #[serde(default)]
    pub ipc: Ipc,
    /// Kernel parameters of its namespaces, such as `net.core.somaxconn`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
}

impl ContainerConfig {
    /// Seconds between the stop signal and SIGKILL, if the user does not say.
    pub const STOP_SECONDS: u32 = 10;
}

/// The IPC objects and shared memory of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ipc {
    #[default]
    Private,
    Host,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessConfig {
    pub args: Vec<String>,
    /// The image's variables, in its order. [`Private`] overrides them.
    pub environment: Vec<(String, String)>,
    /// Names of the variables that the user set; their values are not stored.
    pub given: Vec<String>,
    pub cwd: String,
    /// The user, by name or number, and the group after a colon.
    pub user: String,
    /// Supplementary groups, by name or number.
    pub groups: Vec<String>,
    pub tty: bool,
    /// Whether it reads our standard input.
    pub stdin: bool,
    /// Whether an init process is PID 1, which forwards signals and reaps, and the program is its child.
    #[serde(default)]
    pub init: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MountConfig {
    /// A file or directory of this machine.
    Bind {
        source: PathBuf,
        target: PathBuf,
        read_only: bool,
        /// Whether a missing source is created at each start, as a directory.
        #[serde(default)]
        create: bool,
        #[serde(default)]
        propagation: Propagation,
    },
    /// A named volume, which outlives the containers that use it.
    Volume {
        name: String,
        source: PathBuf,
        target: PathBuf,
        read_only: bool,
        /// Whether an empty volume is first filled with what the image has at the target.
        copy: bool,
    },
    Tmpfs {
        target: PathBuf,
        /// The size limit in bytes.
        size: Option<u64>,
        /// Permissions, such as 1777.
        mode: Option<u32>,
        /// Whether programs on it cannot be executed.
        #[serde(default)]
        no_exec: bool,
    },
}

/// What becomes of file systems that are mounted below the source of a mount later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Propagation {
    /// The container does not see them.
    #[default]
    Private,
    /// The container sees those of this machine.
    Slave,
}

/// What is kept of a container's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogConfig {
    /// Everything that fits into the files; the oldest is removed for a new one.
    Kept { max_bytes: u64, max_files: u32 },
    /// Nothing.
    None,
}

impl LogConfig {
    /// The size of a log file by default.
    pub(crate) const MAX_BYTES: u64 = 64 << 20;
}

impl Default for LogConfig {
    fn default() -> Self {
        Self::Kept { max_bytes: Self::MAX_BYTES, max_files: 2 }
    }
}

impl MountConfig {
    pub fn target(&self) -> &std::path::Path {
        match self {
            Self::Bind { target, .. } | Self::Volume { target, .. } | Self::Tmpfs { target, .. } => target,
        }
    }
}

/// The GPUs of a container. The files are determined at each start, from the installed driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuConfig {
    /// The value of `--gpus`.
    pub devices: String,
    /// Driver capabilities; the image's or the default if `None`.
    pub capabilities: Option<String>,
    /// The root of the driver's files, if not this machine's.
    pub driver_root: Option<PathBuf>,
    /// The root of the device nodes, if not the driver's root.
    pub device_root: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Allowed processors, such as 0-3,8.
    pub cpuset: Option<String>,
    /// Processes and threads.
    pub pids: Option<i64>,
    /// Bytes of `/dev/shm`.
    pub shm: Option<u64>,
    pub rlimits: Vec<Rlimit>,
    /// Bytes of memory and swap together; -1 for no limit.
    pub memory_swap: Option<i64>,
    /// Bytes of memory reserved under pressure.
    pub memory_reservation: Option<u64>,
    /// Its share of busy processors; the default is 1024.
    pub cpu_shares: Option<u64>,
    /// Allowed NUMA nodes, such as 0-1.
    pub cpuset_mems: Option<String>,
    /// How readily the kernel kills it when the host runs out of memory: -1000 to 1000.
    pub oom_score_adj: Option<i32>,
}

impl Limits {
    /// The limit of processes and threads, if the user sets none.
    pub const PIDS: i64 = 16_384;

    /// The size of shared memory, if the user sets none: that of docker.
    pub const SHM: u64 = 64 << 20;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rlimit {
    /// nofile, nproc, memlock and so on.
    pub name: String,
    pub soft: u64,
    /// The highest value that the process may set.
    pub hard: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkConfig {
    pub mode: NetworkMode,
    /// The values of `--publish`.
    pub publish: Vec<String>,
    pub hostname: Option<String>,
    /// Additional lines of `/etc/hosts`: name, address.
    pub hosts: Vec<(String, String)>,
    /// Name servers instead of this machine's.
    pub dns: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// Its own namespace, with published ports only.
    #[default]
    None,
    Host,
    /// Its own namespace, with outbound access through `pasta`.
    Pasta,
    /// An existing namespace, such as a group's.
    Join(PathBuf),
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Security {
    /// Capabilities, by their full names: `CAP_CHOWN`.
    pub capabilities: Vec<String>,
    /// Whether programs cannot gain privileges by being executed.
    pub no_new_privileges: bool,
    pub seccomp: Seccomp,
    pub read_only: bool,
    /// Device nodes of this machine besides the GPUs'.
    pub devices: Vec<DeviceConfig>,
}

/// A device node of this machine, or a directory of them, in the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "DeviceForm")]
pub struct DeviceConfig {
    /// On this machine.
    pub host: PathBuf,
    pub container: PathBuf,
    /// Any of `r`, `w` and `m`: read, write, create the node.
    pub access: String,
}

impl DeviceConfig {
    /// A node at the same path, for reading and writing.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let host = path.into();
        Self { container: host.clone(), host, access: "rw".to_owned() }
    }
}

/// The serialized form of a device; earlier versions stored only the path.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum DeviceForm {
    Path(PathBuf),
    Whole { host: PathBuf, container: PathBuf, access: String },
}

impl From<DeviceForm> for DeviceConfig {
    fn from(form: DeviceForm) -> Self {
        match form {
            DeviceForm::Path(path) => Self::at(path),
            DeviceForm::Whole { host, container, access } => Self { host, container, access },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    Default,
    Unconfined,
    /// The text of a profile in docker's format.
    Profile(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    #[default]
    No,
    /// At most `attempts` times; unlimited if `None`.
    OnFailure { attempts: Option<u32> },
    /// It restarts unless it was stopped.
    Always,
}

/// Settings that are passed between processes in memory only.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Private {
    /// Variables that override the image's; the last of several with the same name wins.
    pub environment: Vec<(String, String)>,
}

impl std::fmt::Debug for Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Private").field("environment", &names).finish()
    }
}

impl ContainerConfig {
    /// The environment, in which the user's variables override the image's, without `HOME`, which depends on the user.
    pub fn environment(&self, private: &Private) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in self.process.environment.iter().chain(&private.environment) {
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => value.clone_into(known),
                None => all.push((name.clone(), value.clone())),
            }
        }
        if !all.iter().any(|(name, _)| name == "PATH") {
            let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
            all.push(("PATH".to_owned(), path.to_owned()));
        }
        if self.process.tty && !all.iter().any(|(name, _)| name == "TERM") {
            all.push(("TERM".to_owned(), "xterm".to_owned()));
        }
        all
    }

    pub fn hostname(&self) -> String {
        self.network.hostname.clone().unwrap_or_else(|| self.id.chars().take(12).collect())
    }
}
