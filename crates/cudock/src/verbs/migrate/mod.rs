//! `cudock migrate`: retired Azure GPU sizes and services in files, and what replaces them. Files are not changed.

mod input;
mod reported;
mod text;

use std::path::PathBuf;

use clap::Args;
use cudock_facts::Facts;
use cudock_migrate::{ChoiceFinding, judge, read};
use schemars::JsonSchema;
use serde::Serialize;

use self::input::MigrateInput;
use crate::failure::{Failure, Outcome};
use crate::output::{self, FindingFormat, TableUsed};
use cudock_lookup::known_region;

/// Find retired Azure GPU sizes and services in files, with replacements and prices
///
/// Files are recognized by content: shell scripts and `az` command lines, container groups, ARM, Bicep and Terraform
/// templates, Machine Learning and Batch files and programs, `SkyPilot` tasks, notebooks and notes. Files are never modified.
/// The exit code is 1 if something is retired, and 0 if not. See docs/migrate.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cudock migrate deploy.sh
  cudock migrate infra/*.tf train.py --region westeurope
  cudock migrate 'az vm create --size Standard_NC6 -l eastus'
  cat group.yaml | cudock migrate -
  cudock migrate main.bicep --format sarif > migrate.sarif
  cudock migrate infra/*.tf --format github")]
pub(crate) struct MigrateArgs {
    /// Files to read, - for standard input, or an `az` command line
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Use prices in this region instead of those that the files name
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,

    /// Show every difference of a replacement, and the sources of prices
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The findings in one file.
#[derive(Serialize, JsonSchema)]
struct FileReport {
    path: String,
    #[serde(skip)]
    text: String,
    findings: Vec<ChoiceFinding>,
    /// The number of choices beyond the limit.
    left_out: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MigrateReport<'a> {
    schema: u8,
    files: &'a [FileReport],
    /// The number of choices that no longer work.
    over: usize,
    tables: &'a [TableUsed],
}

pub(super) fn run(facts: &Facts, args: &MigrateArgs, format: FindingFormat) -> Result<Outcome, Failure> {
    let region = args.region.as_deref().map(|region| known_region(facts, region)).transpose()?;
    let inputs =
        args.files.iter().map(|path| MigrateInput::read(path)).collect::<Result<Vec<_>, Failure>>()?;
    let day = output::today();
    let files: Vec<FileReport> = inputs
        .into_iter()
        .map(|input| {
            let reading = read(&input.text);
            let findings = judge(facts, day, region, &reading.choices);
            let left_out = reading.left_out;
            FileReport { path: input.name, text: input.text, findings, left_out }
        })
        .collect();
    let over = files.iter().flat_map(|file| &file.findings).filter(|finding| finding.is_over()).count();
    let tables = output::tables_used(
        facts,
        &["azure_sizes", "azure_prices", "azure_services", "azure_meters", "gpus"],
    );
    match format {
        FindingFormat::Json => {
            output::json(&MigrateReport { schema: 1, files: &files, over, tables: &tables });
        }
        FindingFormat::Other(format) => output::findings(facts, format, &reported::findings(&files)),
        FindingFormat::Text => text::print(&files, args.verbose),
    }
    output::warn_if_stale(&tables);
    Ok(if over > 0 { Outcome::No } else { Outcome::Yes })
}
