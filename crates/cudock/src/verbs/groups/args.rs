//! The words of the verbs for groups.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::verbs::containers::NetworkChoice;

/// Run a group of containers that share a network, a localhost and volumes
///
/// The file is the one that `az container create --file` takes. Without -f, DIR says what to run: its group.yaml, or the
/// model of its cudock.toml, as `cudock serve` does. Paths in the file count from its directory. In the foreground, Ctrl-C
/// stops the group, and once more kills it. Exit code 1 says that the group failed or did not become ready. See
/// docs/groups.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock up -f group.yaml
  cudock up -f group.yaml --detach --publish 18080:8080 --timeout 10m
  cudock up -f group.yaml --gpus none
  cudock up -f group.yaml --volume share=./data --network none
  cudock up examples/digits")]
pub(crate) struct UpArgs {
    /// A directory with a group.yaml or a cudock.toml
    #[arg(value_name = "DIR", conflicts_with = "file")]
    pub(crate) directory: Option<PathBuf>,

    /// The file of the group
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Come back as soon as all containers run and are ready
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// Stop waiting for readiness after this time and remove the group: 90s, 5m, 1h; 0 waits for ever
    #[arg(long, value_name = "TIME", default_value = "5m", requires = "detach")]
    pub(crate) timeout: String,

    /// Leave the group running where --timeout has passed
    #[arg(long, requires = "detach")]
    pub(crate) keep: bool,

    /// Run containers that ask for GPUs without any: none; `all` gives what the file asks for
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = GpuChoice::All)]
    pub(crate) gpus: GpuChoice,

    /// A name in place of the file's
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// A directory of this machine in place of a volume; may be given several times
    #[arg(long, value_name = "NAME=DIR")]
    pub(crate) volume: Vec<String>,

    /// A port of this machine in place of the same number, or for a port the file does not publish; may be given
    /// several times
    #[arg(long, short, value_name = "[IP:]HOST:CONTAINER[/udp]")]
    pub(crate) publish: Vec<String>,

    /// The port that a project is served on; 0 takes a free one
    #[arg(long, value_name = "PORT", conflicts_with = "file")]
    pub(crate) port: Option<u16>,

    /// auto: one of its own with a way out where pasta or slirp4netns is installed; none: no way out; host: this
    /// machine's; pasta: a way out, or an error
    #[arg(long, value_enum, default_value_t = NetworkChoice::Auto)]
    pub(crate) network: NetworkChoice,

    /// Where the driver's files are, if not where they are found
    #[arg(long, value_name = "DIR")]
    pub(crate) driver_root: Option<PathBuf>,

    /// Where /dev and /proc of the driver are, if not below its root
    #[arg(long, value_name = "DIR")]
    pub(crate) device_root: Option<PathBuf>,

    /// Use what the cache holds, and fetch nothing
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Which GPUs the containers of a group get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuChoice {
    /// What the file asks for
    All,
    /// None, whatever the file asks for
    None,
}

/// Stop a group and remove everything of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock down classifier\n  cudock down -f group.yaml --time 60")]
pub(crate) struct DownArgs {
    /// The group
    #[arg(value_name = "NAME", required_unless_present = "file", conflicts_with = "file")]
    pub(crate) name: Option<String>,

    /// The file of the group
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Seconds between asking its containers to end and killing them
    #[arg(long, short, value_name = "SECONDS")]
    pub(crate) time: Option<u32>,
}

/// List groups and how their containers are
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock groups\n  cudock groups --format json")]
pub(crate) struct GroupsArgs {
    /// Only this one, with the reason where a container is not as it should be
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// What a supervisor is told.
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// The group's directory.
    pub(crate) group: PathBuf,
    /// The descriptor of what is not in any file.
    #[arg(long)]
    pub(crate) handed: i32,
    /// The descriptor of the lock on the group.
    #[arg(long)]
    pub(crate) lock: i32,
    /// Whether the containers' outputs go to ours.
    #[arg(long)]
    pub(crate) attached: bool,
    /// The descriptor to say on how the start went.
    #[arg(long)]
    pub(crate) ready: Option<i32>,
}
