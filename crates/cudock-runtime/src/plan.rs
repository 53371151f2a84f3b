//! What a container is to be: everything about it that does not change while it lives.
//!
//! A plan is made by the command that starts the container, written beside its other state, and read again by the
//! process that watches it. Values of variables that the user gave are not part of it: they may be secrets, and go from
//! process to process in memory ([`Private`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a container is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Sixteen hexadecimal digits.
    pub id: String,
    /// The name it answers to beside its id.
    pub name: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// The image or directory it came from, in the user's words.
    pub image: String,
    /// The directories its file system is stacked from, the uppermost first.
    pub layers: Vec<PathBuf>,
    /// What runs in it.
    pub process: ProcessPlan,
    /// What is mounted beside the usual.
    pub mounts: Vec<MountPlan>,
    /// The GPUs, if any.
    pub gpus: Option<GpuPlan>,
    /// Whether its GPUs are made to compute, from inside, before its program starts.
    #[serde(default)]
    pub verify_gpu: bool,
    /// How much it may use.
    pub limits: Limits,
    /// How it reaches others.
    pub network: NetworkPlan,
    /// What it may do.
    pub security: Security,
    /// What happens when it ends.
    pub restart: Restart,
    /// The signal that asks it to stop.
    pub stop_signal: String,
    /// Seconds between asking and killing.
    pub stop_seconds: u32,
    /// Whether everything of it is removed when it ends.
    pub remove: bool,
    /// The user's labels.
    pub labels: BTreeMap<String, String>,
    /// The group it belongs to.
    pub group: Option<String>,
    /// Whose System V IPC, POSIX queues and `/dev/shm` it uses.
    #[serde(default)]
    pub ipc: Ipc,
    /// Kernel parameters of its namespaces, as in `net.core.somaxconn`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
}

/// Whose IPC objects and shared memory a container uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ipc {
    /// Its own.
    #[default]
    Private,
    /// The host's.
    Host,
}

/// What runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProcessPlan {
    /// The program and its arguments.
    pub args: Vec<String>,
    /// The image's variables, in its order. What the user gives comes over them, by [`Private`].
    pub environment: Vec<(String, String)>,
    /// Names of the variables the user gave; their values are not kept.
    pub given: Vec<String>,
    /// Where it starts.
    pub cwd: String,
    /// As whom: a name or number, and a group after a colon.
    pub user: String,
    /// Further groups, names or numbers.
    pub groups: Vec<String>,
    /// Whether it gets a terminal.
    pub tty: bool,
    /// Whether it reads our standard input.
    pub stdin: bool,
    /// Whether an init process is PID 1, which forwards signals and reaps, and the program is its child.
    #[serde(default)]
    pub init: bool,
}

/// Something mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MountPlan {
    /// A file or directory of this machine.
    Bind {
        /// On this machine.
        source: PathBuf,
        /// In the container.
        target: PathBuf,
        /// Whether it may only be read.
        read_only: bool,
    },
    /// A named volume, which outlives the containers that use it.
    Volume {
        /// Its name.
        name: String,
        /// Where its files are on this machine.
        source: PathBuf,
        /// In the container.
        target: PathBuf,
        /// Whether it may only be read.
        read_only: bool,
        /// Whether an empty volume is first filled with what the image has at the target.
        copy: bool,
    },
    /// Memory.
    Tmpfs {
        /// In the container.
        target: PathBuf,
        /// Bytes at most.
        size: Option<u64>,
        /// Permissions, as in 1777.
        mode: Option<u32>,
    },
}

impl MountPlan {
    /// Where it is in the container.
    pub fn target(&self) -> &std::path::Path {
        match self {
            Self::Bind { target, .. } | Self::Volume { target, .. } | Self::Tmpfs { target, .. } => target,
        }
    }
}

/// The GPUs of a container. What that means in files is found out at each start, from the driver as it is then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPlan {
    /// Which, as `--gpus` has it.
    pub devices: String,
    /// compute, utility and so on; the image's wish or the default without it.
    pub capabilities: Option<String>,
    /// Where the driver's files are, if not where they are found.
    pub driver_root: Option<PathBuf>,
    /// Where the device nodes are, if not below the driver's root.
    pub device_root: Option<PathBuf>,
}

