//! `cudock up`, `down` and `groups`, and the hidden `supervise`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cudock_project::DeployFlags;

use crate::NetworkFlag;
use crate::containers::network_values;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock up -f group.yaml
  cudock up -f group.yaml --detach --publish 18080:8080 --timeout 10m
  cudock up -f group.yaml --gpus none
  cudock up -f group.yaml --volume share=./data --network none
  cudock up examples/digits
  cudock up examples/digits --on container-apps --dry-run
  cudock up . --on vm --spot --try 3 --ttl 4h --budget 10 -- python train.py")]
pub struct UpArgs {
    /// Run the group.yaml or cudock.toml of this directory
    #[arg(value_name = "DIR", conflicts_with = "file")]
    pub directory: Option<PathBuf>,

    /// Run this group file
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Return as soon as all containers are ready
    #[arg(long, short)]
    pub detach: bool,

    /// Stop waiting for readiness after this time and remove the group: 90s, 5m, 1h; 0 waits forever
    #[arg(long, value_name = "TIME", default_value = "5m", requires = "detach")]
    pub timeout: String,

    /// Keep a group that does not become ready
    #[arg(long, requires = "detach")]
    pub keep: bool,

    /// Run containers without the GPUs they request: none; `all` assigns them
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = GpuChoice::All)]
    pub gpus: GpuChoice,

    /// Override the name in the file
    #[arg(long)]
    pub name: Option<String>,

    /// Use a directory of this machine as a volume; repeatable
    #[arg(long, value_name = "NAME=DIR")]
    pub volume: Vec<String>,

    /// Publish a port of the group on another port of this machine, or one that the file does not publish; repeatable
    #[arg(long, short, value_name = "[IP:]HOST:CONTAINER[/udp]")]
    pub publish: Vec<String>,

    /// Serve a project on this port; 0 takes a free one
    #[arg(long, value_name = "PORT", conflicts_with = "file")]
    pub port: Option<u16>,

    /// Choose the network: auto (its own, with outbound access if pasta or slirp4netns is installed), none (its own,
    /// without), host, pasta (with outbound access, or an error)
    #[arg(long, default_value = "auto", value_parser = network_values())]
    pub network: NetworkFlag,

    /// Look for the driver's files in this root
    #[arg(long, value_name = "DIR")]
    pub driver_root: Option<PathBuf>,

    /// Look for the driver's device nodes and kernel interfaces in this root
    #[arg(long, value_name = "DIR")]
    pub device_root: Option<PathBuf>,

    /// Use only what is in the cache
    #[arg(long)]
    pub offline: bool,

    #[command(flatten)]
    pub deploy: DeployFlags,

    /// With --on: run this program with these arguments, not those of the image
    #[arg(last = true, value_name = "COMMAND", requires = "on")]
    pub command: Vec<String>,
}

/// Which GPUs the containers of a group get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GpuChoice {
    /// What the file requests
    All,
    /// None
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock down classifier
  cudock down -f group.yaml --time 60
  cudock down --all")]
pub struct DownArgs {
    /// The group or deployment
    #[arg(value_name = "NAME", required_unless_present_any = ["file", "all"], conflicts_with_all = ["file", "all"])]
    pub name: Option<String>,

    /// Delete all deployments on Azure
    #[arg(long, conflicts_with = "file")]
    pub all: bool,

    /// Stop the group of this file
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Kill its containers this many seconds after the stop signal
    #[arg(long, short, value_name = "SECONDS")]
    pub time: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock groups\n  cudock groups --format json")]
pub struct GroupsArgs {
    /// Show only this group, with its containers
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of a supervisor.
#[derive(Debug, Args)]
pub struct SuperviseArgs {
    /// The group's directory.
    pub group: PathBuf,
    /// The descriptor of the input.
    #[arg(long)]
    pub handed: i32,
    /// The descriptor of the lock on the group.
    #[arg(long)]
    pub lock: i32,
    /// Whether the output of containers is printed.
    #[arg(long)]
    pub attached: bool,
    /// The descriptor to report the start on.
    #[arg(long)]
    pub ready: Option<i32>,
}
