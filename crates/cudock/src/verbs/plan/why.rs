//! Everything about one size: what each service says, and each part of its cost with the arithmetic.

use cudock_base::format::duration;
use cudock_facts::finding::Finding;
use cudock_plan::{Placement, Plan, RuleLine, SizeAnswer, format, shared_rules};
use serde::Serialize;

use super::table::severity_words;
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, DIM, GREEN, RED, line, styled};

pub(super) fn text(plan: &Plan<'_>, name: &str) -> Result<Outcome, Failure> {
    let size = plan.size_named(name)?;
    let answers = plan.size_answers(size);
    line(format!("\n{}", styled(BOLD, size)));
    if answers.is_empty() {
        line("  no service offers it at a price the tables know");
    }
    let shared = shared_rules(&answers);
    for rule in &shared {
        line(rule_line(rule, "  "));
    }
    for answer in &answers {
        print(plan, answer, &shared);
    }
    Ok(outcome(&answers))
}

pub(super) fn json(plan: &Plan<'_>, title: &str, name: &str) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct Report<'a> {
        schema: u8,
        name: &'a str,
        size: &'a str,
        services: &'a [SizeAnswer<'a>],
    }
    let size = plan.size_named(name)?;
    let answers = plan.size_answers(size);
    output::json(&Report { schema: 1, name: title, size, services: &answers });
    Ok(outcome(&answers))
}

fn outcome(answers: &[SizeAnswer<'_>]) -> Outcome {
    if answers.iter().any(|answer| !answer.placements.is_empty()) { Outcome::Yes } else { Outcome::No }
}

fn rule_line(rule: &RuleLine, indent: &str) -> String {
    let mark = if rule.holds { "yes" } else { "no " };
    let text = output::wrapped(&format!("{indent}{mark}  "), &format!("{} [{}]", rule.text, rule.code));
    if rule.holds { styled(DIM, &text) } else { text }
}

fn print(plan: &Plan<'_>, answer: &SizeAnswer<'_>, shared: &[&RuleLine]) {
    let (style, word) = if answer.placements.is_empty() { (RED, "out ") } else { (GREEN, "fits") };
    line(format!("\n{}  {}", styled(style, word), styled(BOLD, answer.service.name())));
    for rule in answer.own_rules(shared) {
        line(rule_line(rule, "      "));
    }
    for rejection in answer.other_rejections() {
        let scope = [rejection.region.clone(), rejection.priority.map(|of| of.name().to_owned())];
        let scope: Vec<String> = scope.into_iter().flatten().collect();
        let scope = if scope.is_empty() { String::new() } else { format!("{}: ", scope.join(", ")) };
        line(output::wrapped("      out  ", &format!("{scope}{} [{}]", rejection.reason, rejection.code)));
    }
    for placement in &answer.placements {
        print_placement(plan, placement);
    }
}

/// One placement in full.
fn print_placement(plan: &Plan<'_>, placement: &Placement) {
    let count =
        if placement.instances == 1 { String::new() } else { format!("{} at once, ", placement.instances) };
    line(format!(
        "\n      {} in {}, {count}${} an hour each{}",
        placement.priority.name(),
        placement.region,
        format::hourly(placement.price_per_hour),
        placement.price_date.map_or_else(String::new, |date| format!(", read {date}")),
    ));
    let times = &placement.times;
    let parts = [("start", times.start), ("work", times.work), ("lost", times.lost), ("in all", times.total)];
    let shown = parts.iter().filter(|(_, time)| !time.is_zero());
    let shown: Vec<String> = shown.map(|(name, time)| format!("{name} {}", duration(*time))).collect();
    line(output::wrapped("        time   ", &shown.join(", ")));
    let width = placement.cost.parts.iter().map(|part| format::dollars(part.money).len()).max().unwrap_or(0);
    for part in &placement.cost.parts {
        let head = format!("        {:>width$}  {:10} ", format::dollars(part.money), part.kind.name());
        line(output::wrapped(&head, &part.how));
    }
    let unit = if plan.serves() { "a month of 730 hours" } else { "in all" };
    line(styled(BOLD, &format!("        {:>width$}  {unit}", format::dollars(placement.cost.total))));
    if let Some(million) = placement.per_million {
        line(format!("        {:>width$}  a million predictions", format::dollars(million)));
    }
    if let Some(quota) = &placement.quota {
        line(output::wrapped("        quota  ", quota));
    }
    for reason in &placement.reasons {
        line(styled(DIM, &output::wrapped("        because  ", reason)));
    }
    for warning in &placement.warnings {
        print_warning(warning);
    }
}

fn print_warning(warning: &Finding) {
    let (style, word) = severity_words(warning.severity);
    let indent = " ".repeat(8 + word.len() + 2);
    let seen: Vec<&str> = warning.evidence.iter().map(|seen| seen.detail.as_str()).collect();
    let seen = if seen.is_empty() { String::new() } else { format!(": {}", seen.join("; ")) };
    let text = output::wrapped(&indent, &format!("{}{seen} [{}]", warning.message, warning.code));
    line(format!("        {}  {}", styled(style, word), text.get(indent.len()..).unwrap_or_default()));
}
