//! Cost against load or duration: a line for the best offer of each service, and the points where the cheapest changes.

mod spread;
mod svg;
mod terminal;

use cudock_base::Usd;
use cudock_base::chart::Axis;
use cudock_base::text::format::duration;

use crate::curve::PerMille;
use crate::curve::line::CostLine;
use crate::curve::scan::{Breakpoint, Scan};
use crate::plan::Plan;
use crate::plan::rank::Ranked;
use crate::report::format;
use crate::workload::Priority;

#[derive(Debug)]
pub struct Chart {
    title: String,
    cost: &'static str,
    scan: Scan,
    /// The lines, the cheapest at the requested point first.
    pub series: Vec<Series>,
    pub breakpoints: Vec<Breakpoint>,
}

#[derive(Debug)]
pub struct Series {
    pub service: String,
    /// Size, region, and whether it is Spot.
    pub detail: String,
    points: Vec<(PerMille, Usd)>,
}

impl Chart {
    pub fn new(plan: &Plan<'_>, title: &str) -> Self {
        let scan = Scan::new(plan.workload());
        let lines: Vec<CostLine> = best_of_each_service(plan.ranked())
            .into_iter()
            .map(|ranked| scan.line(plan, ranked.offer.service.name().to_owned(), ranked.offer))
            .collect();
        let breakpoints = scan.breakpoints(plan, &lines);
        let (low, high) = visible(&scan, &breakpoints);
        let catalog = plan.catalog();
        let series = lines.into_iter().map(|line| {
            let offer = line.offer;
            let (size, region) = (catalog.size_name(offer.size), catalog.region_name(offer.region));
            let spot = if offer.priority == Priority::Spot { ", Spot" } else { "" };
            let points: Vec<_> =
                line.points.into_iter().filter(|(at, _)| (low..=high).contains(at)).collect();
            let last = points.last().map(|(at, _)| *at).filter(|at| at.saturating_mul(11) / 10 < high);
            let end = last.map_or_else(String::new, |at| format!(", up to {}", scan.describe(at)));
            Series { service: line.name, detail: format!("{size}, {region}{spot}{end}"), points }
        });
        let series = series.filter(|series| !series.points.is_empty()).collect();
        let cost = if plan.serves() { "USD per month" } else { "USD" };
        Self { title: title.to_owned(), cost, series, scan, breakpoints }
    }

    pub fn axes(&self) -> String {
        format!("{} by {}", self.cost, self.scan.varied())
    }

    /// The text if the cheapest never changes.
    pub fn unchanged(&self) -> String {
        let (low, high) = self.scan.bounds();
        match self.series.first() {
            Some(series) => {
                let (low, high) = (self.scan.describe(low), self.scan.describe(high));
                format!("it does not change: {}, from {low} to {high}", series.service)
            }
            None => "nothing fits".to_owned(),
        }
    }

    fn requested(&self) -> f64 {
        self.scan.value(self.scan.requested)
    }

    /// The text of a mark on the axis of load or duration.
    fn mark(&self, value: f64) -> String {
        if self.scan.is_time() {
            duration(std::time::Duration::try_from_secs_f64(value).unwrap_or_default())
        } else {
            format::short(value)
        }
    }

    /// The least and the greatest load or duration, and cost.
    fn bounds(&self) -> ((f64, f64), (f64, f64)) {
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
        };
        let varied = ends(&mut points().map(|(at, _)| self.scan.value(at)));
        let costs = ends(&mut points().map(|(_, cost)| dollars(cost)).filter(|cost| *cost > 0.0));
        (varied, costs)
    }

    fn marks(&self, axis: &Axis, max: usize) -> Vec<f64> {
        if self.scan.is_time() { axis.time_ticks(max) } else { axis.round_ticks(max) }
    }
}

#[allow(clippy::cast_precision_loss, reason = "drawn, not summed up")]
fn dollars(money: Usd) -> f64 {
    money.nanos() as f64 / 1e9
}

/// The text of a mark on the cost axis.
fn price(dollars: f64) -> String {
    if (0.01..1.0).contains(&dollars) {
        format!("${dollars:.2}")
    } else {
        format!("${}", format::short(dollars))
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

/// The interesting part of the axis: all breakpoints and the requested point, with room on both sides.
fn visible(scan: &Scan, breakpoints: &[Breakpoint]) -> (PerMille, PerMille) {
    const ROOM: PerMille = 4;
    let (least, most) = scan.bounds();
    let scales = || breakpoints.iter().map(|breakpoint| breakpoint.scale).chain([scan.requested]);
    let low = scales().min().unwrap_or(scan.requested) / ROOM;
    let high = scales().max().unwrap_or(scan.requested).saturating_mul(ROOM);
    (low.min(scan.requested / 10).max(least), high.max(scan.requested * 10).min(most))
}
