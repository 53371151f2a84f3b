//! `cudock cdi`, and the hook that its specifications call.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use cudock_facts::version::DriverVersion;

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
pub struct CdiArgs {
    #[command(subcommand)]
    pub what: Option<CdiVerb>,

    #[command(flatten)]
    pub generate: CdiGenerateArgs,
}

#[derive(Debug, Subcommand)]
pub enum CdiVerb {
    /// Find specifications on this machine that are out of date
    Check(CdiCheckArgs),
}

#[derive(Debug, Args)]
pub struct CdiGenerateArgs {
    /// Write it to this file; - is standard output. A name that ends in .json is written as JSON
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// Look for the driver's files in this root
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Look for its device nodes in this root
    #[arg(long, value_name = "DIR")]
    pub dev_root: Option<PathBuf>,

    /// Set the vendor of the kind
    #[arg(long, value_name = "NAME", default_value = "nvidia.com")]
    pub vendor: String,

    /// Set the class of the kind
    #[arg(long, value_name = "NAME", default_value = "gpu")]
    pub class: String,

    /// Add these driver capabilities: all, or a list such as compute,utility
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub capabilities: String,

    /// Add optional parts
    #[arg(long = "with", value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub extras: Vec<CdiExtra>,
}

/// Optional parts of a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CdiExtra {
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
pub struct CdiCheckArgs {
    /// Check the specifications of this directory; repeatable
    #[arg(long, value_name = "DIR", default_values = ["/etc/cdi", "/var/run/cdi"])]
    pub dir: Vec<String>,

    /// Check a root file system instead of this machine
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Run a hook of a specification; reads the container's state from standard input
#[derive(Debug, Args)]
pub struct CdiHookArgs {
    #[command(subcommand)]
    pub what: CdiHookVerb,

    /// Join the container's mount namespace, as `createRuntime` hooks have to
    #[arg(long, global = true)]
    pub join: bool,
}

#[derive(Debug, Subcommand)]
pub enum CdiHookVerb {
    /// Create links
    CreateSymlinks {
        /// Target and path of a link
        #[arg(long = "link", value_name = "TARGET::PATH")]
        links: Vec<String>,
    },
    /// Add libraries to the loader's cache
    UpdateLdcache {
        /// Bits, name and path of a library
        #[arg(long = "library", value_name = "BITS::NAME::PATH")]
        libraries: Vec<String>,

        /// The version of the driver
        #[arg(long, value_name = "VERSION")]
        driver: Option<DriverVersion>,
    },
    /// Keep the driver in the container from creating device nodes
    DisableDeviceNodeModification,
    /// Tell EGL and Vulkan which GPUs the container has
    UpdateApplicationProfile,
}
