//! `cudock cdi`: the GPU for docker, podman and containerd, written down; and what was written down, checked.

mod check;
mod generate;
mod hook;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cudock_host::Root;
use cudock_host::host::NvmlResult;
use cudock_inject::{Driver, Places};

pub(crate) use self::hook::CdiHookArgs;
use crate::cli::FormatArg;
use crate::failure::{Failure, Outcome, chain};
use crate::verbs::doctor::ask_nvml;

/// Write the GPU down as a CDI specification, or find specifications that no longer fit
///
/// Docker, podman and containerd read such files and need no other toolkit: `--device nvidia.com/gpu=all`. A file is
/// true of one driver: after an update, write it anew.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  cudock cdi                                             to standard output, as YAML
  cudock cdi --output /etc/cdi/nvidia.yaml
  cudock cdi --output /var/run/cdi/nvidia.json           as JSON, by its name
  cudock cdi --root /run/nvidia/driver --dev-root /      a driver that lives in a container
  cudock cdi check
  podman run --device nvidia.com/gpu=all IMAGE nvidia-smi"
)]
pub(crate) struct CdiArgs {
    #[command(subcommand)]
    pub(crate) what: Option<CdiVerb>,

    #[command(flatten)]
    pub(crate) generate: GenerateArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CdiVerb {
    /// Tell which specifications on this machine are stale, and why
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Where to write it; - is standard output. A name that ends in .json is written as JSON
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Where the driver's files are, if not in /
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Where its device nodes are, if not there
    #[arg(long, value_name = "DIR")]
    pub(crate) dev_root: Option<PathBuf>,

    /// The first half of the kind
    #[arg(long, value_name = "NAME", default_value = "nvidia.com")]
    pub(crate) vendor: String,

    /// The second half of the kind
    #[arg(long, value_name = "NAME", default_value = "gpu")]
    pub(crate) class: String,

    /// What of the driver goes in: all, or a list such as compute,utility
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub(crate) capabilities: String,

    /// Also give what is seldom wanted
    #[arg(long = "with", value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub(crate) extras: Vec<Extra>,
}

/// What is seldom wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Extra {
    /// `GPUDirect` Storage
    Gds,
    /// `GDRCopy`
    Gdrcopy,
    /// `InfiniBand` verbs
    Mofed,
    /// `NVSwitch` management
    Nvswitch,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A directory of specifications; may be given several times
    #[arg(long, value_name = "DIR", default_values = ["/etc/cdi", "/var/run/cdi"])]
    pub(crate) dir: Vec<String>,

    /// Look at a directory tree instead of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

pub(super) fn run(words: &CdiArgs, format: FormatArg) -> Result<Outcome, Failure> {
    match &words.what {
        Some(CdiVerb::Check(words)) => check::run(words, format.plain()?),
        None => generate::run(&words.generate, format.specification()?),
    }
}

pub(super) fn run_hook(words: &CdiHookArgs) -> Result<Outcome, Failure> {
    hook::run(words)
}

fn root(directory: Option<&Path>) -> Result<Root, Failure> {
    match directory {
        None => Ok(Root::live()),
        Some(path) if path == Path::new("/") => Ok(Root::live()),
        Some(directory) => Root::tree(directory).map_err(|error| {
            Failure::input(chain(&error))
                .hint("--root and --dev-root name directories that hold a root file system")
        }),
    }
}

/// The driver, numbered by NVML where this machine is looked at.
fn driver(places: &Places) -> Result<Driver, Failure> {
    let driver = Driver::find(places)?;
    if !places.devices.is_live() {
        return Ok(driver);
    }
    Ok(match ask_nvml(None) {
        NvmlResult::Report(report) => driver.numbered_by(&cudock_inject::driver::of_nvml(&report)),
        NvmlResult::NotQueried | NvmlResult::Failed(_) => driver,
    })
}
