//! Explains one size: its result on each service, and the calculation of each part of its cost.

use cudock_base::text::format::duration;
use cudock_facts::finding::Finding;
use cudock_plan::report::format;
use cudock_plan::{Placement, Plan, RuleLine, SizeReport, shared_rules};
use schemars::JsonSchema;
use serde::Serialize;

use super::text::placement::print_labeled;
use crate::failure::{Failure, Outcome};
use crate::finding_text::severity_label;
use crate::output::{self, BOLD, DIM, GREEN, RED, line, styled};

/// The report of `--why` as JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WhyReport<'a> {
    schema: u8,
    name: &'a str,
    size: &'a str,
    services: &'a [SizeReport<'a>],
}

pub(crate) fn text(plan: &Plan<'_>, name: &str) -> Result<Outcome, Failure> {
    let size = plan.size_named(name)?;
    let reports = plan.size_reports(size);
    line(format!("\n{}", styled(BOLD, size)));
    if reports.is_empty() {
        line("  no service offers it at a known price");
    }
    let shared = shared_rules(&reports);
    for rule in &shared {
        line(rule_line(rule, "  "));
    }
    for report in &reports {
        print(plan, report, &shared);
    }
    Ok(outcome(&reports))
}

pub(crate) fn json(plan: &Plan<'_>, title: &str, name: &str) -> Result<Outcome, Failure> {
    let size = plan.size_named(name)?;
    let reports = plan.size_reports(size);
    output::json(&WhyReport { schema: 1, name: title, size, services: &reports });
    Ok(outcome(&reports))
}

fn outcome(reports: &[SizeReport<'_>]) -> Outcome {
    if reports.iter().any(|report| !report.placements.is_empty()) { Outcome::Yes } else { Outcome::No }
}

fn rule_line(rule: &RuleLine, indent: &str) -> String {
    let mark = if rule.holds { "yes" } else { "no " };
    let text = output::wrapped(&format!("{indent}{mark}  "), &format!("{} [{}]", rule.text, rule.code));
    if rule.holds { styled(DIM, &text) } else { text }
}

fn print(plan: &Plan<'_>, report: &SizeReport<'_>, shared: &[&RuleLine]) {
    let (style, label) = if report.placements.is_empty() { (RED, "rejected") } else { (GREEN, "fits") };
    line(format!("\n{}  {}", styled(style, label), styled(BOLD, report.service.name())));
    for rule in report.own_rules(shared) {
        line(rule_line(rule, "      "));
    }
    for rejection in report.other_rejections() {
        let scope = [rejection.region.clone(), rejection.priority.map(|of| of.name().to_owned())];
        let scope: Vec<String> = scope.into_iter().flatten().collect();
        let scope = if scope.is_empty() { String::new() } else { format!("{}: ", scope.join(", ")) };
        line(output::wrapped("      no   ", &format!("{scope}{} [{}]", rejection.reason, rejection.code)));
    }
    for placement in &report.placements {
        print_placement(plan, placement);
    }
}

/// One placement in full.
fn print_placement(plan: &Plan<'_>, placement: &Placement) {
    let count =
        if placement.instances == 1 { String::new() } else { format!("{} instances, ", placement.instances) };
    line(format!(
        "\n      {} in {}, {count}${} per hour{}",
        placement.priority.name(),
        placement.region,
        format::hourly(placement.price_per_hour),
        placement.price_date.map_or_else(String::new, |date| format!(", read {date}")),
    ));
    let times = &placement.times;
    let parts = [("start", times.start), ("work", times.work), ("lost", times.lost), ("total", times.total)];
    let shown = parts.iter().filter(|(_, time)| !time.is_zero());
    let shown: Vec<String> = shown.map(|(name, time)| format!("{name} {}", duration(*time))).collect();
    line(output::wrapped("        time   ", &shown.join(", ")));
    let width = placement.cost.parts.iter().map(|part| format::dollars(part.money).len()).max().unwrap_or(0);
    for part in &placement.cost.parts {
        let head = format!("        {:>width$}  {:10} ", format::dollars(part.money), part.kind.name());
        line(output::wrapped(&head, &part.arithmetic));
    }
    let unit = if plan.serves() { "per month of 730 hours" } else { "total" };
    line(styled(BOLD, &format!("        {:>width$}  {unit}", format::dollars(placement.cost.total))));
    if let Some(million) = placement.per_million {
        line(format!("        {:>width$}  per million requests", format::dollars(million)));
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
    let (style, label) = severity_label(warning.severity);
    let details: Vec<&str> = warning.evidence.iter().map(|one| one.detail.as_str()).collect();
    let details = if details.is_empty() { String::new() } else { format!(": {}", details.join("; ")) };
    let text = format!("{}{details} [{}]", warning.message, warning.code);
    print_labeled(style, label, &format!("        {label}  "), &text);
}
