//! The report for people: the placements, the three choices, what to know, and what is out and why.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cudock_base::format::{count, duration, thousands};
use cudock_facts::finding::{Finding, Severity};
use cudock_plan::{Listed, Placement, Priority, Rejection, ServiceKind, codes, format};

use super::View;
use super::json::Relaxed;
use crate::output::{self, BLUE, BOLD, DIM, GREEN, RED, YELLOW, line, styled};
use crate::table::{Align, TextTable};

/// How much of what a warning rests on is shown.
const DETAILS: usize = 3;

/// The placements, one line each.
pub(super) fn placements(view: &View<'_>, placements: &[Listed]) {
    let fitting = view.plan.ranked().len();
    let considered = thousands(&view.plan.considered().to_string());
    line(format!("\n{} of {considered} offers fit", thousands(&fitting.to_string())));
    rows(view, placements);
    if placements.iter().any(|shown| shown.other_regions > 0) {
        line(styled(DIM, "+N: as cheap or dearer in N other regions; --all-regions lists them"));
    }
}

/// What would fit, but that no source says the service has there: told apart, and never among the choices.
pub(super) fn unlisted(view: &View<'_>, placements: &[Listed]) {
    let Some(first) = placements.first() else { return };
    let all = view.plan.unlisted_best_regions().len();
    let more = match all.saturating_sub(placements.len()) {
        0 => String::new(),
        more => format!("; {more} more, with --format json"),
    };
    line(format!("\n{}{}", styled(BOLD, "not listed"), styled(DIM, &more)));
    rows(view, placements);
    let finding = first.placement.warnings.iter().find(|finding| finding.code == codes::NOT_LISTED);
    if let Some(finding) = finding {
        let (style, word) = severity_words(finding.severity);
        let text = format!("no source says that these services have these sizes there [{}]", finding.code);
        line(format!("  {} {text}", styled(style, word)));
        line(output::wrapped("          fix: ", &finding.fix));
    }
}

pub(super) fn rows(view: &View<'_>, placements: &[Listed]) {
    let several = placements.iter().any(|shown| shown.placement.instances > 1);
    let (at_once, last) = if view.plan.serves() {
        ("peak", ["longest wait", "USD/month", "USD/million"])
    } else {
        ("at once", ["", "time", "USD"])
    };
    let mut table = TextTable::report([
        ("#", Align::Right),
        ("service", Align::Left),
        ("size", Align::Left),
        ("GPU", Align::Left),
        (if several { at_once } else { "" }, Align::Right),
        ("region", Align::Left),
        ("priority", Align::Left),
        ("USD/h", Align::Right),
        (last[0], Align::Right),
        (last[1], Align::Right),
        (last[2], Align::Right),
        ("", Align::Left),
    ]);
    for shown in placements {
        let placement = &shown.placement;
        let region = match shown.other_regions {
            0 => placement.region.clone(),
            others => format!("{} +{others}", placement.region),
        };
        let [first, second, third] = if view.plan.serves() {
            let million = placement.per_million.map(|money| money.to_string());
            let month = placement.per_month.unwrap_or(placement.cost.total);
            [wait(placement), month.to_string(), million.unwrap_or_else(|| "-".to_owned())]
        } else {
            [String::new(), duration(placement.times.total), placement.cost.total.to_string()]
        };
        table.row(vec![
            shown.rank.to_string(),
            placement.service.id().to_owned(),
            placement.size.clone(),
            format::gpus(placement),
            if several { placement.instances.to_string() } else { String::new() },
            region,
            placement.priority.name().to_owned(),
            format::hourly(placement.price_per_hour),
            first,
            second,
            third,
            shown.best_at.join(", "),
        ]);
    }
    table.print();
}

/// The three choices, in a line each.
pub(super) fn choices(view: &View<'_>, placements: &[Listed]) {
    line("");
    for name in ["cheapest", "fastest", "least management"] {
        if let Some(shown) = placements.iter().find(|shown| shown.best_at.contains(&name)) {
            let how = match name {
                "fastest" if view.plan.compares_published() => {
                    " (by published throughput of its GPU: nothing was measured)"
                }
                _ => "",
            };
            let (place, price) = (place(&shown.placement), price(view, &shown.placement));
            let text = format!("#{} {place}: {price}{how}", shown.rank);
            let wrapped = output::wrapped(&" ".repeat(18), &text);
            line(format!(
                "{}  {}",
                styled(GREEN, &format!("{name:16}")),
                wrapped.get(18..).unwrap_or_default()
            ));
        }
    }
}

/// Where: service, size, region, and the priority if it can be taken away.
pub(super) fn place(placement: &Placement) -> String {
    let spot = if placement.priority == Priority::Spot { ", Spot" } else { "" };
    format!("{} on {} in {}{spot}", placement.size, placement.service.name(), placement.region)
}

/// What it costs there, and how long it takes.
pub(super) fn price(view: &View<'_>, placement: &Placement) -> String {
    let total = format::dollars(placement.cost.total);
    if view.plan.serves() {
        let million = placement
            .per_million
            .map_or_else(String::new, |money| format!(", {} a million predictions", format::dollars(money)));
        let wait = match wait(placement).as_str() {
            "none" => "always up".to_owned(),
            wait => format!("cold starts of {wait}"),
        };
        format!("{total} a month{million}, {wait}")
    } else {
        format!("{total} in {}", duration(placement.times.total))
    }
}

/// The longest wait of a request that finds nothing running.
fn wait(placement: &Placement) -> String {
    if placement.times.total.is_zero() { "none".to_owned() } else { duration(placement.times.total) }
}

