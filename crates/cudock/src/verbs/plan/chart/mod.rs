//! Cost against load or duration: a line for the best offer of each service, and the points where the cheapest changes.

mod axis;
mod picture;
mod spread;
mod terminal;

use std::path::{Path, PathBuf};

use cudock_plan::{Money, PerMille, Ranked};

use super::scan::{Change, Line, Scan};
use super::view::View;
use super::words;
use crate::failure::Failure;
use crate::output::{self, BOLD, DIM, line, styled};

/// What a chart shows.
pub(super) struct Drawn {
    title: String,
    /// What is paid for, for the axis of costs.
    cost: &'static str,
    scan: Scan,
    series: Vec<Series>,
    /// Where the cheapest changes.
    pub(super) changes: Vec<Change>,
    file: Option<PathBuf>,
}

/// One line: the best offer of a service.
struct Series {
    service: String,
    /// Which size, where, and whether it can be taken away.
    detail: String,
    points: Vec<(PerMille, Money)>,
}

/// Looks at the best offer of each service, and writes the picture if a file is named.
pub(super) fn drawn(view: &View<'_>, file: Option<&Path>) -> Result<Drawn, Failure> {
    if let Some(file) = file
        && !file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"))
    {
        return Err(Failure::input(format!(
            "a chart is written as SVG, and `{}` is no name of one",
            file.display()
        ))
        .hint("--chart plan.svg; or --chart alone, behind the path, for one in the terminal"));
    }
    let scan = Scan::new(view.workload);
    let best = best_of_each_service(view.plan.ranked());
    let lines: Vec<Line> = best
        .iter()
        .map(|ranked| scan.line(view, ranked.offer.service.name().to_owned(), ranked.offer))
        .collect();
    let changes = scan.changes(view, &lines);
    let (low, high) = shown(&scan, &changes);
    let series: Vec<Series> = lines
        .into_iter()
        .map(|line| {
            let offer = line.offer;
            let (size, region) = (view.catalog.size_name(offer.size), view.catalog.region_name(offer.region));
            let spot = if words::priority(offer.priority) == "spot" { ", Spot" } else { "" };
            let points: Vec<_> =
                line.points.into_iter().filter(|(at, _)| (low..=high).contains(at)).collect();
            let last = points.last().map(|(at, _)| *at).filter(|at| at.saturating_mul(11) / 10 < high);
            let end = last.map_or_else(String::new, |at| format!(", up to {}", scan.words(at)));
            Series { service: line.name, detail: format!("{size}, {region}{spot}{end}"), points }
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let drawn = Drawn {
        title: view.title.to_owned(),
        cost: if view.serves() { "USD a month" } else { "USD in all" },
        series,
        scan,
        changes,
        file: file.map(Path::to_owned),
    };
    if let Some(file) = file {
        std::fs::write(file, picture::picture(&drawn))
            .map_err(|error| Failure::outside(format!("cannot write {}: {error}", file.display())))?;
    }
    Ok(drawn)
}

impl Drawn {
    /// The chart here, or where it was written; and the points where the cheapest changes.
    pub(super) fn print(&self) {
        line("");
        match &self.file {
            None => terminal::print(self),
            Some(file) => line(format!("chart written to {}", file.display())),
        }
        line(format!("\n{}", styled(BOLD, "where the cheapest service changes")));
        for change in &self.changes {
            line(output::wrapped("  ", &told(change)));
        }
        if self.changes.is_empty() {
            line(output::wrapped("  ", &self.unchanged()));
        }
        line(styled(DIM, "  each service by the offer that is its cheapest at what was asked for"));
    }

    fn unchanged(&self) -> String {
        let (low, high) = self.scan.ends();
        match self.series.first() {
            Some(series) => {
                let (low, high) = (self.scan.words(low), self.scan.words(high));
                format!("nowhere that lasts: {}, from {low} to {high}", series.service)
            }
            None => "nothing fits".to_owned(),
        }
    }

    fn asked(&self) -> f64 {
        self.scan.value(self.scan.asked)
    }

    fn mark(&self, value: f64) -> String {
        if self.scan.is_time() { words::seconds(value) } else { words::short(value) }
    }

    /// The least and the greatest of what is varied, and of the costs.
    fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
        };
        let varied = ends(&mut points().map(|(at, _)| self.scan.value(at)));
        let costs = ends(&mut points().map(|(_, cost)| dollars(cost)).filter(|cost| *cost > 0.0));
        (varied, costs)
    }

    fn marks(&self, axis: &axis::Axis, most: usize) -> Vec<f64> {
        if self.scan.is_time() { axis.time_marks(most) } else { axis.marks(most) }
    }
}

pub(super) fn told(change: &Change) -> String {
    let Change { at, below, above, cost, .. } = change;
    format!("below {at}: {below}; from there on: {above} ({} there)", words::dollars(*cost))
}

#[allow(clippy::cast_precision_loss, reason = "drawn, not counted")]
fn dollars(money: Money) -> f64 {
    money.nanos() as f64 / 1e9
}

/// A mark on the axis of costs.
fn price(dollars: f64) -> String {
    if (0.01..1.0).contains(&dollars) {
        format!("${dollars:.2}")
    } else {
        format!("${}", words::short(dollars))
    }
}

/// The cheapest of each service, cheapest first.
fn best_of_each_service(ranked: &[Ranked]) -> Vec<&Ranked> {
    let mut best: Vec<&Ranked> = Vec::new();
    for ranked in ranked {
        if !best.iter().any(|known| known.offer.service == ranked.offer.service) {
            best.push(ranked);
        }
    }
    best
}

/// The part of the axis that tells something: all changes and what was asked for, with room on both sides.
fn shown(scan: &Scan, changes: &[Change]) -> (PerMille, PerMille) {
    const ROOM: PerMille = 4;
    let (least, most) = scan.ends();
    let places = || changes.iter().map(|change| change.place).chain([scan.asked]);
    let low = places().min().unwrap_or(scan.asked) / ROOM;
    let high = places().max().unwrap_or(scan.asked).saturating_mul(ROOM);
    (low.min(scan.asked / 10).max(least), high.max(scan.asked * 10).min(most))
}
