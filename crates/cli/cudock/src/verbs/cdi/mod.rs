//! `cudock cdi`: generates and checks CDI specifications.

mod check;
mod generate;
mod hook;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cudock_host::Root;
use cudock_host::host::NvmlResult;
use cudock_inject::{Driver, DriverRoots};

pub(super) use self::check::CheckReport;
pub(crate) use self::hook::CdiHookArgs;
use crate::cli::FormatArg;
use crate::failure::{Failure, Outcome, chain};
use crate::verbs::doctor::ask_nvml;

/// Generate a CDI specification of the GPUs, or find specifications that are out of date
///
/// Docker, podman and containerd read such files and need no other toolkit: `--device nvidia.com/gpu=all`. A file describes
/// one driver: regenerate it after an update.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  cudock cdi                                             write YAML to standard output
  cudock cdi --output /etc/cdi/nvidia.yaml
  cudock cdi --output /var/run/cdi/nvidia.json           write JSON
  cudock cdi --root /run/nvidia/driver --dev-root /      a driver installed in a container
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
    /// Find specifications on this machine that are out of date
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Write it to this file; - is standard output. A name that ends in .json is written as JSON
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Look for the driver's files in this root
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Look for its device nodes in this root
    #[arg(long, value_name = "DIR")]
    pub(crate) dev_root: Option<PathBuf>,

    /// Set the vendor of the kind
    #[arg(long, value_name = "NAME", default_value = "nvidia.com")]
    pub(crate) vendor: String,

    /// Set the class of the kind
    #[arg(long, value_name = "NAME", default_value = "gpu")]
    pub(crate) class: String,

    /// Add these driver capabilities: all, or a list such as compute,utility
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub(crate) capabilities: String,

    /// Add optional parts
    #[arg(long = "with", value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub(crate) extras: Vec<Extra>,
}

/// Optional parts of a specification.
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
    /// Check the specifications of this directory; repeatable
    #[arg(long, value_name = "DIR", default_values = ["/etc/cdi", "/var/run/cdi"])]
    pub(crate) dir: Vec<String>,

    /// Check a root file system instead of this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

pub(super) fn run(args: &CdiArgs, format: FormatArg) -> Result<Outcome, Failure> {
    match &args.what {
        Some(CdiVerb::Check(args)) => check::run(args, format.plain()?),
        None => generate::run(&args.generate, format.specification()?),
    }
}

pub(super) fn run_hook(args: &CdiHookArgs) -> Result<Outcome, Failure> {
    hook::run(args)
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

/// The driver, with the numbering of NVML on this machine.
fn driver(roots: &DriverRoots) -> Result<Driver, Failure> {
    let driver = Driver::find(roots)?;
    if !roots.devices.is_live() {
        return Ok(driver);
    }
    Ok(match ask_nvml(None) {
        NvmlResult::Report(report) => driver.numbered_by(&cudock_inject::driver::of_nvml(&report)),
        NvmlResult::NotQueried | NvmlResult::Failed(_) => driver,
    })
}
