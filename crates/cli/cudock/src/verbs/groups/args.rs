//! Arguments of the verbs for groups.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cudock_deploy::DeployFlags;
use cudock_runtime::flags::arguments::NetworkChoice;

/// Run a group of containers or a project here, or deploy it to Azure with --on
///
/// The containers of a group share a network, a localhost and volumes.
/// The file has the format of `az container create --file`. Without -f, runs the group.yaml of DIR, or serves the model of
/// its cudock.toml, as `cudock serve` does. Paths in the file are relative to its directory. In the foreground, Ctrl-C stops
/// the group, and a second one kills it. Exit code 1 means that the group failed or did not become ready. See
/// docs/groups.md, and docs/deploy.md for Azure.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock up -f group.yaml
  cudock up -f group.yaml --detach --publish 18080:8080 --timeout 10m
  cudock up -f group.yaml --gpus none
  cudock up -f group.yaml --volume share=./data --network none
  cudock up examples/digits
  cudock up examples/digits --on container-apps --dry-run
  cudock up . --on vm --spot --try 3 --ttl 4h --budget 10 -- python train.py")]
pub(crate) struct UpArgs {
    /// Run the group.yaml or cudock.toml of this directory
    #[arg(value_name = "DIR", conflicts_with = "file")]
    pub(crate) directory: Option<PathBuf>,

    /// Run this group file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Return as soon as all containers are ready
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// Stop waiting for readiness after this time and remove the group: 90s, 5m, 1h; 0 waits forever
    #[arg(long, value_name = "TIME", default_value = "5m", requires = "detach")]
    pub(crate) timeout: String,

    /// Keep a group that does not become ready
    #[arg(long, requires = "detach")]
    pub(crate) keep: bool,

    /// Run containers without the GPUs they request: none; `all` assigns them
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = GpuChoice::All)]
    pub(crate) gpus: GpuChoice,

    /// Override the name in the file
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// Use a directory of this machine as a volume; repeatable
    #[arg(long, value_name = "NAME=DIR")]
    pub(crate) volume: Vec<String>,

    /// Publish a port of the group on another port of this machine, or one that the file does not publish; repeatable
    #[arg(long, short, value_name = "[IP:]HOST:CONTAINER[/udp]")]
    pub(crate) publish: Vec<String>,

    /// Serve a project on this port; 0 takes a free one
    #[arg(long, value_name = "PORT", conflicts_with = "file")]
    pub(crate) port: Option<u16>,

    /// Choose the network: auto (its own, with outbound access if pasta or slirp4netns is installed), none (its own,
    /// without), host, pasta (with outbound access, or an error)
    #[arg(long, value_enum, default_value_t = NetworkChoice::Auto)]
    pub(crate) network: NetworkChoice,

    /// Look for the driver's files in this root
    #[arg(long, value_name = "DIR")]
    pub(crate) driver_root: Option<PathBuf>,

    /// Look for the driver's device nodes and kernel interfaces in this root
    #[arg(long, value_name = "DIR")]
    pub(crate) device_root: Option<PathBuf>,

    /// Use only what is in the cache
    #[arg(long)]
    pub(crate) offline: bool,

    #[command(flatten)]
    pub(crate) deploy: DeployFlags,

    /// With --on: run this program with these arguments, not those of the image
    #[arg(last = true, value_name = "COMMAND", requires = "on")]
    pub(crate) command: Vec<String>,
}

/// Which GPUs the containers of a group get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuChoice {
    /// What the file requests
    All,
    /// None
    None,
}

/// Stop and remove a group, or delete a deployment on Azure
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock down classifier
  cudock down -f group.yaml --time 60
  cudock down --all")]
pub(crate) struct DownArgs {
    /// The group or deployment
    #[arg(value_name = "NAME", required_unless_present_any = ["file", "all"], conflicts_with_all = ["file", "all"])]
    pub(crate) name: Option<String>,

    /// Delete all deployments on Azure
    #[arg(long, conflicts_with = "file")]
    pub(crate) all: bool,

    /// Stop the group of this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Kill its containers this many seconds after the stop signal
    #[arg(long, short, value_name = "SECONDS")]
    pub(crate) time: Option<u32>,
}

/// List groups and their containers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock groups\n  cudock groups --format json")]
pub(crate) struct GroupsArgs {
    /// Show only this group, with its containers
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Arguments of a supervisor.
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// The group's directory.
    pub(crate) group: PathBuf,
    /// The descriptor of the input.
    #[arg(long)]
    pub(crate) handed: i32,
    /// The descriptor of the lock on the group.
    #[arg(long)]
    pub(crate) lock: i32,
    /// Whether the output of containers is printed.
    #[arg(long)]
    pub(crate) attached: bool,
    /// The descriptor to report the start on.
    #[arg(long)]
    pub(crate) ready: Option<i32>,
}
