//! Several targets at once: a table of targets and verdicts, then each reason once, then the count.

use cudock_compat::Verdict;
use cudock_facts::finding::{Finding, Severity};

use super::TargetResult;
use super::labels::{describe_error, verdict_label};
use crate::finding_text::{self as findings, FindingText};
use crate::output::{self, BOLD, DIM, RED, YELLOW, line, styled};

pub(crate) fn print(subject: &str, results: &[TargetResult]) {
    let columns = Columns::of(results);
    line(heading(subject, results));
    print_table(results, &columns);
    for group in groups(results) {
        print_group(&group, results.len(), &columns);
    }
    print_warnings(results);
    print_count(results);
}

/// The subject, and what in it can use a GPU.
fn heading(subject: &str, results: &[TargetResult]) -> String {
    const MOST: usize = 4;
    let artifacts =
        results.iter().map(|result| &result.judgement.artifacts).max_by_key(|artifacts| artifacts.len());
    let names = artifacts.into_iter().flatten().map(|artifact| artifact.name.as_str());
    let names: Vec<&str> = names.filter(|name| *name != subject).collect();
    let more = names.len().saturating_sub(MOST);
    let mut text = names.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    let subject = styled(BOLD, subject);
    if text.is_empty() { subject } else { format!("{subject}: {text}") }
}

fn name(result: &TargetResult) -> String {
    let gpu = result.target.gpu.as_deref().unwrap_or("no GPU");
    result.target.sku.as_ref().map_or_else(|| gpu.to_owned(), |sku| format!("{sku} ({gpu})"))
}

fn driver(result: &TargetResult) -> String {
    let assumed = if result.target.traits.driver_assumed.is_some() { "*" } else { "" };
    result.target.driver.map_or_else(|| "-".to_owned(), |driver| format!("{driver}{assumed}"))
}

/// The code of the finding that decides: the worst one.
fn code(result: &TargetResult) -> &'static str {
    result.judgement.findings.first().filter(|_| !runs(result)).map_or("", |finding| finding.code)
}

/// The widths of the table's columns.
struct Columns {
    gpus: usize,
    drivers: usize,
    reasons: usize,
}

impl Columns {
    fn of(results: &[TargetResult]) -> Self {
        let widest = |cell: &dyn Fn(&TargetResult) -> String, header: &str| {
            results.iter().map(|result| cell(result).chars().count()).max().unwrap_or(0).max(header.len())
        };
        let (gpus, drivers) = (widest(&name, "GPU"), widest(&driver, "driver"));
        let codes = widest(&|result| code(result).to_owned(), "");
        // Two blanks before and between the columns, and seven letters for the verdict.
        let used = 2 + gpus + 2 + drivers + 2 + 7 + 2 + if codes > 0 { 2 + codes } else { 0 };
        Self { gpus, drivers, reasons: output::width().saturating_sub(used).max(20) }
    }

    /// A reason that fits: whole, or its first clause, or nothing of it.
    fn short(&self, reason: &str) -> Option<String> {
        let first = reason.split("; ").next().unwrap_or(reason);
        let fits = |text: &&str| text.chars().count() <= self.reasons;
        [reason, first].into_iter().find(fits).map(str::to_owned)
    }

    fn cell(&self, reason: &str) -> String {
        self.short(reason).unwrap_or_else(|| {
            let kept: String = reason.chars().take(self.reasons.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        })
    }
}

fn print_table(results: &[TargetResult], columns: &Columns) {
    let Columns { gpus, drivers, reasons } = *columns;
    line("");
    line(styled(DIM, &format!("  {:<gpus$}  {:<drivers$}  verdict", "GPU", "driver")));
    for result in results {
        let (style, verdict) = verdict_label(result.judgement.verdict);
        let blank = " ".repeat(7_usize.saturating_sub(verdict.len()));
        let reason = columns.cell(&result.judgement.reason);
        let code = code(result);
        let reason = if code.is_empty() { reason } else { format!("{reason:<reasons$}  {code}") };
        let row = format!("  {:<gpus$}  {:<drivers$}  ", name(result), driver(result));
        line(format!("{row}{}{blank}  {reason}", styled(style, verdict)));
    }
}

/// Targets with the same error and the same way out.
struct TargetGroup<'a> {
    results: Vec<&'a TargetResult>,
}

impl TargetGroup<'_> {
    fn takes(&self, other: &TargetResult) -> bool {
        self.results.first().is_some_and(|known| {
            let same_fixes = fixes(known).eq(fixes(other));
            let (known, other) = (&known.judgement, &other.judgement);
            known.verdict == other.verdict && known.error == other.error && same_fixes
        })
    }
}

