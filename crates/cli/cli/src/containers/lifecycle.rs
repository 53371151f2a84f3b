//! The arguments of the verbs that change, copy from and measure containers, and of images and volumes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::run::{ContainersArgs, EngineArgs};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock kill api\n  cudock kill --signal HUP api")]
pub struct KillArgs {
    /// Send this signal: a name such as HUP or RTMIN+3, or a number
    #[arg(long, short, default_value = "KILL")]
    pub signal: String,

    #[command(flatten)]
    pub targets: ContainersArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock start trainer\n  cudock start -a -e API_TOKEN trainer")]
pub struct StartArgs {
    /// Attach the output, and exit with its exit code
    #[arg(long, short)]
    pub attach: bool,

    /// Set a variable that the container was started with (repeatable)
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,

    /// Read variables from a file, one per line (repeatable)
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,

    #[command(flatten)]
    pub targets: ContainersArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock restart api\n  cudock restart --time 60 trainer")]
pub struct RestartArgs {
    /// Wait this many seconds before killing [default: the container's --stop-timeout]
    #[arg(long, short, value_name = "SECONDS")]
    pub time: Option<u32>,

    #[command(flatten)]
    pub targets: ContainersArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock cp trainer:/out/model.onnx .\n  cudock cp ./data api:/srv/\n  cudock cp trainer:/out/. ./results"
)]
pub struct CpArgs {
    /// CONTAINER:PATH or a local path; DIR/. copies the contents of a directory
    #[arg(value_name = "SOURCE")]
    pub source: String,

    /// CONTAINER:PATH or a local path
    #[arg(value_name = "TARGET")]
    pub target: String,

    /// Keep owners and groups
    #[arg(long, short)]
    pub archive: bool,

    /// Follow SOURCE if it is a symbolic link
    #[arg(long, short = 'L')]
    pub follow_link: bool,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock stats\n  cudock stats --no-stream trainer\n  cudock stats --no-stream --format json"
)]
pub struct StatsArgs {
    /// The containers [default: all that are running]
    pub containers: Vec<String>,

    /// Print once and exit
    #[arg(long)]
    pub no_stream: bool,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock top api\n  cudock top api --format json")]
pub struct TopArgs {
    /// A container, or GROUP/NAME
    pub container: String,

    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("quiet", |arg| arg.help("Print only digests")))]
#[command(after_help = "Examples:\n  cudock images\n  cudock images --format json")]
pub struct ImagesArgs {}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cudock pull registry.example/team/app:1.4\n  cudock pull --platform linux/arm64 app"
)]
pub struct PullArgs {
    /// The images
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,

    /// Select this platform of a multi-platform image, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub platform: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock run -v models:/models IMAGE      creates the volume if it does not exist
  cudock volume ls
  cudock volume rm models
  cudock volume prune --all")]
pub struct VolumeArgs {
    #[command(subcommand)]
    pub verb: VolumeVerb,
}

#[derive(Debug, Subcommand)]
pub enum VolumeVerb {
    /// List volumes and the containers that use them
    #[command(visible_alias = "list")]
    Ls {
        /// Print only names
        #[arg(long, short)]
        quiet: bool,
    },
    /// Create a volume if it does not exist
    Create {
        /// Its name
        name: String,
    },
    /// Print information about volumes as JSON
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
        /// Remove them; without this flag they are only listed
        #[arg(long, short)]
        all: bool,
    },
}
