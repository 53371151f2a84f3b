//! `cudock lint` and `cudock lsp`.

use std::path::PathBuf;

use clap::Args;
use cudock_facts::version::DriverVersion;
use cudock_project::FailLevel;

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |arg| arg.short('v').help("Show an excerpt of the file with every finding")))]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:
  cudock lint
  cudock lint docker/ --for T4
  cudock lint Dockerfile --for Standard_NC24ads_A100_v4 --driver 535
  cudock lint Dockerfile --fix --dry-run
  cudock lint --fix --fail-level warning
  cudock lint --format sarif > lint.sarif
  cat Dockerfile | cudock lint - --for cpu
  cudock lint --rules")]
pub struct LintArgs {
    /// Dockerfiles and directories, or - for standard input [default: the current directory]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Judge for this GPU, this Azure size, or `cpu`
    #[arg(long = "for", value_name = "TARGET")]
    pub target: Option<String>,

    /// Assume this driver: 535.161.08, or the last release of a branch: 580, R580
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<DriverVersion>,

    /// Fix what can be fixed; with -, print the fixed text
    #[arg(long)]
    pub fix: bool,

    /// With --fix: print a diff, and change nothing
    #[arg(long, requires = "fix")]
    pub dry_run: bool,

    /// Exit with code 1 if a finding has this severity or a higher one [default: error]
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_level: Option<FailLevel>,

    /// Ask registries whether base images exist
    #[arg(long)]
    pub online: bool,

    /// List the rules
    #[arg(long, alias = "list", conflicts_with_all = ["paths", "fix"])]
    pub rules: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock lsp        in Neovim: vim.lsp.config('cudock', {cmd = {'cudock', 'lsp'}, filetypes = {'dockerfile'}})")]
pub struct LspArgs {}
