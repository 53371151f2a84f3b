//! Arguments of the verbs that run containers, named as in docker.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Run a container on this machine, with GPU access
///
/// Needs no daemon and no NVIDIA toolkit: the driver's files and device nodes are found when the container starts. IMAGE is
/// a name in a registry or a daemon, an OCI layout, or an archive. The exit code is the program's; 126 means that it could
/// not be executed, 127 that it was not found, 2 and 3 that no container was started. See docs/run.md.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(disable_help_flag = true, args_override_self = true)]
#[command(after_help = "Examples:
  cudock run --gpus all oci:./layout nvidia-smi
  cudock run --rm -it -v $PWD:/work -w /work registry.example/team/train:1.4 bash
  cudock run -d --name api --gpus 1 -p 8080:80 --restart always -m 16g app.tar
  cudock run --rm --init --ipc host --device nvidia.com/gpu=all -v models:/models IMAGE python train.py
  cudock run --gpus '\"device=0,1\",capabilities=utility' --verify-gpu IMAGE
  cudock run --rootfs ./debian --network none -- /bin/sh -c 'id; ls /'")]
pub(crate) struct RunArgs {
    /// Run this image and command; with --rootfs, the command alone
    #[arg(value_name = "IMAGE [COMMAND]", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,

    /// Use a directory in place of an image; it is not written to
    #[arg(long, value_name = "DIR")]
    pub(crate) rootfs: Option<PathBuf>,

    /// Return as soon as it runs, and print its id
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// Set its name
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Remove it when it exits
    #[arg(long)]
    pub(crate) rm: bool,

    /// Attach standard input
    #[arg(long, short)]
    pub(crate) interactive: bool,

    /// Allocate a terminal
    #[arg(long, short)]
    pub(crate) tty: bool,

    #[command(flatten)]
    pub(crate) gpus: GpuArgs,

    #[command(flatten)]
    pub(crate) process: ProcessArgs,

    #[command(flatten)]
    pub(crate) files: FileArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) security: SecurityArgs,

    /// Restart it when it exits: no, on-failure, on-failure:N, always
    #[arg(long, value_name = "POLICY", default_value = "no")]
    pub(crate) restart: String,

    /// Stop it with this signal; by default the image's, or TERM
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) stop_signal: Option<String>,

    /// Kill it this many seconds after the stop signal
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) stop_timeout: u32,

    /// Add a label; repeatable
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) label: Vec<String>,

    /// Choose the platform of the image, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) platform: Option<String>,

    /// Use only what is in the cache
    #[arg(long)]
    pub(crate) offline: bool,

    /// Check the registry for the image: always (default; cached layers are not fetched again), missing, never
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) pull: Option<PullChoice>,

    /// Write the container's id to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) cidfile: Option<PathBuf>,

    /// Forward signals to the container; only true is supported
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    pub(crate) sig_proxy: bool,

    /// Accept docker's flag: no health check is run
    #[arg(long, hide = true)]
    pub(crate) no_healthcheck: bool,

    /// Accept docker's flag: logs are kept as json-file keeps them
    #[arg(long, value_name = "DRIVER", hide = true)]
    pub(crate) log_driver: Option<String>,

    /// Accept `nvidia` and `runc`; nvidia without --gpus provides all GPUs, or those in `-e NVIDIA_VISIBLE_DEVICES`
    #[arg(long, value_name = "RUNTIME")]
    pub(crate) runtime: Option<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    pub(crate) help: Option<bool>,
}

/// When the registry is queried for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PullChoice {
    /// Query the registry every time
    Always,
    /// Query only for an image that is not in the cache
    Missing,
    /// Fail for an image that is not in the cache
    Never,
}

/// The engine that runs containers.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Use this engine: cudock itself, docker or podman
    #[arg(long, value_enum, default_value_t = EngineChoice::Auto, env = crate::env::ENGINE)]
    pub(crate) engine: EngineChoice,
}

#[derive(Debug, Args)]
pub(crate) struct ContainersArgs {
    /// The containers
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// cudock itself
    Auto,
    /// cudock itself
    Cudock,
    /// Docker, through its command
    Docker,
    /// Podman, through its command
    Podman,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "GPUs")]
pub(crate) struct GpuArgs {
    /// Add GPUs: all, none, a count, indices, UUIDs, MIG devices (0:1), or docker's device=…
    #[arg(long, value_name = "WHICH")]
    pub(crate) gpus: Option<String>,

