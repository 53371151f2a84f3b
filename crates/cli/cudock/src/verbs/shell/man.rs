//! `cudock man`: the manual pages.

use clap::{Command, CommandFactory};
use cudock_base::FileError;
use cudock_base::text::suggest;
use cudock_cli::{Cli, ManArgs};

use crate::failure::{Failure, Outcome};
use crate::output::line;

pub(crate) fn run(args: &ManArgs) -> Result<Outcome, Failure> {
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
