//! `cudock man`: the manual pages.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use cudock_base::FileError;
use cudock_base::text::suggest;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use crate::output::line;

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock man check | man -l -
  cudock man --dir ~/.local/share/man/man1            then: man cudock-check")]
pub(crate) struct ManArgs {
    /// The verb; by default, the page of cudock itself
    verb: Vec<String>,

    /// Write the pages of all verbs into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &ManArgs) -> Result<Outcome, Failure> {
    let mut root = Cli::command();
    root.build();
    if let Some(dir) = &args.dir {
        let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(root, dir));
        written.map_err(FileError::at("write to", dir))?;
        return Ok(Outcome::Yes);
    }
    let mut command = root;
    for name in &args.verb {
        command = subcommand(&command, name)?.clone();
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::outside(format!("cannot write the page: {error}")))?;
    line(String::from_utf8_lossy(&page).trim_end());
    Ok(Outcome::Yes)
}

fn subcommand<'a>(command: &'a Command, name: &str) -> Result<&'a Command, Failure> {
    let shown = || command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown().find(|verb| verb.get_name() == name).ok_or_else(|| {
        let names: Vec<&str> = shown().map(Command::get_name).collect();
        Failure::input(format!("{} has no verb `{name}`", command.get_name()))
            .near(&suggest::nearest(name, names))
    })
}
