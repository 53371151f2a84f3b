//! `cudock lint`: problems of Dockerfiles for GPU images, and their fixes.

mod text;

use std::path::PathBuf;

use cudock_base::Environment;
use cudock_base::text::table::TextTable;
use cudock_cli::LintArgs;
use cudock_facts::Facts;
use cudock_facts::formats::ReportedFinding;
use cudock_lint::{
    FileReport, FixMode, ImageCheck, LintFlags, LintedFile, Linter, RuleReport, Totals, dockerfiles,
    rule_reports,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::{self, FindingFormat, TableUsed};
use crate::steps::images::refuse_digest;

const TABLES: [&str; 5] = ["images", "drivers", "gpus", "frameworks", "packages"];

#[derive(Serialize, JsonSchema)]
pub(crate) struct LintReport<'a> {
    schema: u8,
    files: Vec<FileReport<'a>>,
    total: Totals,
    tables: Vec<TableUsed>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RulesReport {
    schema: u8,
    rules: Vec<RuleReport>,
}

pub(crate) fn run(
    facts: &Facts,
    args: &LintArgs,
    format: FindingFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    if args.rules {
        print_rules(facts, format);
        return Ok(Outcome::Yes);
    }
    let flags = LintFlags { target: args.target.clone(), driver: args.driver, fail_level: args.fail_level };
    let images = args.online.then(|| ImageCheck::from_environment(&Environment::of_process())).transpose()?;
    let mut linter = Linter::new(facts, output::today(), flags, images.as_ref());
    let mode = match (args.fix, args.dry_run) {
        (false, _) => FixMode::Off,
        (true, true) => FixMode::Preview,
        (true, false) => FixMode::Apply,
    };
    args.paths.iter().try_for_each(|path| refuse_digest(path))?;
    let current = [PathBuf::from(".")];
    let paths = dockerfiles(if args.paths.is_empty() { &current } else { &args.paths })?;
    let lint = |path: &PathBuf| linter.lint_file(path, std::io::stdin().lock(), mode);
    let files = paths.iter().map(lint).collect::<Result<Vec<_>, _>>()?;
    images.iter().flat_map(ImageCheck::problems).for_each(output::note);
    let fails = files.iter().any(|file| file.fails);
    let tables = output::tables_used(facts, &TABLES);
    output::warn_if_stale(&tables);
    match format {
        FindingFormat::Text => text::print(&files, mode, is_verbose),
        FindingFormat::Json => {
            let total = Totals::of(files.iter().flat_map(|file| &file.findings));
            let files = files.iter().map(LintedFile::report).collect();
            output::json(&LintReport { schema: 1, files, total, tables });
        }
        FindingFormat::Other(format) => output::findings(facts, format, &reported(files)),
    }
    Ok(if fails { Outcome::No } else { Outcome::Yes })
}

/// The findings for code scanners and annotations.
fn reported(files: Vec<LintedFile>) -> Vec<ReportedFinding> {
    let findings = files.into_iter().flat_map(|file| file.findings);
    findings
        .map(|finding| {
            let path = finding.location.as_ref().map_or("", |location| location.path.as_str());
            ReportedFinding {
                fingerprint: format!("{}|{path}|{}", finding.code, finding.message),
                properties: json!({"saves_bytes": finding.saves_bytes}),
                ..ReportedFinding::new(finding)
            }
        })
        .collect()
}

fn print_rules(facts: &Facts, format: FindingFormat) {
    let rules = rule_reports();
    if format == FindingFormat::Json {
        output::json(&RulesReport { schema: 1, rules });
        return;
    }
    let title = |code| facts.findings().get(code).map_or_else(String::new, |page| page.title.clone());
    let rows = rules.iter().map(|rule| {
        let fixes = if rule.fixable { "yes" } else { "" };
        [rule.code, rule.name, rule.severity.name(), fixes]
            .map(str::to_owned)
            .into_iter()
            .chain([title(rule.code)])
            .collect()
    });
    output::table(&TextTable::list(&["CODE", "NAME", "SEVERITY", "FIX", "FINDS"], rows.collect()));
}
