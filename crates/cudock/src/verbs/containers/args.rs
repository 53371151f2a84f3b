//! The words of the verbs that run containers. They are docker's where docker has one for it.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Run a container on this machine, with the GPUs inside
///
/// No daemon and no toolkit of the vendor is needed: the driver's files and device nodes are found when the container
/// starts. IMAGE is a name in a registry or a daemon, an OCI layout, or an archive. The exit code is the program's; 126
/// and 127 say that it could not be executed or was not there, 2 and 3 that there was no container. See docs/run.md.
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
    /// IMAGE and the command to run in it, or the command alone with --rootfs
    #[arg(value_name = "IMAGE [COMMAND]", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,

    /// A directory in place of an image; it is not written to
    #[arg(long, value_name = "DIR")]
    pub(crate) rootfs: Option<PathBuf>,

    /// Come back as soon as it runs, and print its id
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// A name to call it by
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Remove it when it ends
    #[arg(long)]
    pub(crate) rm: bool,

    /// Let it read our standard input
    #[arg(long, short)]
    pub(crate) interactive: bool,

    /// Give it a terminal
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

    /// What happens when it ends: no, on-failure, on-failure:N, always
    #[arg(long, value_name = "POLICY", default_value = "no")]
    pub(crate) restart: String,

    /// The signal that asks it to stop; the image's, or TERM
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) stop_signal: Option<String>,

    /// Seconds between asking it to stop and killing it
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) stop_timeout: u32,

    /// A label; may be given several times
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) label: Vec<String>,

    /// Which image of several, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) platform: Option<String>,

    /// Use what the cache holds, and fetch nothing
    #[arg(long)]
    pub(crate) offline: bool,

    /// Ask the registry: always (default; layers that are here are not fetched again), missing, never
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) pull: Option<PullChoice>,

    /// Print no progress while fetching
    #[arg(long, short)]
    pub(crate) quiet: bool,

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

    /// Accept `nvidia` and `runc`; nvidia without --gpus gives all GPUs, or those of `-e NVIDIA_VISIBLE_DEVICES`
    #[arg(long, value_name = "RUNTIME")]
    pub(crate) runtime: Option<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    pub(crate) help: Option<bool>,
}

/// When the registry is asked for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PullChoice {
    /// Ask the registry what the name stands for now
    Always,
    /// Ask only for an image that is not on this machine
    Missing,
    /// Fail for an image that is not on this machine
    Never,
}

/// Who runs the container.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Who runs it: cudock itself, or an engine that is installed
    #[arg(long, value_enum, default_value_t = EngineChoice::Auto, env = crate::env::ENGINE)]
    pub(crate) engine: EngineChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// cudock itself
    Auto,
    /// cudock itself
    Cudock,
    /// Docker, by its command
    Docker,
    /// Podman, by its command
    Podman,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "GPUs")]
pub(crate) struct GpuArgs {
    /// GPUs: all, none, a number of them, indices, UUIDs, MIG devices (0:1), or docker's device=…
    #[arg(long, value_name = "WHICH")]
    pub(crate) gpus: Option<String>,

    /// Parts of the driver: compute, utility, video, graphics, display, ngx, compat32, all
    #[arg(long, value_name = "LIST")]
    pub(crate) driver_capabilities: Option<String>,

    /// Where the driver's files are, if not where they are found
    #[arg(long, value_name = "DIR")]
    pub(crate) driver_root: Option<PathBuf>,

    /// Where /dev and /proc of the driver are, if not below its root
    #[arg(long, value_name = "DIR")]
    pub(crate) device_root: Option<PathBuf>,

    /// First compute on every GPU from inside the container, and say what was seen
    #[arg(long)]
    pub(crate) verify_gpu: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Process")]
pub(crate) struct ProcessArgs {
    /// A variable, or the name of one of ours to hand down; may be given several times
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// A file of variables, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,

    /// What runs in place of the image's entry point
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) entrypoint: Option<String>,

    /// Where it starts
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    /// As whom: name or number, and a group after a colon
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub(crate) user: Option<String>,

    /// A further group; may be given several times
    #[arg(long, value_name = "GROUP")]
    pub(crate) group_add: Vec<String>,

    /// Run an init as PID 1 that forwards signals and reaps processes
    #[arg(long)]
    pub(crate) init: bool,

    /// Share IPC and /dev/shm with the host: host; private or shareable for its own
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

/// Whose IPC a container uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IpcChoice {
    /// Its own
    Private,
    /// Its own; nobody can join it here
    Shareable,
    /// The host's
    Host,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileArgs {
    /// Mount a path of this machine, or a named volume, in it; repeatable
    #[arg(long, short, value_name = "SOURCE|NAME:TARGET[:ro]")]
    pub(crate) volume: Vec<String>,

    /// Mount as docker's --mount does: `type=bind|volume|tmpfs,source=…,target=…[,readonly]`; repeatable
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) mount: Vec<String>,

    /// Memory as a directory; may be given several times
    #[arg(long, value_name = "TARGET[:size=64m,mode=1777]")]
    pub(crate) tmpfs: Vec<String>,

    /// Let its root only be read
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Add a device node of this machine, or a GPU by its CDI name such as nvidia.com/gpu=all; repeatable
    #[arg(long, value_name = "PATH[:TARGET[:rwm]]|CDI")]
    pub(crate) device: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Memory: 512m, 16g
    #[arg(long, short, value_name = "BYTES")]
    pub(crate) memory: Option<String>,