/// What to know of the placements shown: one line a code, with the ranks it holds for.
pub(super) fn warnings(placements: &[Listed]) {
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
    line(format!("\n{}", styled(BOLD, "to know")));
    for ((severity, code), found) in codes {
        let Some((_, first)) = found.first() else { continue };
        let ranks: BTreeSet<usize> = found.iter().map(|(rank, _)| *rank).collect();
        let messages: BTreeSet<&str> = found.iter().map(|(_, finding)| finding.message.as_str()).collect();
        let alike = if messages.len() > 1 { " (and the like)" } else { "" };
        let text = format!("{}{alike} [{code}; #{}]", first.message, runs(&ranks));
        let (style, word) = severity_words(severity.0);
        let blank = " ".repeat(8_usize.saturating_sub(word.len()));
        let wrapped = output::wrapped(&" ".repeat(10), &text);
        line(format!("  {}{blank}{}", styled(style, word), wrapped.get(10..).unwrap_or_default()));
        let seen = found.iter().flat_map(|(_, finding)| &finding.evidence).map(|seen| seen.detail.as_str());
        let seen: BTreeSet<&str> = seen.collect();
        for detail in seen.iter().take(DETAILS) {
            line(styled(DIM, &output::wrapped("          ", detail)));
        }
        if seen.len() > DETAILS {
            line(styled(DIM, &format!("          and {} more, with --format json", seen.len() - DETAILS)));
        }
        if !first.fix.is_empty() {
            line(output::wrapped("          fix: ", &first.fix));
        }
    }
}

pub(super) fn severity_words(severity: Severity) -> (anstyle::Style, &'static str) {
    match severity {
        Severity::Error => (RED, "error"),
        Severity::Warning => (YELLOW, "warning"),
        Severity::Note => (BLUE, "note"),
    }
}

/// Numbers with those in a row joined: `1-4, 7`.
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

/// What is out, by reason; with `all`, one by one.
pub(super) fn rejected(view: &View<'_>, all: bool, fits: bool) {
    let rejected = view.plan.rejected();
    if rejected.is_empty() {
        return;
    }
    let how = if all { "" } else { "; --all lists them, --why SIZE tells all about one" };
    line(format!("\n{}{}", styled(BOLD, "out"), styled(DIM, how)));
    if all {
        for rejection in rejected {
            line(output::wrapped(
                "  ",
                &format!("{}: {} [{}]", who(rejection), rejection.reason, rejection.code),
            ));
        }
        return;
    }
    services(view, fits);
    let mut codes: BTreeMap<&str, Vec<&Rejection>> = BTreeMap::new();
    for rejection in rejected.iter().filter(|rejection| rejection.size.is_some()) {
        codes.entry(rejection.code).or_default().push(rejection);
    }
    for (code, found) in codes {
        let sizes: BTreeSet<&str> = found.iter().filter_map(|rejection| rejection.size.as_deref()).collect();
        let Some(nearest) = found.iter().min_by_key(|rejection| rejection.distance) else { continue };
        let pages = &view.plan.facts().findings().finding;
        let title = pages.iter().find(|page| page.code == code).map_or("", |page| page.title.as_str());
        let title = if title.is_empty() { String::new() } else { format!("{title}; ") };
        let text = format!(
            "{}: {title}such as {}: {} [{code}]",
            count(sizes.len(), "size"),
            who(nearest),
            nearest.reason
        );
        line(output::wrapped("  ", &text));
    }
}

/// Services that hold it on no size: their own reason, or the one of the size that comes nearest. Where nothing fits at
/// all the nearest have been told.
fn services(view: &View<'_>, fits: bool) {
    let present: BTreeSet<ServiceKind> =
        view.plan.ranked().iter().chain(view.plan.unlisted()).map(|ranked| ranked.offer.service).collect();
    for service in ServiceKind::ALL.into_iter().filter(|service| !present.contains(service)) {
        let of_service =
            || view.plan.rejected().iter().filter(|rejection| rejection.service == Some(service));
        let whole = of_service().find(|rejection| rejection.size.is_none());
        let nearest = || of_service().min_by_key(|rejection| rejection.distance).filter(|_| fits);
        let Some(found) = whole.or_else(nearest) else { continue };
        let size =
            found.size.as_ref().map_or_else(String::new, |size| format!("no size fits; nearest {size}: "));
        line(output::wrapped("  ", &format!("{}: {size}{} [{}]", service.name(), found.reason, found.code)));
    }
}

/// What a rejection is about.
pub(super) fn who(rejection: &Rejection) -> String {
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

/// Nothing fits: what comes nearest, and what would have to give way.
pub(super) fn nothing(view: &View<'_>, relaxed: &[Relaxed]) {
    let considered = thousands(&view.plan.considered().to_string());
    let verdict = match view.plan.unlisted().len() {
        0 => format!("none of {considered} offers fits"),
        several => {
            format!("none of {considered} offers is documented to fit; {several} that no source lists would")
        }
    };
    line(styled(RED, &verdict));
    let nearest = view.plan.nearest();
    if !nearest.is_empty() {
        line(styled(BOLD, "nearest"));
        for rejection in nearest.iter().take(5) {
            line(output::wrapped(
                "  ",
                &format!("{}: {} [{}]", who(rejection), rejection.reason, rejection.code),
            ));
        }
    }
    if relaxed.is_empty() {
        line("more than two needs or wishes stand in the way");
        return;
    }
    line(styled(BOLD, "it would fit with"));
    for one in relaxed {
        let text = format!("{}: {}, {}", one.change, place(&one.placement), price(view, &one.placement));
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
