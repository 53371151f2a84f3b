//! `cudock slim`.

use std::path::PathBuf;

use clap::Args;
use cudock_image::write::Compression;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock slim libonnxruntime_providers_cuda.so -o slim.so --for T4
  cudock slim .venv/lib/python3.12/site-packages -o slim-packages --for sm_80,H100
  cudock slim torch.whl -o slim/torch.whl --for Standard_NC4as_T4_v3 --compact
  cudock slim libs --for H200 --dry-run
  cudock slim /opt/app --in-place --for H200
  cudock slim registry.example/team/app:1.0 -o registry.example/team/app:1.0-t4 --for T4")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct SlimArgs {
    /// A file, a directory, a wheel or an image
    #[arg(value_name = "IN")]
    pub input: PathBuf,

    /// Write the result to this path, or an image to this destination, such as oci:DIR or a name in a registry
    #[arg(long, short, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"], conflicts_with = "in_place")]
    pub output: Option<PathBuf>,

    /// Keep code for these targets: GPU names, Azure sizes, or targets such as `sm_75`
    #[arg(long = "for", value_name = "TARGET", value_delimiter = ',', required = true)]
    pub targets: Vec<String>,

    /// Shrink the files themselves
    #[arg(long)]
    pub compact: bool,

    /// Compress the new layers of an image like this: gzip, zstd or none, with a level such as zstd:19
    #[arg(long, value_name = "FORMAT")]
    pub compression: Option<Compression>,

    /// Remove the CUDA libraries of an image that nothing in it links to or opens, too
    #[arg(long)]
    pub remove_unused: bool,

    /// Replace the input
    #[arg(long)]
    pub in_place: bool,

    /// Write nothing, and report what would be removed
    #[arg(long)]
    pub dry_run: bool,
}
