//! `cudock sign`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock sign oci:image --key cosign.key
  cudock verify oci:image --key cosign.pub")]
pub struct SignArgs {
    /// Image to sign
    pub image: String,

    /// Private key: ECDSA P-256 in PKCS #8
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}