fn fixes(result: &TargetResult) -> impl Iterator<Item = (&str, &str)> {
    let filled = errors(result).filter(|finding| !finding.fix.is_empty());
    filled.map(|finding| (finding.fix.as_str(), finding.code))
}

/// The results that need an explanation, those alike together.
fn groups(results: &[TargetResult]) -> Vec<TargetGroup<'_>> {
    let mut groups: Vec<TargetGroup<'_>> = Vec::new();
    for result in results.iter().filter(|result| !runs(result)) {
        match groups.iter_mut().find(|group| group.takes(result)) {
            Some(group) => group.results.push(result),
            None => groups.push(TargetGroup { results: vec![result] }),
        }
    }
    groups
}

fn runs(result: &TargetResult) -> bool {
    result.judgement.verdict.uses_gpu()
}

fn print_group(group: &TargetGroup<'_>, of: usize, columns: &Columns) {
    let Some(first) = group.results.first() else { return };
    let names: Vec<String> = group.results.iter().map(|result| name(result)).collect();
    let who = if names.len() == of { "all targets".to_owned() } else { names.join(", ") };
    line(format!("\n{}", styled(BOLD, &who)));
    let mut shown: Vec<&str> = Vec::new();
    for result in &group.results {
        let reason = result.judgement.reason.as_str();
        // The table has shown what fits.
        if columns.short(reason).is_none() && !shown.contains(&reason) {
            shown.push(reason);
            line(output::wrapped("  reason: ", reason));
        }
    }
    if let Some(error) = &first.judgement.error {
        let error = error.code.map_or_else(|| describe_error(error), |code| format!("{code} {}", error.name));
        line(output::wrapped("  error:  ", &error));
    }
    for (fix, code) in fixes(first) {
        line(output::wrapped("  fix:    ", &format!("{fix} [{code}]")));
    }
}

/// The findings that decide a verdict: errors, or warnings if there are no errors.
fn errors(result: &TargetResult) -> impl Iterator<Item = &Finding> {
    let findings = &result.judgement.findings;
    let worst = findings.iter().map(|finding| finding.severity).max();
    findings
        .iter()
        .filter(move |finding| Some(finding.severity) == worst && finding.severity >= Severity::Warning)
}

/// Warnings that no group has shown, each once.
fn print_warnings(results: &[TargetResult]) {
    let mut shown: Vec<&Finding> = Vec::new();
    for result in results {
        let of_group: Vec<&Finding> = if runs(result) { Vec::new() } else { errors(result).collect() };
        let warnings = result
            .judgement
            .findings
            .iter()
            .filter(|finding| finding.severity >= Severity::Warning && !of_group.contains(finding));
        for warning in warnings {
            if !shown.contains(&warning) {
                shown.push(warning);
            }
        }
    }
    for (index, warning) in shown.iter().enumerate() {
        let of: Vec<String> =
            results.iter().filter(|result| result.judgement.findings.contains(warning)).map(name).collect();
        let of = if of.len() == results.len() { String::new() } else { format!("{}: ", of.join(", ")) };
        if index == 0 {
            line("");
        }
        let message = format!("{of}{}", warning.message);
        findings::print(0, &FindingText { message: &message, evidence: &[], ..FindingText::from(*warning) });
    }
}

fn print_count(results: &[TargetResult]) {
    let count = |wanted: Verdict| results.iter().filter(|result| result.judgement.verdict == wanted).count();
    let all = results.len();
    let (fail, cpu, unknown) = (count(Verdict::Fails), count(Verdict::Cpu), count(Verdict::Unknown));
    let parts: Vec<String> = [
        (fail, if fail == 1 { "fails" } else { "fail" }),
        (cpu, if cpu == 1 { "uses the CPU" } else { "use the CPU" }),
        (unknown, if unknown == 1 { "is unknown" } else { "are unknown" }),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} of {all} targets {what}"))
    .collect();
    let summary = if parts.is_empty() {
        format!("Runs on all {all} targets.")
    } else {
        styled(if fail + cpu > 0 { RED } else { YELLOW }, &format!("{}.", parts.join(", ")))
    };
    let page = results.iter().map(code).find(|code| !code.is_empty());
    let page = page.map_or_else(String::new, |code| format!("; pages: cudock explain {code}"));
    line(format!("\n{summary} Details: --explain{page}"));
    if results.iter().any(|result| result.target.traits.driver_assumed.is_some()) {
        line(styled(DIM, "* assumed driver; --driver names another"));
    }
}
