//! The text report: placements, the best choices, notes, and rejections.

use cudock_facts::services::AzureOffering;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cudock_base::text::format::{count, thousands};
use cudock_facts::finding::Finding;
use cudock_plan::{Listed, Rejection, codes};

use super::super::View;
use super::super::json::Relaxed;
use super::notes::{deployable_note, order_note};
use super::placement::{describe, price, print_labeled};
use crate::finding_text::severity_label;
use crate::output::{self, BOLD, DIM, GREEN, RED, line, styled};

/// How many details of a note are shown.
const DETAILS: usize = 3;

/// The placements, one line each.
pub(crate) fn placements(view: &View<'_>, placements: &[Listed]) {
    let fitting = view.plan.ranked().len();
    let considered = thousands(&view.plan.considered().to_string());
    line(format!("\n{} of {considered} offers fit", thousands(&fitting.to_string())));
    output::table(&view.plan.table(placements));
    if placements.iter().any(|shown| shown.other_regions > 0) {
        line(styled(
            DIM,
            "+N: available in N other regions at the same or a higher price; list them with --all-regions",
        ));
    }
}

/// Placements that would fit but that no source lists, which are never among the choices.
pub(crate) fn unlisted(view: &View<'_>, placements: &[Listed]) {
    let Some(first) = placements.first() else { return };
    let all = view.plan.unlisted_best_regions().len();
    let more = match all.saturating_sub(placements.len()) {
        0 => String::new(),
        more => format!("; {more} more with --format json"),
    };
    line(format!("\n{}{}", styled(BOLD, "Not listed in this region"), styled(DIM, &more)));
    output::table(&view.plan.table(placements));
    let finding = first.placement.warnings.iter().find(|finding| finding.code == codes::NOT_LISTED);
    if let Some(finding) = finding {
        let (style, label) = severity_label(finding.severity);
        let text =
            format!("no source lists these sizes for these services in these regions [{}]", finding.code);
        line(format!("  {} {text}", styled(style, label)));
        line(output::wrapped("          fix: ", &finding.fix));
    }
}

/// The best choices, one line each, and why the rows are in their order.
pub(crate) fn choices(view: &View<'_>, placements: &[Listed]) {
    line("");
    order_note(view, placements).into_iter().for_each(line);
    deployable_note(view, placements).into_iter().for_each(line);
    for choice in ["cheapest", "fastest", "least management"] {
        if let Some(shown) = placements.iter().find(|shown| shown.best_at.contains(&choice)) {
            let is_published = choice == "fastest" && view.plan.compares_published();
            let how = if is_published { " (by published GPU throughput; nothing was measured)" } else { "" };
            let (name, price) = (describe(&shown.placement), price(view, &shown.placement));
            let text = format!("#{} {name}: {price}{how}", shown.rank);
            print_labeled(GREEN, choice, &format!("{choice:16}  "), &text);
        }
    }
}

/// Notes about the placements shown: one per code, with the ranks it applies to.
pub(crate) fn warnings(placements: &[Listed]) {
    let mut codes: BTreeMap<_, Vec<(usize, &Finding)>> = BTreeMap::new();
    for shown in placements {
        for warning in &shown.placement.warnings {
            let key = (Reverse(warning.severity), warning.code);
            codes.entry(key).or_default().push((shown.rank, warning));
        }
    }
    if codes.is_empty() {
        return;
    }
    line(format!("\n{}", styled(BOLD, "Notes")));
    for ((severity, code), findings) in codes {
        let Some((_, first)) = findings.first() else { continue };
        let ranks: BTreeSet<usize> = findings.iter().map(|(rank, _)| *rank).collect();
        let messages: BTreeSet<&str> = findings.iter().map(|(_, finding)| finding.message.as_str()).collect();
        let alike = if messages.len() > 1 { " (and similar)" } else { "" };
        let text = format!("{}{alike} [{code}; #{}]", first.message, runs(&ranks));
        let (style, label) = severity_label(severity.0);
        print_labeled(style, label, &format!("  {label:8}"), &text);
        let evidence = findings.iter().flat_map(|(_, finding)| &finding.evidence);
        let details: BTreeSet<&str> = evidence.map(|evidence| evidence.detail.as_str()).collect();
        for detail in details.iter().take(DETAILS) {
            line(styled(DIM, &output::wrapped("          ", detail)));
        }
        if details.len() > DETAILS {
            line(styled(DIM, &format!("          and {} more with --format json", details.len() - DETAILS)));
        }
        if !first.fix.is_empty() {
            line(output::wrapped("          fix: ", &first.fix));
        }
    }
}

