//! The report for people: what, where, what instead at what price, and what else must change.

use anstyle::Style;
use cudock_facts::finding::Severity;
use cudock_migrate::{Against, Change, Finding, Fit, Gpu, Old, Priced, Replacement};

use super::FileReport;
use crate::output::{self, BLUE, BOLD, DIM, GREEN, RED, YELLOW, line, styled};

/// So many replacements are shown; JSON has all.
const SHOWN: usize = 5;

pub(super) fn print(files: &[FileReport]) {
    let mut over = 0;
    for file in files {
        if file.findings.is_empty() {
            line(format!("{}: no choice of an Azure GPU", file.path));
        }
        for (index, finding) in file.findings.iter().enumerate() {
            over += usize::from(finding.is_over());
            print_headline(&file.path, finding);
            let before = file.findings.get(..index).unwrap_or_default();
            match before.iter().find(|other| same(other, finding)) {
                Some(other) => line(styled(DIM, &format!("  as in line {}", other.choice.span.line))),
                None => print_body(finding),
            }
        }
        if file.left_out > 0 {
            line(format!("{}: {} more choices are not told", file.path, file.left_out));
        }
    }
    let found: usize = files.iter().map(|file| file.findings.len()).sum();
    if found > 0 {
        let plural = if found == 1 { "" } else { "s" };
        let words = format!("{over} of {found} choice{plural} will not work any more");
        line(styled(if over > 0 { RED } else { GREEN }, &words));
    }
}

/// Whether a finding says what another has said.
fn same(one: &Finding, other: &Finding) -> bool {
    one.message == other.message && one.replacements == other.replacements && !one.replacements.is_empty()
}

fn print_headline(path: &str, finding: &Finding) {
    let (style, word): (Style, &str) = match (finding.severity, finding.code) {
        (Severity::Error, _) => (RED, "error"),
        (Severity::Warning, _) => (YELLOW, "warning"),
        (Severity::Note, Some(_)) => (BLUE, "note"),
        (Severity::Note, None) => (GREEN, "fine"),
    };
    let place = format!("{path}:{}:{}", finding.choice.span.line, finding.choice.span.column);
    let code = finding.code.map_or_else(String::new, |code| format!(" [{code}]"));
    line(format!("{}: {}: {}{code}", styled(BOLD, &place), styled(style, word), finding.message));
}

fn print_body(finding: &Finding) {
    let choice = &finding.choice;
    let region = choice.region.as_ref().map_or_else(String::new, |region| format!(", in {region}"));
    let low = if choice.low_priority { ", at low priority" } else { "" };
    if !choice.by.is_empty() {
        field("chosen by", &format!("{}{region}{low}", choice.by));
    }
    if let Some(old) = &finding.old {
        field(if finding.code.is_some() { "was" } else { "is" }, &old_words(old));
    }
    print_replacements(&finding.replacements);
    for note in &finding.notes {
        field("know", note);
    }
}

fn field(name: &str, text: &str) {
    line(output::wrapped(&format!("  {name:9}  "), text));
}

fn old_words(old: &Old) -> String {
    let machine = [
        old.gpu.as_ref().map(gpu_words),
        old.vcpu.map(|vcpu| format!("{vcpu} vCPU")),
        old.ram_gib.map(|ram| format!("{ram} GiB")),
        old.price.as_ref().map(price_words),
    ];
    machine.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn gpu_words(gpu: &Gpu) -> String {
    let count = if gpu.count < 1.0 { format!("1/{:.0}", 1.0 / gpu.count) } else { gpu.count.to_string() };
    let memory = gpu.memory_gb.map_or_else(String::new, |memory| format!(" {memory} GB"));
    format!("{count} x {}{memory}", gpu.id)
}

fn price_words(price: &Priced) -> String {
    format!("{} in {}", amount(price), where_and_when(price))
}

fn amount(price: &Priced) -> String {
    format!("{}${}/h", if price.assumed { "about " } else { "" }, price.usd)
}

fn where_and_when(price: &Priced) -> String {
    let date = price.date.map_or_else(String::new, |date| format!(" ({date})"));
    let spot = price.spot.map_or_else(String::new, |spot| format!(", Spot ${spot}"));
    format!("{}{date}{spot}", price.region)
}

/// How much more it costs than the old one, with the figures where they stand nowhere else.
fn against_words(against: &Against, price: Option<&Priced>) -> (String, Option<String>) {
    let change = format!("{:+} %", against.percent);
    if price.is_some_and(|price| price.region == against.region) {
        return (change, None);
    }
    let words = format!("{change} in {} (${} against ${})", against.region, against.new, against.old);
    (String::new(), Some(words))
}

fn print_replacements(replacements: &[Replacement]) {
    let shown = cheapest_of_each(replacements);
    let rows: Vec<[String; 5]> = shown.iter().take(SHOWN).map(|(one, more)| row(one, *more)).collect();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    for (index, ((one, _), cells)) in shown.iter().zip(&rows).enumerate() {
        let [name, gpu, price, percent, rest] = cells;
        let [first, second, third, fourth] = widths;
        let text = format!("{name:first$}  {gpu:second$}  {price:>third$}  {percent:>fourth$}  {rest}");
        field(if index == 0 { "instead" } else { "" }, &text);
        for change in &one.changes {
            line(output::wrapped("               - ", &change_words(change)));
        }
    }
    if shown.len() > SHOWN {
        field("", &format!("and {} more series, with --format json", shown.len() - SHOWN));
    }
}

/// Name, GPUs, price, change of the price, and the rest.
fn row(one: &Replacement, more: usize) -> [String; 5] {
    let price = one.price.as_ref();
    let (percent, elsewhere) =
        one.against.as_ref().map_or_else(Default::default, |against| against_words(against, price));
    let rest = [
        price.map(where_and_when),
        elsewhere,
        (one.fit == Fit::TooSmall).then(|| "less GPU memory".to_owned()),
        (more > 0).then(|| format!("{more} more of the series")),
    ];
    let rest: Vec<String> = rest.into_iter().flatten().collect();
    [
        one.name.clone(),
        gpu_words(&one.gpu),
        price.map_or_else(|| "no price".to_owned(), amount),
        percent,
        rest.join("; "),
    ]
}

fn change_words(change: &Change) -> String {
    let code = change.code.map_or_else(String::new, |code| format!(" [{code}]"));
    format!("{}{code}", change.text)
}

/// The first of each series, which is its cheapest, with how many more there are.
fn cheapest_of_each(replacements: &[Replacement]) -> Vec<(&Replacement, usize)> {
    let mut shown: Vec<(&Replacement, usize)> = Vec::new();
    for one in replacements {
        let known = shown.iter_mut().find(|(other, _)| one.series.is_some() && other.series == one.series);
        match known {
            Some((_, more)) => *more += 1,
            None => shown.push((one, 0)),
        }
    }
    shown
}
