//! The report for people: verdict first, then why, then what to do.

use std::collections::BTreeMap;

use anstyle::Style;
use cudock_compat::{Failure, RULES, Target, Verdict};

use super::{Answer, overview};
use crate::findings;
use crate::output::{self, BOLD, DIM, GREEN, RED, YELLOW, line, styled};

pub(super) fn word(verdict: Verdict) -> (Style, &'static str) {
    let style = match verdict {
        Verdict::Works | Verdict::Jit => GREEN,
        Verdict::Cpu | Verdict::Fails => RED,
        Verdict::Unknown => YELLOW,
    };
    (style, verdict.name())
}

pub(super) fn print(subject: &str, answers: &[Answer], explain: bool) {
    if answers.len() > 1 {
        overview::print(subject, answers);
        if explain {
            print_each(answers, explain);
        }
        return;
    }
    line(styled(BOLD, subject));
    print_each(answers, explain);
}

fn print_each(answers: &[Answer], explain: bool) {
    for answer in answers {
        let judgement = &answer.judgement;
        let (style, verdict) = word(judgement.verdict);
        let blank = " ".repeat(8_usize.saturating_sub(verdict.len()));
        line(format!("\n{}{blank}{}", styled(style, verdict), styled(BOLD, &answer.target.words())));
        line(output::wrapped("        ", &judgement.reason));
        if let Some(error) = &judgement.error {
            line(output::wrapped("        ", &said(error)));
        }
        if judgement.units.len() > 1 {
            for unit in &judgement.units {
                let (style, verdict) = word(unit.verdict);
                let blank = " ".repeat(8_usize.saturating_sub(verdict.len()));
                let text = output::wrapped(&" ".repeat(16), &format!("{}: {}", unit.name, unit.reason));
                line(format!(
                    "        {}{blank}{}",
                    styled(style, verdict),
                    text.get(16..).unwrap_or_default()
                ));
            }
        }
        for finding in &judgement.findings {
            findings::print(2, &finding.into());
        }
        if explain {
            print_rules(answer);
        }
    }
}

/// An error as it will be seen: CUDA's with number and name, others in their own words.
pub(super) fn said(error: &Failure) -> String {
    match error.code {
        Some(code) => format!("error {code}, {}: {}", error.name, error.message),
        None if error.message.is_empty() => error.name.clone(),
        None => error.message.clone(),
    }
}

fn print_rules(answer: &Answer) {
    line(styled(DIM, "  rules applied"));
    for used in &answer.judgement.rules {
        let text = RULES.iter().find(|rule| rule.id == used.rule).map_or("", |rule| rule.text);
        line(styled(
            DIM,
            &output::wrapped(&format!("    {:<4}", used.rule), &format!("{text} Here: {}", used.detail)),
        ));
    }
}

/// Sizes with the same answer together: which can run it, which cannot and why.
pub(super) fn matrix(subject: &str, answers: &[Answer]) {
    line(styled(BOLD, subject));
    let mut groups: BTreeMap<(Verdict, String, String), Vec<&str>> = BTreeMap::new();
    for answer in answers {
        let judgement = &answer.judgement;
        let number = judgement.error.as_ref().and_then(|error| error.code);
        let number = number.map_or_else(String::new, |code| format!("error {code}, "));
        let target = Target { sku: None, ..answer.target.clone() }.words();
        let key = (judgement.verdict, target, format!("{number}{}", judgement.reason));
        groups.entry(key).or_default().push(answer.target.sku.as_deref().unwrap_or("this machine"));
    }
    for ((verdict, target, reason), sizes) in &groups {
        let (style, word) = word(*verdict);
        let blank = " ".repeat(8_usize.saturating_sub(word.len()));
        line(format!("\n{}{blank}{}", styled(style, word), styled(BOLD, target)));
        line(output::wrapped("        ", reason));
        line(styled(DIM, &output::wrapped("        ", &sizes.join(", "))));
    }
    let runs = |answer: &&Answer| matches!(answer.judgement.verdict, Verdict::Works | Verdict::Jit);
    line(format!("\n{} of {} sizes can run it", answers.iter().filter(runs).count(), answers.len()));
    if answers.iter().any(|answer| answer.target.traits.driver_assumed.is_some()) {
        let note =
            "drivers are those Azure documents, or the newest that drives the card; --driver names another";
        line(styled(DIM, note));
    }
}