/// Numbers with consecutive ones joined: `1-4, 7`.
fn runs(numbers: &BTreeSet<usize>) -> String {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match pieces.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => pieces.push((*number, *number)),
        }
    }
    let piece = |(begin, end): &(usize, usize)| {
        if begin == end { begin.to_string() } else { format!("{begin}-{end}") }
    };
    pieces.iter().map(piece).collect::<Vec<_>>().join(", ")
}

/// The rejections by reason, or with `all` one by one.
pub(crate) fn rejected(view: &View<'_>, all: bool, fits: bool) {
    let rejected = view.plan.rejected();
    if rejected.is_empty() {
        return;
    }
    let how = if all { "" } else { "; list them with --all, explain one with --why SIZE" };
    line(format!("\n{}{}", styled(BOLD, "Rejected"), styled(DIM, how)));
    if all {
        for rejection in rejected {
            print_rejection(&subject(rejection), rejection);
        }
        return;
    }
    rejected_services(view, fits);
    let mut codes: BTreeMap<&str, Vec<&Rejection>> = BTreeMap::new();
    for rejection in rejected.iter().filter(|rejection| rejection.size.is_some()) {
        codes.entry(rejection.code).or_default().push(rejection);
    }
    for (code, rejections) in codes {
        let sizes: BTreeSet<&str> =
            rejections.iter().filter_map(|rejection| rejection.size.as_deref()).collect();
        let Some(nearest) = rejections.iter().min_by_key(|rejection| rejection.distance) else { continue };
        let pages = &view.plan.facts().findings().finding;
        let title = pages.iter().find(|page| page.code == code).map_or("", |page| page.title.as_str());
        let title = if title.is_empty() { String::new() } else { format!("{title}; ") };
        let text = format!(
            "{}: {title}for example {}: {} [{code}]",
            count(sizes.len(), "size"),
            subject(nearest),
            nearest.reason
        );
        line(output::wrapped("  ", &text));
    }
}

/// Services without a placement: their own rejection, or that of the nearest size. If nothing fits at all, the nearest
/// sizes are listed already.
fn rejected_services(view: &View<'_>, fits: bool) {
    let present: BTreeSet<AzureOffering> =
        view.plan.ranked().iter().chain(view.plan.unlisted()).map(|ranked| ranked.offer.service).collect();
    for service in AzureOffering::ALL.into_iter().filter(|service| !present.contains(service)) {
        let of_service =
            || view.plan.rejected().iter().filter(|rejection| rejection.service == Some(service));
        let whole = of_service().find(|rejection| rejection.size.is_none());
        let nearest = || of_service().min_by_key(|rejection| rejection.distance).filter(|_| fits);
        let Some(rejection) = whole.or_else(nearest) else { continue };
        let size = rejection.size.as_ref().map(|size| format!(": no size fits; nearest {size}"));
        print_rejection(&format!("{}{}", service.name(), size.unwrap_or_default()), rejection);
    }
}

fn print_rejection(subject: &str, rejection: &Rejection) {
    line(output::wrapped("  ", &format!("{subject}: {} [{}]", rejection.reason, rejection.code)));
}

fn subject(rejection: &Rejection) -> String {
    let mut text = match (&rejection.size, rejection.service) {
        (Some(size), Some(service)) => format!("{size} on {}", service.id()),
        (Some(size), None) => size.clone(),
        (None, Some(service)) => service.name().to_owned(),
        (None, None) => "all".to_owned(),
    };
    if let Some(region) = &rejection.region {
        text = format!("{text} in {region}");
    }
    if let Some(priority) = rejection.priority {
        text = format!("{text}, {}", priority.name());
    }
    text
}

/// Reports that nothing fits: the nearest sizes, and the relaxations that would help.
pub(crate) fn no_fit(view: &View<'_>, relaxed: &[Relaxed]) {
    let considered = thousands(&view.plan.considered().to_string());
    let verdict = match view.plan.unlisted().len() {
        0 => format!("none of {considered} offers fit"),
        several => {
            format!("none of {considered} offers is documented to fit; {several} undocumented offers would")
        }
    };
    line(styled(RED, &verdict));
    let nearest = view.plan.nearest();
    if !nearest.is_empty() {
        line(styled(BOLD, "Nearest"));
        for rejection in nearest.iter().take(5) {
            print_rejection(&subject(rejection), rejection);
        }
    }
    if relaxed.is_empty() {
        line("more than two needs or constraints would have to be relaxed");
        return;
    }
    line(styled(BOLD, "It would fit with"));
    for one in relaxed {
        let text = format!("{}: {}, {}", one.change, describe(&one.placement), price(view, &one.placement));
        line(output::wrapped("  ", &text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_joined() {
        assert_eq!(runs(&BTreeSet::from([1, 2, 3, 7, 9, 10])), "1-3, 7, 9-10");
        assert_eq!(runs(&BTreeSet::new()), "");
    }
}
