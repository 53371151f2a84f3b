//! `cudock check`: the verdict on a subject for each target.

mod images;
mod labels;
mod overview;
mod reported;
mod targets;
mod text;

use std::collections::BTreeMap;

use cudock_base::Report as _;
use cudock_cli::CheckArgs;
use cudock_compat::evidence::Component;
use cudock_compat::{Context, GatherError, Judgement, Subject, Target, gather, judge, subject};
use cudock_facts::Facts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, FindingFormat, TableUsed};
use crate::steps::images::{note_local, platform};
use crate::steps::pointer::other_verb;

const TABLES: [&str; 8] =
    ["gpus", "drivers", "toolkits", "forward_compat", "images", "frameworks", "packages", "azure_sizes"];

/// One object for programs; see docs/check.md.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckReport<'a> {
    schema: u8,
    subject: &'a str,
    /// The digest of the image's manifest or index.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    results: &'a [TargetResult],
    components: &'a [Component],
    tables: &'a [TableUsed],
}

/// The verdict for one target.
#[derive(Serialize, JsonSchema)]
struct TargetResult {
    target: Target,
    #[serde(flatten)]
    judgement: Judgement,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<cudock_compat::RuleUse>,
}

/// The results of checking a subject.
struct Checked {
    digest: Option<String>,
    results: Vec<TargetResult>,
    components: Vec<Component>,
}

pub(crate) fn run(facts: &Facts, args: &CheckArgs, format: FindingFormat) -> Result<Outcome, Failure> {
    let environment = variables(&args.env)?;
    let platform = platform(args.platform.as_deref())?;
    let targets = targets::chosen(facts, args)?;
    note_local(&args.subject)?;
    let checked = match subject(&args.subject).map_err(gather_failure)? {
        Subject::Image(source) => images::results(facts, args, platform, &environment, &source, targets)?,
        other => {
            let context = Context { facts, environment: &environment, on_this_machine: args.host };
            let evidence = gather(&other, &args.subject, &context).map_err(gather_failure)?;
            let results = targets.into_iter().map(|target| {
                let judgement = judge(&evidence, &target, facts);
                TargetResult { target, judgement, rules: Vec::new() }
            });
            Checked { digest: None, results: results.collect(), components: evidence.components }
        }
    };
    let Checked { digest, mut results, components } = checked;
    let tables = output::tables_used(facts, &TABLES);
    let subject = args.subject.as_str();
    match format {
        FindingFormat::Json => {
            if args.explain {
                for result in &mut results {
                    result.rules.clone_from(&result.judgement.rules);
                }
            }
            output::json(&CheckReport {
                schema: 1,
                subject,
                digest: digest.as_deref(),
                results: &results,
                components: &components,
                tables: &tables,
            });
        }
        FindingFormat::Other(format) => {
            output::findings(facts, format, &reported::findings(subject, &results));
        }
        FindingFormat::Text if args.all_sizes => text::matrix(subject, &results),
        FindingFormat::Text => text::print(subject, &results, args.explain),
    }
    output::warn_if_stale(&tables);
    Ok(outcome(args, &results))
}

/// Yes if it runs on the GPU of every target; of all sizes, one is enough.
fn outcome(args: &CheckArgs, results: &[TargetResult]) -> Outcome {
    let runs = |result: &TargetResult| result.judgement.verdict.uses_gpu();
    let yes = if args.all_sizes { results.iter().any(runs) } else { results.iter().all(runs) };
    if yes { Outcome::Yes } else { Outcome::No }
}

fn variables(variables: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::input(format!("invalid variable `{text}`")).hint("write it as --env NAME=VALUE")),
    };
    variables.iter().map(pair).collect()
}

/// An error while gathering evidence; for a file that cannot be checked, with a hint which verb reads it.
pub(crate) fn gather_failure(error: GatherError) -> Failure {
    match &error {
        GatherError::NotASubject { path } => {
            let pointer = other_verb(path);
            let failure = Failure::input(chain(&error)).hint(pointer);
            error.hints().into_iter().fold(failure, Failure::hint)
        }
        _ => error.into(),
    }
}