    /// Add parts of the driver: compute, utility, video, graphics, display, ngx, compat32, all
    #[arg(long, value_name = "LIST")]
    pub(crate) driver_capabilities: Option<String>,

    /// Look for the driver's files in this root
    #[arg(long, value_name = "DIR")]
    pub(crate) driver_root: Option<PathBuf>,

    /// Look for the driver's device nodes and kernel interfaces in this root
    #[arg(long, value_name = "DIR")]
    pub(crate) device_root: Option<PathBuf>,

    /// Compute on every GPU from inside the container first, and print the result
    #[arg(long)]
    pub(crate) verify_gpu: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Process")]
pub(crate) struct ProcessArgs {
    /// Set a variable, or pass on one of ours by name; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Read variables from a file, one per line; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,

    /// Override the image's entry point
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) entrypoint: Option<String>,

    /// Set the working directory
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    /// Run as this user, by name or number, and group
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub(crate) user: Option<String>,

    /// Add a supplementary group; repeatable
    #[arg(long, value_name = "GROUP")]
    pub(crate) group_add: Vec<String>,

    /// Run an init as PID 1 that forwards signals and reaps processes
    #[arg(long)]
    pub(crate) init: bool,

    /// Set the IPC namespace, which includes shared memory
    #[arg(long, value_enum, default_value_t = IpcChoice::Private)]
    pub(crate) ipc: IpcChoice,

    /// Set a namespaced kernel parameter, such as net.core.somaxconn=1024; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) sysctl: Vec<String>,

    /// Accept docker's flag: private is what a container gets
    #[arg(long, value_name = "MODE", hide = true)]
    pub(crate) cgroupns: Option<String>,

    /// Accept docker's flag: host is what root gets
    #[arg(long, value_name = "MODE", hide = true)]
    pub(crate) userns: Option<String>,
}

/// The IPC namespace of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IpcChoice {
    /// Its own
    Private,
    /// Its own; other containers cannot join it
    Shareable,
    /// The host's
    Host,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileArgs {
    /// Mount a path of this machine or a named volume; repeatable
    #[arg(long, short, value_name = "SOURCE|NAME:TARGET[:ro]")]
    pub(crate) volume: Vec<String>,

    /// Mount as docker's --mount does: `type=bind|volume|tmpfs,source=…,target=…[,readonly]`; repeatable
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) mount: Vec<String>,

    /// Mount a tmpfs; repeatable
    #[arg(long, value_name = "TARGET[:size=64m,mode=1777]")]
    pub(crate) tmpfs: Vec<String>,

    /// Make its root read-only
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Add a device node of this machine, or a GPU by its CDI name such as nvidia.com/gpu=all; repeatable
    #[arg(long, value_name = "PATH[:TARGET[:rwm]]|CDI")]
    pub(crate) device: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Limit memory: 512m, 16g
    #[arg(long, short, value_name = "BYTES")]
    pub(crate) memory: Option<String>,

    /// Limit memory and swap together: at least --memory; -1 for unlimited swap
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) memory_swap: Option<String>,

    /// Reserve memory under pressure
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory_reservation: Option<String>,

    /// Adjust how readily the kernel kills it when the host is out of memory: -1000 to 1000
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    pub(crate) oom_score_adj: Option<i32>,

    /// Set its share of busy processors; the default is 1024
    #[arg(long, short, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(2..=262_144))]
    pub(crate) cpu_shares: Option<u64>,

    /// Allow only these NUMA nodes: 0-1
    #[arg(long, value_name = "LIST")]
    pub(crate) cpuset_mems: Option<String>,

    /// Limit processors: 1.5
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus: Option<String>,

    /// Allow only these processors: 0-3,8
    #[arg(long, value_name = "LIST")]
    pub(crate) cpuset_cpus: Option<String>,

    /// Limit processes and threads; -1 for no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 16384, allow_negative_numbers = true)]
    pub(crate) pids_limit: i64,

    /// Set the size of shared memory, which data loaders use
    #[arg(long, value_name = "BYTES", default_value = "64m")]
    pub(crate) shm_size: String,

    /// Set a resource limit: nofile=1024:4096; repeatable
    #[arg(long, value_name = "NAME=SOFT[:HARD]")]
    pub(crate) ulimit: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// Choose the network: auto (its own, with outbound access if pasta or slirp4netns is installed), none (its own, without), host, pasta (with outbound access, or an error)
    #[arg(long, visible_alias = "net", value_enum, default_value_t = NetworkChoice::Auto)]
    pub(crate) network: NetworkChoice,

    /// Accept docker's flag: it has no effect
    #[arg(long, value_name = "PORT", hide = true)]
    pub(crate) expose: Vec<String>,

    /// Publish a port on this machine; repeatable
    #[arg(long, short, value_name = "[IP:]HOST:CONTAINER[/udp]")]
    pub(crate) publish: Vec<String>,

    /// Set its host name
    #[arg(long, short = 'h')]
    pub(crate) hostname: Option<String>,

    /// Add a host to /etc/hosts; repeatable
    #[arg(long, value_name = "NAME:ADDRESS")]
    pub(crate) add_host: Vec<String>,

    /// Use this name server; repeatable
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dns: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkChoice {
    /// Outbound access if a tool for it is installed
    #[value(alias = "bridge", alias = "default")]
    Auto,
    /// No outbound access
    None,
    /// The host's
    Host,
    /// Outbound access through pasta
    Pasta,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub(crate) struct SecurityArgs {
    /// Add a capability, or ALL; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) cap_add: Vec<String>,

    /// Drop a capability, or ALL; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) cap_drop: Vec<String>,

    /// Set an option: no-new-privileges[=false], seccomp=unconfined|PROFILE.json, label=disable, apparmor=unconfined; repeatable
    #[arg(long, value_name = "OPTION")]
    pub(crate) security_opt: Vec<String>,
}

/// List deployments on Azure and containers on this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock ps\n  cudock ps --all --format json")]
pub(crate) struct PsArgs {
    /// List those that have exited or were deleted, too
    #[arg(long, short)]
    pub(crate) all: bool,

    /// Show the last known state of deployments, and do not query Azure
    #[arg(long)]
    pub(crate) offline: bool,

    /// Print only ids
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Print the log of a container
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock logs -f api\n  cudock logs --tail 20 --timestamps 3f2a\n  cudock logs --since 10m classifier/model"
)]
pub(crate) struct LogsArgs {
    /// A container, a group's container as GROUP/NAME, a group, or a deployment
    pub(crate) container: String,

