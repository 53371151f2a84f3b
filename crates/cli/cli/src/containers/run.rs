//! Arguments of the verbs that run containers, named as in docker.

use std::path::PathBuf;

use super::container::{FileArgs, GpuArgs, LimitArgs, NetworkArgs, ProcessArgs, SecurityArgs};
use super::docker;
use clap::{ArgAction, Args, ValueEnum};
use cudock_image::Pull;
use cudock_runtime::container::config::ContainerConfig;

use crate::env::ENGINE;
use cudock_project::choice;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(disable_help_flag = true, args_override_self = true, mut_args = docker::read_as_docker)]
#[command(after_help = "Examples:
  cudock run --gpus all oci:./layout nvidia-smi
  cudock run --rm -it -v $PWD:/work -w /work registry.example/team/train:1.4 bash
  cudock run -d --name api --gpus 1 -p 8080:80 --restart always -m 16g ./app.tar
  cudock run --rm --init --ipc host --device nvidia.com/gpu=all -v models:/models IMAGE python train.py
  cudock run --gpus '\"device=0,1\",capabilities=utility' --verify-gpu IMAGE
  cudock run --rootfs ./debian --network none -- /bin/sh -c 'id; ls /'")]
pub struct RunArgs {
    /// Run this image and command; with --rootfs, the command alone
    #[arg(value_name = "IMAGE [COMMAND]", trailing_var_arg = true)]
    pub command: Vec<String>,

    /// Use a directory in place of an image; it is not written to
    #[arg(long, value_name = "DIR")]
    pub rootfs: Option<PathBuf>,

    /// Return as soon as it runs, and print its id
    #[arg(long, short)]
    pub detach: bool,

    /// Set its name
    #[arg(long)]
    pub name: Option<String>,

    /// Remove it when it exits
    #[arg(long)]
    pub rm: bool,

    /// Attach standard input
    #[arg(long, short)]
    pub interactive: bool,

    /// Allocate a terminal
    #[arg(long, short)]
    pub tty: bool,

    #[command(flatten)]
    pub gpus: GpuArgs,

    #[command(flatten)]
    pub process: ProcessArgs,

    #[command(flatten)]
    pub files: FileArgs,

    #[command(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    pub network: NetworkArgs,

    #[command(flatten)]
    pub security: SecurityArgs,

    /// Restart it when it exits: no, on-failure, on-failure:N, always
    #[arg(long, value_name = "POLICY", default_value = "no")]
    pub restart: String,

    /// Stop it with this signal; by default the image's, or TERM
    #[arg(long, value_name = "SIGNAL")]
    pub stop_signal: Option<String>,

    /// Kill it this many seconds after the stop signal
    #[arg(long, value_name = "SECONDS", default_value_t = ContainerConfig::STOP_SECONDS)]
    pub stop_timeout: u32,

    /// Add a label; repeatable
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub label: Vec<String>,

    /// Add an annotation to the OCI specification; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub annotation: Vec<String>,

    /// Keep its output: json-file, local (the same), or none
    #[arg(long, value_name = "DRIVER")]
    pub log_driver: Option<String>,

    /// Set an option of the log: max-size=10m, max-file=3; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub log_opt: Vec<String>,

    /// Sign with this private key that the image passed --verify-gpu, and attach the proof to it
    #[arg(long, value_name = "KEY", requires = "verify_gpu", conflicts_with = "rootfs")]
    pub sign_proof: Option<PathBuf>,

    /// Refuse an image without a proof that this public key signed; see --sign-proof
    #[arg(long, value_name = "KEY")]
    pub require_proof: Option<PathBuf>,

    /// Choose the platform of the image, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub platform: Option<String>,

    /// Use only what is in the cache
    #[arg(long)]
    pub offline: bool,

    /// Check the registry for the image: always (default; cached layers are not fetched again), missing, never
    #[arg(long, value_name = "WHEN", value_parser = choice(PULL))]
    pub pull: Option<Pull>,

    /// Write the container's id to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    pub cidfile: Option<PathBuf>,

