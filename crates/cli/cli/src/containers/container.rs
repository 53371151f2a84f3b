//! The flags of `cudock run` that describe a container, as clap reads them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cudock_base::UsageError;
use cudock_runtime::container::config::{DeviceConfig, Ipc, Limits, NetworkMode};
use cudock_runtime::flags::{Device, bytes, cpu_millis, cpuset, device, memory, memory_swap, ulimit};

#[derive(Debug, Args)]
#[command(next_help_heading = "GPUs")]
pub struct GpuArgs {
    /// Add GPUs: all, none, a count, indices, UUIDs, MIG devices (0:1), or docker's device=…
    #[arg(long, value_name = "WHICH")]
    pub gpus: Option<String>,

    /// Add parts of the driver: compute, utility, video, graphics, display, ngx, compat32, all
    #[arg(long, value_name = "LIST")]
    pub driver_capabilities: Option<String>,

    /// Look for the driver's files in this root
    #[arg(long, value_name = "DIR")]
    pub driver_root: Option<PathBuf>,

    /// Look for the driver's device nodes and kernel interfaces in this root
    #[arg(long, value_name = "DIR")]
    pub device_root: Option<PathBuf>,

    /// Compute on every GPU from inside the container first, and print the result
    #[arg(long)]
    pub verify_gpu: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Process")]
pub struct ProcessArgs {
    /// Set a variable, or pass on one of ours by name; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,

    /// Read variables from a file, one per line; repeatable
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,

    /// Override the image's entry point
    #[arg(long, value_name = "PROGRAM")]
    pub entrypoint: Option<String>,

    /// Set the working directory
    #[arg(long, short, value_name = "DIR")]
    pub workdir: Option<String>,

    /// Run as this user, by name or number, and group
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub user: Option<String>,

    /// Add a supplementary group; repeatable
    #[arg(long, value_name = "GROUP")]
    pub group_add: Vec<String>,

    /// Run an init as PID 1 that forwards signals and reaps processes
    #[arg(long)]
    pub init: bool,

    /// Set the IPC namespace, which includes shared memory: private, shareable (the same), or host
    #[arg(long, value_name = "MODE", default_value = "private", value_parser = ipc)]
    pub ipc: Ipc,

    /// Set a namespaced kernel parameter, such as net.core.somaxconn=1024; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub sysctl: Vec<String>,

    /// Accept docker's flag: private is what a container gets
    #[arg(long, value_name = "MODE", hide = true)]
    pub cgroupns: Option<String>,

    /// Accept docker's flag: host is what root gets
    #[arg(long, value_name = "MODE", hide = true)]
    pub userns: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct FileArgs {
    /// Mount a path of this machine, which is created if it is missing, or a named volume; repeatable
    #[arg(long, short, value_name = "SOURCE|NAME:TARGET[:ro]")]
    pub volume: Vec<String>,

    /// Mount as docker's --mount does: `type=bind|volume|tmpfs,source=…,target=…[,readonly]`; repeatable
    #[arg(long, value_name = "OPTIONS")]
    pub mount: Vec<String>,

    /// Mount a tmpfs; repeatable
    #[arg(long, value_name = "TARGET[:size=64m,mode=1777]")]
    pub tmpfs: Vec<String>,

    /// Make its root read-only
    #[arg(long)]
    pub read_only: bool,

    /// Add a device node of this machine, or a GPU by its CDI name such as nvidia.com/gpu=all; repeatable
    #[arg(long, value_name = "PATH[:TARGET[:rwm]]|CDI")]
    pub device: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Limit memory: 512m, 16g
    #[arg(long, short, value_name = "BYTES")]
    pub memory: Option<String>,

    /// Limit memory and swap together: at least --memory; -1 for unlimited swap
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub memory_swap: Option<String>,

    /// Reserve memory under pressure
    #[arg(long, value_name = "BYTES")]
    pub memory_reservation: Option<String>,

    /// Adjust how readily the kernel kills it when the host is out of memory: -1000 to 1000
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    pub oom_score_adj: Option<i32>,

    /// Set its share of busy processors; the default is 1024
    #[arg(long, short, value_name = "NUMBER", value_parser = cpu_shares)]
    pub cpu_shares: Option<u64>,

    /// Allow only these NUMA nodes: 0-1
    #[arg(long, value_name = "LIST")]
    pub cpuset_mems: Option<String>,

    /// Limit processors: 1.5
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<String>,

    /// Allow only these processors: 0-3,8
    #[arg(long, value_name = "LIST")]
    pub cpuset_cpus: Option<String>,

    /// Limit processes and threads; -1 for no limit
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::PIDS, allow_negative_numbers = true)]
    pub pids_limit: i64,

    /// Set the size of shared memory, which data loaders use
    #[arg(long, value_name = "BYTES", default_value = "64m")]
    pub shm_size: String,

