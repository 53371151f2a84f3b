//! The arguments of the verbs that change, copy from and measure containers, and of images and volumes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::EngineArgs;

/// Send a signal to containers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock kill api\n  cudock kill --signal HUP api")]
pub(crate) struct KillArgs {
    /// The containers
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    /// Send this signal: a name such as HUP or RTMIN+3, or a number
    #[arg(long, short, default_value = "KILL")]
    pub(crate) signal: String,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Start containers again that have ended
///
/// Their files are as they left them. Values of variables given with -e are kept in no file: give them again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock start trainer\n  cudock start -a -e API_TOKEN trainer")]
pub(crate) struct StartArgs {
    /// The containers
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    /// Attach its outputs, and exit with its exit code
    #[arg(long, short)]
    pub(crate) attach: bool,

    /// Give a variable again that the container was started with; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Read variables from a file, one a line; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Stop containers and start them again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock restart api\n  cudock restart --time 60 trainer")]
pub(crate) struct RestartArgs {
    /// The containers
    #[arg(required = true)]
    pub(crate) containers: Vec<String>,

    /// Wait this many seconds between asking and killing; the container's own without it
    #[arg(long, short, value_name = "SECONDS")]
    pub(crate) time: Option<u32>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Copy files between a container and this machine
///
/// Links in the container are resolved inside it, and copied as links. Devices, pipes and sockets are left out.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock cp trainer:/out/model.onnx .\n  cudock cp ./data api:/srv/\n  cudock cp trainer:/out/. ./results"
)]
pub(crate) struct CpArgs {
    /// CONTAINER:PATH or a path here; DIR/. copies what is in a directory
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,

    /// CONTAINER:PATH or a path here
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,

    /// Keep owners and groups
    #[arg(long, short)]
    pub(crate) archive: bool,

    /// Copy what SOURCE leads to, where it is a link
    #[arg(long, short = 'L')]
    pub(crate) follow_link: bool,

    /// Print nothing
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Show how much processor, memory and GPU containers use
///
/// GPU columns are of the container's own processes, as the driver's NVML tells them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock stats\n  cudock stats --no-stream trainer\n  cudock stats --no-stream --format json"
)]
pub(crate) struct StatsArgs {
    /// The containers; all that run without any
    pub(crate) containers: Vec<String>,

    /// Print once and exit
    #[arg(long)]
    pub(crate) no_stream: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// List the processes of a container
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock top api\n  cudock top api --format json")]
pub(crate) struct TopArgs {
    /// A container, or GROUP/NAME
    pub(crate) container: String,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// List images that were fetched to this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock images\n  cudock images --format json")]
pub(crate) struct ImagesArgs {
    /// Print digests alone
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Fetch images and unpack them, so that containers of them start at once
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock pull registry.example/team/app:1.4\n  cudock pull --platform linux/arm64 app"
)]
pub(crate) struct PullArgs {
    /// The images
    #[arg(required = true, value_name = "IMAGE")]
    pub(crate) images: Vec<String>,

    /// Which image of several, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) platform: Option<String>,

    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// List, make and remove named volumes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock run -v models:/models IMAGE      makes the volume, if it is not there
  cudock volume ls
  cudock volume rm models
  cudock volume prune --all")]
pub(crate) struct VolumeArgs {
    #[command(subcommand)]
    pub(crate) verb: VolumeVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VolumeVerb {
    /// List volumes and the containers that use them
    #[command(visible_alias = "list")]
    Ls {
        /// Print names alone
        #[arg(long, short)]
        quiet: bool,
    },
    /// Make a volume, if it is not there
    Create {
        /// Its name
        name: String,
    },
    /// Print what is known of volumes, as JSON
    Inspect {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove volumes and everything in them
    #[command(visible_alias = "remove")]
    Rm {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove all volumes that no container uses
    Prune {
        /// Remove them; without it they are only listed
        #[arg(long, short)]
        all: bool,
    },
}
