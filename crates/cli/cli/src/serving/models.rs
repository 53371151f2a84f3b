//! `cudock models`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock models
  cudock models load resnet50 --url http://gpu-1:8000
  cudock models unload resnet50 --header 'Authorization: Bearer KEY'")]
pub struct ModelsArgs {
    #[command(subcommand)]
    pub verb: Option<ModelsVerb>,

    /// Use this server
    #[arg(long, global = true, value_name = "URL", default_value = "http://localhost:8000")]
    pub url: String,

    /// Add a header to every request, as 'Name: value' (repeatable)
    #[arg(long, global = true, value_name = "HEADER")]
    pub header: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum ModelsVerb {
    /// List all models (the default)
    List,
    /// Load a model, or reload it from its file
    Load { name: String },
    /// Unload a model and free its memory
    Unload { name: String },
}
