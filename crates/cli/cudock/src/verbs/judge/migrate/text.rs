//! The report as text: what no longer works and where, what replaces it at what price, and what the image must have.

use std::ops::Not;

use cudock_base::text::format::count;
use cudock_facts::finding::Severity;
use cudock_migrate::{ChoiceFinding, Fit, HourlyPrice, MachineGpu, OldMachine, Replacement};

use super::FileReport;
use crate::finding_text::{self as findings, FindingText, severity_label};
use crate::output::{self, DIM, GREEN, RED, line, styled};

/// Maximum number of series in the text; `--format json` has all.
const SHOWN: usize = 5;

pub(crate) fn print(files: &[FileReport], verbose: bool) {
    for file in files {
        if file.findings.is_empty() {
            line(format!("{}: no Azure GPU size or service found", file.path));
        }
        for (index, finding) in file.findings.iter().enumerate() {
            print_heading(&file.path, finding);
            let before = file.findings.get(..index).unwrap_or_default();
            match before.iter().find(|other| is_repeated(other, finding)) {
                Some(other) => line(styled(DIM, &format!("  as in line {}", other.choice.span.line))),
                None => print_body(finding, verbose),
            }
        }
        if file.left_out > 0 {
            line(format!("{}: {} omitted", file.path, count(file.left_out, "more finding")));
        }
    }
    let findings = || files.iter().flat_map(|file| &file.findings);
    let (all, over) = (findings().count(), findings().filter(|finding| finding.is_over()).count());
    if all > 0 {
        let verb = if over == 1 { "works" } else { "work" };
        let summary = format!("\n{over} of {} no longer {verb}", count(all, "choice"));
        line(styled(if over > 0 { RED } else { GREEN }, &summary));
    }
}

/// Whether a finding repeats another one.
fn is_repeated(one: &ChoiceFinding, other: &ChoiceFinding) -> bool {
    one.message == other.message && one.replacements == other.replacements && !one.replacements.is_empty()
}

fn print_heading(path: &str, finding: &ChoiceFinding) {
    let label = match (finding.severity, finding.code) {
        (Severity::Note, None) => (GREEN, "ok"),
        (severity, _) => severity_label(severity),
    };
    findings::print(
        0,
        &FindingText {
            label,
            position: Some(format!("{path}:{}:{}", finding.choice.span.line, finding.choice.span.column)),
            message: &finding.message,
            code: finding.code,
            excerpt: None,
            evidence: &[],
            fix: None,
        },
    );
}

fn print_body(finding: &ChoiceFinding, verbose: bool) {
    let choice = &finding.choice;
    if verbose && !choice.role.is_empty() {
        let low_priority = if choice.low_priority { ", at low priority" } else { "" };
        line(output::wrapped("  chosen by ", &format!("{}{low_priority}", choice.role)));
    }
    print_replacements(&finding.cheapest_of_each_series(), verbose);
    let old = finding.old.as_ref().map(old_machine).filter(|old| !old.is_empty());
    if let Some(old) = old {
        let verb = if finding.code.is_some() { "was" } else { "is" };
        line(output::wrapped("  ", &format!("{verb} {old}")));
    }
    // The most capable of what is shown needs the check most.
    let checked = finding.replacements.iter().find(|one| needs_other_code(one));
    if let Some(one) = checked {
        let flag = if one.service == "vm" { "--size" } else { "--gpu" };
        let target = if one.service == "vm" { &one.name } else { &one.gpu.id };
        line(output::wrapped("  ", &format!("check the image first: cudock check IMAGE {flag} {target}")));
    }
    for note in &finding.notes {
        line(output::wrapped("  note: ", note));
    }
}

/// Whether an image built for the old GPU may have no code for the new one.
fn needs_other_code(one: &Replacement) -> bool {
    one.changes.iter().any(|change| change.code == Some(cudock_migrate::codes::NO_CODE_FOR_GPU))
}

fn old_machine(old: &OldMachine) -> String {
    let parts = [
        old.gpu.as_ref().map(gpus),
        old.vcpu.map(|vcpu| format!("{vcpu} vCPU")),
        old.ram_gib.map(|ram| format!("{ram} GiB")),
        old.price.as_ref().map(|price| format!("${}/h in {}", price.usd, price.region)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn gpus(gpu: &MachineGpu) -> String {
    let count = if gpu.count < 1.0 { format!("1/{:.0}", 1.0 / gpu.count) } else { gpu.count.to_string() };
    let memory = gpu.memory_gb.map_or_else(String::new, |memory| format!(" {memory} GB"));
    format!("{count} x {}{memory}", gpu.id)
}

fn print_replacements(shown: &[&Replacement], verbose: bool) {
    if shown.is_empty() {
        return;
    }
    let header = ["replacement", "GPU", "USD/h", "change", "your image must have"].map(str::to_owned);
    let rows: Vec<[String; 5]> = shown.iter().take(SHOWN).map(|one| row(one)).collect();
    let width = |column: usize| {
        let cells = std::iter::once(&header).chain(&rows).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let [name_width, gpu_width, price_width, change_width] = [0, 1, 2, 3].map(width);
    let print_row = |[name, gpu, price, change, needs]: &[String; 5]| {
        let cells = format!(
            "  {name:name_width$}  {gpu:gpu_width$}  {price:>price_width$}  {change:>change_width$}  "
        );
        output::wrapped(&cells, needs).trim_end().to_owned()
    };
    line("");
    line(styled(DIM, &print_row(&header)));
    for (one, cells) in shown.iter().zip(&rows) {
        line(print_row(cells));
        for change in one.changes.iter().filter(|_| verbose) {
            let code = change.code.map_or_else(String::new, |code| format!(" [{code}]"));
            line(output::wrapped("    - ", &format!("{}{code}", change.text)));
        }
        if let Some(price) = one.price.as_ref().filter(|_| verbose) {
            line(output::wrapped("    - ", &price_source(price)));
        }
    }
    if shown.len() > SHOWN {
        line(format!("  {} omitted (--format json)", count(shown.len() - SHOWN, "more replacement")));
    }
    line("");
}

fn price_source(price: &HourlyPrice) -> String {
    let date = price.date.map_or_else(String::new, |date| format!(" ({date})"));
    let spot = price.spot.map_or_else(String::new, |spot| format!(", Spot ${spot}/h"));
    format!("price in {}{date}{spot}", price.region)
}

/// Name, GPUs, price, change of the price, and what the image needs.
fn row(one: &Replacement) -> [String; 5] {
    let price = one.price.as_ref().map_or_else(
        || "unknown".to_owned(),
        |price| format!("{}{}", if price.assumed { "~" } else { "" }, price.usd),
    );
    let change = one.against.as_ref().map_or_else(String::new, |against| format!("{:+} %", against.percent));
    let too_small = (one.fit == Fit::TooSmall).then_some("less GPU memory");
    let briefs =
        one.changes.iter().filter_map(|change| change.brief.is_empty().not().then_some(&*change.brief));
    let needs: Vec<&str> = briefs.chain(too_small).collect();
    [one.name.clone(), gpus(&one.gpu), price, change, needs.join("; ")]
}
