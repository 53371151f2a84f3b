//! `cudock completion`: the script that completes verbs and flags in a shell.

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Outcome;
use crate::output::line;

/// Print the script that completes cudock's verbs and flags in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock completion bash > ~/.local/share/bash-completion/completions/cudock
  cudock completion zsh > ~/.zfunc/_cudock            with fpath+=~/.zfunc before compinit in ~/.zshrc
  cudock completion fish > ~/.config/fish/completions/cudock.fish
  cudock completion powershell >> $PROFILE")]
pub(crate) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &CompletionArgs) -> Outcome {
    let all = Cli::command();
    // The generators would offer hidden verbs, too.
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut shown = Command::new("cudock").version("").args(all.get_arguments()).subcommands(verbs);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "cudock", &mut script);
    line(String::from_utf8_lossy(&script).trim_end());
    Outcome::Yes
}
