//! `cudock copy` and `cudock push`.

use clap::Args;
use cudock_image::write::Compression;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock copy docker-daemon:app:1.0 registry.example/team/app:1.0
  cudock copy registry.example/team/app:1.0 oci:layout:1.0
  cudock copy ./app.tar cache:team/app:1.0 --compression zstd")]
pub struct CopyArgs {
    /// The image: a name, a path that begins with . or /, oci:DIR, oci-archive:FILE, docker-archive:FILE or docker-daemon:NAME
    #[arg(value_name = "SOURCE")]
    pub source: String,

    /// Where to: the same, or cache:NAME
    #[arg(value_name = "DESTINATION")]
    pub destination: String,

    /// Recompress layers: gzip, zstd or none, with a level such as zstd:19
    #[arg(long, value_name = "FORMAT")]
    pub compression: Option<Compression>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cudock push oci:layout registry.example/team/app:1.0
  cudock push ./app.tar registry.example/team/app:1.0 --compression zstd")]
pub struct PushArgs {
    #[command(flatten)]
    pub copy: CopyArgs,
}
