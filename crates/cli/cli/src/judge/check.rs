//! `cudock check`.

use clap::{Args, ValueEnum};
use cudock_facts::version::DriverVersion;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:
  cudock check build/app --host
  cudock check registry.example/team/app:1.4 --gpu T4 --gpu H100 --driver 535.161.08
  cudock check oci:./layout --size Standard_NC24ads_A100_v4
  cudock check app.tar --all-sizes
  cudock check torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl --gpu V100
  cudock check requirements.txt --gpu B200
  cudock check Dockerfile --gpu \"RTX 4090\" --driver 535 --format sarif > check.sarif
  cudock check requirements.txt --gpu T4 --format github
  cudock check . --gpu A100 --explain")]
pub struct CheckArgs {
    /// What to check; the prefixes `oci:`, `oci-archive:`, `docker-archive:`, `docker-daemon:`, `docker://` and `rootfs:` select a kind
    #[arg(value_name = "SUBJECT")]
    pub subject: String,

    /// Check for this GPU (repeatable)
    #[arg(long, value_name = "NAME")]
    pub gpu: Vec<String>,

    /// Check for this Azure size (repeatable)
    #[arg(long, alias = "sku", value_name = "SIZE")]
    pub size: Vec<String>,

    /// Check for every available Azure size
    #[arg(long, alias = "all-skus")]
    pub all_sizes: bool,

    /// Check for this machine
    #[arg(long)]
    pub host: bool,

    /// Assume this driver: 535.161.08, or the last release of a branch: 580, R580
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<DriverVersion>,

    /// Set how containers get the GPU: by NVIDIA's hook, which evaluates the image's requirements, or by CDI, which does not
    #[arg(long, value_enum, default_value_t = Start::Hook)]
    pub start: Start,

    /// Select this platform of a multi-platform image, such as linux/arm64
    #[arg(long, value_name = "OS/ARCH")]
    pub platform: Option<String>,

    /// Set a variable that overrides the image's own (repeatable)
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,

    /// Print the rules that were applied
    #[arg(long)]
    pub explain: bool,

    /// Use the cache only, and fetch nothing
    #[arg(long)]
    pub offline: bool,
}

/// How containers get the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Start {
    /// `docker run --gpus`, the NVIDIA runtime in legacy mode
    Hook,
    /// `--device nvidia.com/gpu=all`, podman, Kubernetes with CDI
    Cdi,
}
