//! `cudock init`: starts a project.

use std::path::{Path, PathBuf};

use clap::Args;
use cudock_base::suggest;
use cudock_project::EXAMPLES;

use crate::failure::{Failure, Outcome};
use crate::output::status;

/// Start a project from an example
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock init --example digits && cudock up digits
  cudock init --example digits ~/models/mine")]
pub(crate) struct InitArgs {
    /// Write the files into this directory; by default, one with the name of the example
    dir: Option<PathBuf>,

    /// Copy this example: digits, a model that recognizes handwritten digits
    #[arg(long, value_name = "NAME")]
    example: String,
}

pub(super) fn run(args: &InitArgs) -> Result<Outcome, Failure> {
    let name = args.example.as_str();
    let example = EXAMPLES.iter().find(|example| example.name == name).ok_or_else(|| {
        let names = EXAMPLES.iter().map(|example| example.name);
        Failure::input(format!("there is no example `{name}`")).near(&suggest::nearest(name, names))
    })?;
    let dir = args.dir.as_deref().unwrap_or(Path::new(name));
    example.write(dir)?;
    status(format!("created {0}; next: cudock up {0}", dir.display()));
    Ok(Outcome::Yes)
}