    /// Memory and swap together: at least --memory; -1 for unlimited swap
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) memory_swap: Option<String>,

    /// Memory the kernel tries to leave it under pressure
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory_reservation: Option<String>,

    /// How readily the kernel kills it when the host is out of memory: -1000 to 1000
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    pub(crate) oom_score_adj: Option<i32>,

    /// Its share of busy processors; others have 1024
    #[arg(long, short, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(2..=262_144))]
    pub(crate) cpu_shares: Option<u64>,

    /// Which NUMA nodes: 0-1
    #[arg(long, value_name = "LIST")]
    pub(crate) cpuset_mems: Option<String>,

    /// Processors: 1.5
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus: Option<String>,

    /// Which processors: 0-3,8
    #[arg(long, value_name = "LIST")]
    pub(crate) cpuset_cpus: Option<String>,

    /// Processes and threads; -1 for no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 16384, allow_negative_numbers = true)]
    pub(crate) pids_limit: i64,

    /// Size of /dev/shm, which data loaders share batches through
    #[arg(long, value_name = "BYTES", default_value = "64m")]
    pub(crate) shm_size: String,

    /// A resource limit: nofile=1024:4096; may be given several times
    #[arg(long, value_name = "NAME=SOFT[:HARD]")]
    pub(crate) ulimit: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// auto: one of its own with a way out where pasta or slirp4netns is installed, without one where not; none: one of its own without a way out; host: this machine's; pasta: a way out, or an error
    #[arg(long, visible_alias = "net", value_enum, default_value_t = NetworkChoice::Auto)]
    pub(crate) network: NetworkChoice,

    /// Accept docker's flag: ports inside need no word to be reached
    #[arg(long, value_name = "PORT", hide = true)]
    pub(crate) expose: Vec<String>,

    /// A port of this machine that leads into it; may be given several times
    #[arg(long, short, value_name = "[IP:]HOST:CONTAINER[/udp]")]
    pub(crate) publish: Vec<String>,

    /// The name it has for itself
    #[arg(long, short = 'h')]
    pub(crate) hostname: Option<String>,

    /// A name it knows; may be given several times
    #[arg(long, value_name = "NAME:ADDRESS")]
    pub(crate) add_host: Vec<String>,

    /// A name server in place of this machine's; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dns: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkChoice {
    /// A way out where there is a tool for it
    #[value(alias = "bridge", alias = "default")]
    Auto,
    /// No way out
    None,
    /// This machine's own
    Host,
    /// A way out through pasta
    Pasta,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Rights")]
pub(crate) struct SecurityArgs {
    /// A capability beside the default ones, or ALL; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) cap_add: Vec<String>,

    /// A default capability to take away, or ALL; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) cap_drop: Vec<String>,

    /// no-new-privileges[=false], seccomp=unconfined|PROFILE.json, label=disable, apparmor=unconfined; repeatable
    #[arg(long, value_name = "OPTION")]
    pub(crate) security_opt: Vec<String>,
}

/// List containers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock ps\n  cudock ps --all --format json")]
pub(crate) struct PsArgs {
    /// Those that ended, too
    #[arg(long, short)]
    pub(crate) all: bool,

    /// Print ids alone
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Print what a container wrote, also after its end
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock logs -f api\n  cudock logs --tail 20 --timestamps 3f2a\n  cudock logs --since 10m classifier/model"
)]
pub(crate) struct LogsArgs {
    /// A container, a group's container as GROUP/NAME, or a group
    pub(crate) container: String,

    /// Go on as it grows
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Print only the last lines; `all` for every one
    #[arg(long, short = 'n', value_name = "LINES")]
    pub(crate) tail: Option<String>,

    /// Print only lines since a time: 10m, 1h30m, 2026-11-15T12:30:00Z, seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,

    /// Print only lines before a time, written as for --since
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,

    /// Begin each line with its time
    #[arg(long, short)]
    pub(crate) timestamps: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Run a further process in a container
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock exec api nvidia-smi\n  cudock exec -it api bash\n  cudock exec -u nobody -w /tmp api id"
)]
pub(crate) struct ExecArgs {
    /// Let it read our standard input
    #[arg(long, short)]
    pub(crate) interactive: bool,

    /// Give it a terminal
    #[arg(long, short)]
    pub(crate) tty: bool,

    /// A variable over the container's; may be given several times
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// As whom
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub(crate) user: Option<String>,

    /// Where it starts
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

/// Ask containers to end, and end them if they do not
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock stop api\n  cudock stop --time 60 trainer")]
pub(crate) struct StopArgs {
    /// The containers
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    /// Seconds between asking and killing; the container's own without it
    #[arg(long, short, value_name = "SECONDS")]
    pub(crate) time: Option<u32>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Remove containers and all they wrote
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock rm api\n  cudock rm -f api trainer\n  cudock rm --all")]
pub(crate) struct RmArgs {
    /// The containers
    #[arg(required_unless_present = "all")]
    pub(crate) containers: Vec<String>,

    /// End those that run
    #[arg(long, short)]
    pub(crate) force: bool,

    /// All of them
    #[arg(long, conflicts_with = "containers")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Remove unpacked images that no container is made of
///
/// Layers are kept for the next container once they are unpacked. This removes those that no container on this machine
/// is made of, running or not; they are fetched and unpacked again when they are needed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock prune\n  cudock prune --format json")]
pub(crate) struct PruneArgs {}

/// Wait until containers have ended, and print what they ended with
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock wait trainer\n  cudock wait classifier")]
pub(crate) struct WaitArgs {
    /// Containers, or groups
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Print everything that is known of containers, as JSON
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock inspect-container api | jq .status")]
pub(crate) struct InspectContainerArgs {
    /// The containers
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}