    /// Forward signals to the container; only true is supported
    #[arg(long, default_value = "true", hide = true)]
    pub sig_proxy: bool,

    /// Accept docker's flag: no health check is run
    #[arg(long, hide = true)]
    pub no_healthcheck: bool,

    /// Accept `nvidia` and `runc`; nvidia without --gpus provides all GPUs, or those in `-e NVIDIA_VISIBLE_DEVICES`
    #[arg(long, value_name = "RUNTIME")]
    pub runtime: Option<String>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    pub help: Option<bool>,
}

/// When the registry is queried for an image.
const PULL: &[(&str, &str, Pull)] = &[
    ("always", "Query the registry every time", Pull::Always),
    ("missing", "Query only for an image that is not in the cache", Pull::Missing),
    ("never", "Fail for an image that is not in the cache", Pull::Never),
];

/// The engine that runs containers.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Use this engine: cudock itself, docker or podman
    #[arg(long, value_enum, default_value_t = EngineChoice::Auto, env = ENGINE)]
    pub engine: EngineChoice,
}

#[derive(Debug, Args)]
pub struct ContainersArgs {
    /// The containers
    #[arg(required = true)]
    pub containers: Vec<String>,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
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
#[command(mut_arg("quiet", |arg| arg.help("Print only ids")))]
#[command(after_help = "Examples:\n  cudock ps\n  cudock ps --all --format json")]
pub struct PsArgs {
    /// List those that have exited or were deleted, too
    #[arg(long, short)]
    pub all: bool,

    /// Show the last known state of deployments, and do not query Azure
    #[arg(long)]
    pub offline: bool,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock logs -f api\n  cudock logs --tail 20 --timestamps 3f2a\n  cudock logs --since 10m classifier/model"
)]
pub struct LogsArgs {
    /// A container, a group's container as GROUP/NAME, a group, or a deployment
    pub container: String,

    /// Wait for new lines
    #[arg(long, short)]
    pub follow: bool,

    /// Print only the last lines, or `all`
    #[arg(long, short = 'n', value_name = "LINES")]
    pub tail: Option<String>,

    /// Print only lines since a time: 10m, 1h30m, 2026-11-15T12:30:00Z, seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,

    /// Print only lines before a time, in the format of --since
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,

    /// Print the time before each line
    #[arg(long, short)]
    pub timestamps: bool,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock exec api nvidia-smi\n  cudock exec -it api bash\n  cudock exec -u nobody -w /tmp api id"
)]
pub struct ExecArgs {
    /// Attach standard input
    #[arg(long, short)]
    pub interactive: bool,

    /// Allocate a terminal
    #[arg(long, short)]
    pub tty: bool,

    /// Set a variable; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,

    /// Run as this user
    #[arg(long, short, value_name = "USER[:GROUP]")]
    pub user: Option<String>,

    /// Set the working directory
    #[arg(long, short, value_name = "DIR")]
    pub workdir: Option<String>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// A container, GROUP/NAME, a group with one container, or a deployment on a virtual machine
    pub container: String,

    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock stop api\n  cudock stop --time 60 trainer")]
pub struct StopArgs {
    /// Kill them this many seconds after the stop signal; by default the container's own setting
    #[arg(long, short, value_name = "SECONDS")]
    pub time: Option<u32>,

    #[command(flatten)]
    pub targets: ContainersArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock rm api\n  cudock rm -f api trainer\n  cudock rm --all")]
pub struct RmArgs {
    /// The containers
    #[arg(required_unless_present = "all")]
    pub containers: Vec<String>,

    /// Kill those that run
    #[arg(long, short)]
    pub force: bool,

    /// Remove all of them
    #[arg(long, conflicts_with = "containers")]
    pub all: bool,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock prune\n  cudock prune --format json")]
pub struct PruneArgs {}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock wait trainer\n  cudock wait classifier")]
pub struct WaitArgs {
    /// Containers, or groups
    #[arg(required = true)]
    pub containers: Vec<String>,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock inspect-container api | jq .status")]
pub struct InspectContainerArgs {
    #[command(flatten)]
    pub targets: ContainersArgs,
}
