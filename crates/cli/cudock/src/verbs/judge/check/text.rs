//! The report for people: verdict first, then why, then what to do.

use std::collections::BTreeMap;

use cudock_compat::{RULES, Target, Verdict};

use super::labels::{describe_error, verdict_label};
use super::{TargetResult, overview};
use crate::finding_text;
use crate::output::{self, BOLD, DIM, line, styled};

pub(crate) fn print(subject: &str, results: &[TargetResult], explain: bool) {
    if results.len() > 1 {
        overview::print(subject, results);
        if explain {
            print_each(results, explain);
        }
        return;
    }
    line(styled(BOLD, subject));
    print_each(results, explain);
}

fn print_each(results: &[TargetResult], explain: bool) {
    for result in results {
        let judgement = &result.judgement;
        let (style, verdict) = verdict_label(judgement.verdict);
        let blank = " ".repeat(8_usize.saturating_sub(verdict.len()));
        line(format!("\n{}{blank}{}", styled(style, verdict), styled(BOLD, &result.target.to_string())));
        line(output::wrapped("        ", &judgement.reason));
        if let Some(error) = &judgement.error {
            line(output::wrapped("        ", &describe_error(error)));
        }
        if judgement.artifacts.len() > 1 {
            for artifact in &judgement.artifacts {
                let (style, verdict) = verdict_label(artifact.verdict);
                let blank = " ".repeat(8_usize.saturating_sub(verdict.len()));
                let text =
                    output::wrapped(&" ".repeat(16), &format!("{}: {}", artifact.name, artifact.reason));
                line(format!(
                    "        {}{blank}{}",
                    styled(style, verdict),
                    text.get(16..).unwrap_or_default()
                ));
            }
        }
        for finding in &judgement.findings {
            finding_text::print(2, &finding.into());
        }
        if explain {
            print_rules(result);
        }
    }
}

fn print_rules(result: &TargetResult) {
    line(styled(DIM, "  rules applied"));
    for used in &result.judgement.rules {
        let text = RULES.iter().find(|rule| rule.id == used.rule).map_or("", |rule| rule.text);
        line(styled(
            DIM,
            &output::wrapped(&format!("    {:<4}", used.rule), &format!("{text} Here: {}", used.detail)),
        ));
    }
}

/// Sizes with the same result together: which can run it, which cannot and why.
pub(crate) fn matrix(subject: &str, results: &[TargetResult]) {
    line(styled(BOLD, subject));
    let mut groups: BTreeMap<(Verdict, String, String), Vec<&str>> = BTreeMap::new();
    for result in results {
        let judgement = &result.judgement;
        let number = judgement.error.as_ref().and_then(|error| error.code);
        let number = number.map_or_else(String::new, |code| format!("error {code}, "));
        let target = Target { sku: None, ..result.target.clone() }.to_string();
        let key = (judgement.verdict, target, format!("{number}{}", judgement.reason));
        groups.entry(key).or_default().push(result.target.sku.as_deref().unwrap_or("this machine"));
    }
    for ((verdict, target, reason), sizes) in &groups {
        let (style, verdict) = verdict_label(*verdict);
        let blank = " ".repeat(8_usize.saturating_sub(verdict.len()));
        line(format!("\n{}{blank}{}", styled(style, verdict), styled(BOLD, target)));
        line(output::wrapped("        ", reason));
        line(styled(DIM, &output::wrapped("        ", &sizes.join(", "))));
    }
    let runs = |result: &&TargetResult| result.judgement.verdict.uses_gpu();
    line(format!("\n{} of {} sizes can run it", results.iter().filter(runs).count(), results.len()));
    if results.iter().any(|result| result.target.traits.driver_assumed.is_some()) {
        let note = "drivers are those that Azure documents, or the newest that supports the GPU; set another with --driver";
        line(styled(DIM, note));
    }
}
