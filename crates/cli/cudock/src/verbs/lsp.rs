//! `cudock lsp`: the linter in editors.

use clap::Args;
use cudock_facts::Facts;

use crate::failure::{Failure, Outcome};
use crate::output;

/// Lint Dockerfiles in an editor, as a language server on standard input and output
///
/// Editors start it themselves; docs/lint.md has the settings for some. It finds and fixes the same as `cudock lint`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock lsp        in Neovim: vim.lsp.config('cudock', {cmd = {'cudock', 'lsp'}, filetypes = {'dockerfile'}})")]
pub(crate) struct LspArgs {}

pub(super) fn run(facts: &Facts) -> Result<Outcome, Failure> {
    let is_shut_down = cudock_lsp::serve_stdio(facts, output::today())?;
    Ok(if is_shut_down { Outcome::Yes } else { Outcome::No })
}