    /// Set a resource limit: nofile=1024:4096; repeatable
    #[arg(long, value_name = "NAME=SOFT[:HARD]")]
    pub ulimit: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub struct NetworkArgs {
    /// Choose the network: auto (its own, with outbound access if pasta or slirp4netns is installed), none (its own, without), host, pasta (with outbound access, or an error)
    #[arg(long, visible_alias = "net", value_name = "NETWORK", default_value = "auto", value_parser = network)]
    pub network: NetworkFlag,

    /// Add a port to those that --publish-all publishes; repeatable
    #[arg(long, value_name = "PORT[/udp]")]
    pub expose: Vec<String>,

    /// Publish all ports that the image exposes on free ports of this machine
    #[arg(long, short = 'P')]
    pub publish_all: bool,

    /// Publish a port on this machine; repeatable
    #[arg(long, short, value_name = "[IP:]HOST:CONTAINER[/udp]")]
    pub publish: Vec<String>,

    /// Set its host name
    #[arg(long, short = 'h')]
    pub hostname: Option<String>,

    /// Add a host to /etc/hosts; the address host-gateway is that of this machine; repeatable
    #[arg(long, value_name = "NAME:ADDRESS")]
    pub add_host: Vec<String>,

    /// Use this name server; repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub dns: Vec<String>,
}

/// A chosen network; none for the one that this machine has the tools for.
pub type NetworkFlag = Option<NetworkMode>;

/// The values of `--network`: the name and its aliases, the help and the meaning.
const NETWORKS: &[(&str, &[&str], &str, NetworkFlag)] = &[
    ("auto", &["bridge", "default"], "Outbound access if a tool for it is installed", None),
    ("none", &[], "No outbound access", Some(NetworkMode::None)),
    ("host", &[], "The host's", Some(NetworkMode::Host)),
    ("pasta", &[], "Outbound access through pasta", Some(NetworkMode::Pasta)),
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub struct SecurityArgs {
    /// Add a capability, or ALL; repeatable
    #[arg(long, value_name = "NAME")]
    pub cap_add: Vec<String>,

    /// Drop a capability, or ALL; repeatable
    #[arg(long, value_name = "NAME")]
    pub cap_drop: Vec<String>,

    /// Set an option: no-new-privileges[=false], seccomp=unconfined|PROFILE.json, label=disable, apparmor=unconfined; repeatable
    #[arg(long, value_name = "OPTION")]
    pub security_opt: Vec<String>,
}

impl FileArgs {
    /// Device nodes, and CDI names of GPUs.
    pub fn devices(&self) -> Result<(Vec<DeviceConfig>, Vec<String>), UsageError> {
        let (mut nodes, mut names) = (Vec::new(), Vec::new());
        for text in &self.device {
            match device(text)? {
                Device::Node(node) => nodes.push(node),
                Device::Gpu(name) => names.push(name),
            }
        }
        Ok((nodes, names))
    }
}

impl LimitArgs {
    pub fn limits(&self) -> Result<Limits, UsageError> {
        // As in docker, 0 means no limit.
        let limits = |text: &&String| text.is_empty() || text.chars().any(|letter| !"0.".contains(letter));
        let memory_limit = self.memory.as_ref().filter(limits).map(|text| memory(text)).transpose()?;
        let swap = self.memory_swap.as_ref().filter(limits);
        let swap = swap.map(|text| memory_swap(text, memory_limit)).transpose()?;
        Ok(Limits {
            memory: memory_limit,
            cpu_millis: self.cpus.as_ref().filter(limits).map(|text| cpu_millis(text)).transpose()?,
            cpuset: self.cpuset_cpus.as_deref().map(cpuset).transpose()?,
            pids: Some(self.pids_limit).filter(|limit| *limit > 0),
            shm: Some(bytes(&self.shm_size)?),
            rlimits: self.ulimit.iter().map(|text| ulimit(text)).collect::<Result<_, _>>()?,
            memory_swap: swap,
            memory_reservation: self.memory_reservation.as_deref().map(bytes).transpose()?,
            cpu_shares: self.cpu_shares.filter(|shares| *shares > 0),
            cpuset_mems: self.cpuset_mems.clone(),
            oom_score_adj: self.oom_score_adj,
        })
    }
}

/// The value of `--ipc`. No other container can join the IPC namespace of one that is shareable.
fn ipc(text: &str) -> Result<Ipc, String> {
    match text {
        "private" | "shareable" => Ok(Ipc::Private),
        "host" => Ok(Ipc::Host),
        _ => Err("use private or host: containers do not share an IPC namespace of their own".to_owned()),
    }
}

/// The value of `--network`.
fn network(text: &str) -> Result<NetworkFlag, &'static str> {
    let chosen = NETWORKS.iter().find(|(name, aliases, ..)| *name == text || aliases.contains(&text));
    chosen.map(|(.., mode)| mode.clone()).ok_or(
        "use auto, none, host or pasta; containers that reach each other on localhost are a group: `cudock up -f FILE`",
    )
}

/// A parser of the same for a verb whose help lists the values.
pub(crate) fn network_values() -> impl TypedValueParser<Value = NetworkFlag> {
    let known = NETWORKS.iter().map(|(name, aliases, help, _)| {
        PossibleValue::new(*name).aliases(aliases.iter().copied()).help(*help)
    });
    PossibleValuesParser::new(known).try_map(|text| network(&text))
}

/// The value of `--cpu-shares`; 0 is the default.
fn cpu_shares(text: &str) -> Result<u64, String> {
    let shares = text.parse().ok().filter(|shares| *shares == 0 || (2..=262_144).contains(shares));
    shares.ok_or_else(|| "write a number from 2 to 262144".to_owned())
}
