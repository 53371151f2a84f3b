//! `cudock check`: the verdict on a subject for each target.

mod images;
mod overview;
mod sarif;
mod targets;
mod text;

use std::collections::BTreeMap;

use cudock_base::Report as _;
use cudock_compat::evidence::{Component, Evidence};
use cudock_compat::{Context, GatherError, Judgement, Subject, Target, Verdict, gather, judge, subject};
use cudock_facts::Facts;
use serde::Serialize;

use crate::cli::CheckArgs;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, FindingFormat, TableUsed};
use crate::verbs::containers::platform;
use crate::verbs::other_verb;

const TABLES: [&str; 8] =
    ["gpus", "drivers", "toolkits", "forward_compat", "images", "frameworks", "packages", "azure_sizes"];

/// One object for programs; see docs/check.md.
#[derive(Serialize)]
struct Report<'a> {
    schema: u8,
    subject: &'a str,
    results: &'a [Answer],
    components: &'a [Component],
    tables: &'a [TableUsed],
}

/// The verdict for one target.
#[derive(Serialize)]
struct Answer {
    target: Target,
    #[serde(flatten)]
    judgement: Judgement,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<cudock_compat::RuleUse>,
}

pub(super) fn run(facts: &Facts, words: &CheckArgs, format: FindingFormat) -> Result<Outcome, Failure> {
    let environment = variables(&words.env)?;
    let platform = platform(words.platform.as_deref())?;
    let targets = targets::chosen(facts, words)?;
    let (answers, components) = match subject(&words.subject).map_err(gather_failure)? {
        Subject::Image(source) => images::answers(facts, words, platform, &environment, &source, targets)?,
        other => {
            let context = Context { facts, environment: &environment, on_this_machine: words.host };
            let evidence = gather(&other, &words.subject, &context).map_err(gather_failure)?;
            let answers = targets.into_iter().map(|target| answer(facts, &evidence, target)).collect();
            (answers, evidence.components)
        }
    };
    let tables = output::tables_used(facts, &TABLES);
    let subject = words.subject.as_str();
    match format {
        FindingFormat::Json => {
            let mut answers = answers;
            if words.explain {
                for answer in &mut answers {
                    answer.rules.clone_from(&answer.judgement.rules);
                }
            }
            output::json(&Report {
                schema: 1,
                subject,
                results: &answers,
                components: &components,
                tables: &tables,
            });
            output::warn_if_stale(&tables);
            return Ok(outcome(words, &answers));
        }
        FindingFormat::Sarif => output::json(&sarif::report(facts, subject, &answers)),
        FindingFormat::Text if words.all_sizes => text::matrix(subject, &answers),
        FindingFormat::Text => text::print(subject, &answers, words.explain),
    }
    output::warn_if_stale(&tables);
    Ok(outcome(words, &answers))
}

/// Yes if it runs on the GPU of every target; of all sizes, one is enough.
fn outcome(words: &CheckArgs, answers: &[Answer]) -> Outcome {
    let runs = |answer: &Answer| matches!(answer.judgement.verdict, Verdict::Works | Verdict::Jit);
    let yes = if words.all_sizes { answers.iter().any(runs) } else { answers.iter().all(runs) };
    if yes { Outcome::Yes } else { Outcome::No }
}

fn answer(facts: &Facts, evidence: &Evidence, target: Target) -> Answer {
    let judgement = judge(evidence, &target, facts);
    Answer { target, judgement, rules: Vec::new() }
}

fn variables(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |word: &String| match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::input(format!("`{word}` is no variable")).hint("write it as --env NAME=VALUE")),
    };
    words.iter().map(pair).collect()
}

/// An error of gathering evidence; of a file that cannot be checked, it also says which verb reads it.
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
