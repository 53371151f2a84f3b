//! `cudock build`.

use std::path::PathBuf;

use clap::Args;
use cudock_image::write::Compression;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock build -o app.tar
  cudock build examples/digits -o oci:layout:digits
  cudock build -o registry.example/team/app:1.4 --for T4,H200
  cudock build --explain-size
  cudock build --dockerfile Dockerfile -o app.tar --for T4")]
pub struct BuildArgs {
    /// Project directory or cudock.toml
    #[arg(default_value = ".", value_name = "DIR")]
    pub path: PathBuf,

    /// Write the image there: `oci:DIR[:NAME]`, FILE.tar, docker-archive:FILE, docker-daemon:NAME, or a name in a registry
    #[arg(long, short, value_name = "DEST")]
    pub output: Option<String>,

    /// Build for these GPUs, Azure sizes or targets such as `sm_75`, instead of those in `[image]`
    #[arg(long = "for", value_name = "TARGET", value_delimiter = ',')]
    pub targets: Vec<String>,

    /// Print what each part of the image is, why it is there, and what was left out
    #[arg(long)]
    pub explain_size: bool,

    /// Compress layers differently: gzip, zstd, zstd:19, none
    #[arg(long, value_name = "HOW")]
    pub compression: Option<Compression>,

    /// Build this Dockerfile with docker buildx, podman or buildah instead
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "Dockerfile", requires = "output", requires = "targets", conflicts_with = "explain_size")]
    pub dockerfile: Option<PathBuf>,
}
