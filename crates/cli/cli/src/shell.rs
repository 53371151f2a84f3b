//! The verbs about the command line itself.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock completion bash > ~/.local/share/bash-completion/completions/cudock
  cudock completion zsh > ~/.zfunc/_cudock            with fpath+=~/.zfunc before compinit in ~/.zshrc
  cudock completion fish > ~/.config/fish/completions/cudock.fish
  cudock completion powershell >> $PROFILE")]
pub struct CompletionArgs {
    /// The shell
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock man check | man -l -
  cudock man --dir ~/.local/share/man/man1            then: man cudock-check")]
pub struct ManArgs {
    /// The verb; by default, the page of cudock itself
    pub verb: Vec<String>,

    /// Write the pages of all verbs into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock schema                                   the names
  cudock schema cudock.toml > cudock.schema.json
  cudock schema plan")]
pub struct SchemaArgs {
    /// Name of the schema; by default, list all
    pub name: Option<String>,
}