/// How much a container may use.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Which processors, as in 0-3,8.
    pub cpuset: Option<String>,
    /// Processes and threads.
    pub pids: Option<i64>,
    /// Bytes of `/dev/shm`.
    pub shm: Option<u64>,
    /// Resource limits of the process, as in nofile: soft, hard.
    pub rlimits: Vec<Rlimit>,
    /// Bytes of memory and swap together; -1 for no limit.
    #[serde(default)]
    pub memory_swap: Option<i64>,
    /// Bytes of memory the kernel tries to leave it under pressure.
    #[serde(default)]
    pub memory_reservation: Option<u64>,
    /// Its share of busy processors, of 1024.
    #[serde(default)]
    pub cpu_shares: Option<u64>,
    /// Which NUMA nodes, as in 0-1.
    #[serde(default)]
    pub cpuset_mems: Option<String>,
    /// How readily the kernel kills it when the host runs out of memory: -1000 to 1000.
    #[serde(default)]
    pub oom_score_adj: Option<i32>,
}

/// A resource limit of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    /// nofile, nproc, memlock and so on.
    pub name: String,
    /// What it starts with.
    pub soft: u64,
    /// What it may raise that to.
    pub hard: u64,
}

/// How a container reaches others.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NetworkPlan {
    /// Which network.
    pub mode: NetworkMode,
    /// Ports of this machine that lead into it, as `-p` has them.
    pub publish: Vec<String>,
    /// Its own name.
    pub hostname: Option<String>,
    /// Further lines of `/etc/hosts`: name, address.
    pub hosts: Vec<(String, String)>,
    /// Name servers in place of this machine's.
    pub dns: Vec<String>,
}

/// Which network a container is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// One of its own with nothing but itself in it, and the ports that are published.
    #[default]
    None,
    /// This machine's.
    Host,
    /// One of its own, with a way out through `pasta`.
    Pasta,
    /// One that exists: a group's.
    Join(PathBuf),
}

/// What a container may do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Security {
    /// Capabilities, by their full names: `CAP_CHOWN`.
    pub capabilities: Vec<String>,
    /// Whether programs may gain rights by being executed.
    pub no_new_privileges: bool,
    /// Which system calls it may make.
    pub seccomp: Seccomp,
    /// Whether its root may only be read.
    pub read_only: bool,
    /// Device nodes of this machine beside the GPUs'.
    pub devices: Vec<DevicePlan>,
}

/// A device node of this machine, or a directory of them, in the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "DeviceForm")]
pub struct DevicePlan {
    /// On this machine.
    pub host: PathBuf,
    /// In the container.
    pub container: PathBuf,
    /// Of `r`, `w` and `m`: read, write, make the node.
    pub access: String,
}

impl DevicePlan {
    /// The same node at the same path, to read and to write.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let host = path.into();
        Self { container: host.clone(), host, access: "rw".to_owned() }
    }
}

/// How a device is written in a plan: earlier versions kept the path alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum DeviceForm {
    Path(PathBuf),
    Whole { host: PathBuf, container: PathBuf, access: String },
}

impl From<DeviceForm> for DevicePlan {
    fn from(form: DeviceForm) -> Self {
        match form {
            DeviceForm::Path(path) => Self::at(path),
            DeviceForm::Whole { host, container, access } => Self { host, container, access },
        }
    }
}

/// Which system calls a container may make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// Those of the default profile.
    Default,
    /// All.
    Unconfined,
    /// Those of a profile in docker's form: its text.
    Profile(String),
}

/// What happens when a container ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Nothing.
    #[default]
    No,
    /// It is started again after a failure, so many times at most.
    OnFailure {
        /// None: as often as it takes.
        attempts: Option<u32>,
    },
    /// It is started again, unless it was stopped.
    Always,
}

/// What goes from process to process in memory only.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Private {
    /// Variables over the image's, the last of two counting.
    pub environment: Vec<(String, String)>,
}

impl std::fmt::Debug for Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Private").field("environment", &names).finish()
    }
}

impl Plan {
    /// The whole environment, the user's over the image's, without the home directory, which depends on the user.
    pub fn environment(&self, private: &Private) -> Vec<(String, String)> {
        let mut whole: Vec<(String, String)> = Vec::new();
        for (name, value) in self.process.environment.iter().chain(&private.environment) {
            match whole.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => value.clone_into(known),
                None => whole.push((name.clone(), value.clone())),
            }
        }
        if !whole.iter().any(|(name, _)| name == "PATH") {
            let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
            whole.push(("PATH".to_owned(), path.to_owned()));
        }
        if self.process.tty && !whole.iter().any(|(name, _)| name == "TERM") {
            whole.push(("TERM".to_owned(), "xterm".to_owned()));
        }
        whole
    }

    /// The name processes inside see as this machine's.
    pub fn hostname(&self) -> String {
        self.network.hostname.clone().unwrap_or_else(|| self.id.chars().take(12).collect())
    }
}
