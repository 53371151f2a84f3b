//! `cudock completion`: the script that completes verbs and flags in a shell.

use clap::{Command, CommandFactory};
use cudock_cli::{Cli, CompletionArgs};

use crate::failure::Outcome;
use crate::output::line;

pub(crate) fn run(args: &CompletionArgs) -> Outcome {
    let all = Cli::command();
    // The generators would offer hidden verbs, too.
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut shown = Command::new("cudock").version("").args(all.get_arguments()).subcommands(verbs);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "cudock", &mut script);
    line(String::from_utf8_lossy(&script).trim_end());
    Outcome::Yes
}