    /// Wait for new lines
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Print only the last lines, or `all`
    #[arg(long, short = 'n', value_name = "LINES")]
    pub(crate) tail: Option<String>,

    /// Print only lines since a time: 10m, 1h30m, 2026-11-15T12:30:00Z, seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,

    /// Print only lines before a time, in the format of --since
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,

    /// Print the time before each line
    #[arg(long, short)]
    pub(crate) timestamps: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Run another process in a container
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock exec api nvidia-smi\n  cudock exec -it api bash\n  cudock exec -u nobody -w /tmp api id"
)]
pub(crate) struct ExecArgs {
    /// Attach standard input
    #[arg(long, short)]
    pub(crate) interactive: bool,

    /// Allocate a terminal
    #[arg(long, short)]
    pub(crate) tty: bool,

    /// Set a variable; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Run as this user
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub(crate) user: Option<String>,

    /// Set the working directory
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    /// A container, GROUP/NAME, or a group with one container
    pub(crate) container: String,

    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

/// Stop containers, and kill them if they do not stop
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock stop api\n  cudock stop --time 60 trainer")]
pub(crate) struct StopArgs {
    /// Kill them this many seconds after the stop signal; by default the container's own setting
    #[arg(long, short, value_name = "SECONDS")]
    pub(crate) time: Option<u32>,

    #[command(flatten)]
    pub(crate) targets: ContainersArgs,
}

/// Remove containers and their files
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock rm api\n  cudock rm -f api trainer\n  cudock rm --all")]
pub(crate) struct RmArgs {
    /// The containers
    #[arg(required_unless_present = "all")]
    pub(crate) containers: Vec<String>,

    /// Kill those that run
    #[arg(long, short)]
    pub(crate) force: bool,

    /// Remove all of them
    #[arg(long, conflicts_with = "containers")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Remove unpacked images that no container uses
///
/// Unpacked layers are kept for the next container. This removes those that no container on this machine uses, running or
/// not; they are fetched and unpacked again when needed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock prune\n  cudock prune --format json")]
pub(crate) struct PruneArgs {}

/// Wait until containers have exited, and print their exit codes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock wait trainer\n  cudock wait classifier")]
pub(crate) struct WaitArgs {
    /// Containers, or groups
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Print everything about containers, as JSON
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock inspect-container api | jq .status")]
pub(crate) struct InspectContainerArgs {
    #[command(flatten)]
    pub(crate) targets: ContainersArgs,
}
