//! The chart as SVG.

use cudock_base::Usd;
use cudock_base::chart::Axis;
use cudock_base::svg::{Anchor, LINE_STYLES, Svg};

use super::spread::spread;
use super::{Chart, Series, dollars, price};
use crate::curve::PerMille;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 610.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 452.0;
/// Horizontal start of the labels of lines.
const LABELS: f64 = 640.0;
/// Height of a label of two lines.
const LABEL: f64 = 34.0;
/// Room for a number above the plot.
const NUMBER: f64 = 22.0;
const ROW: f64 = 19.0;
/// Maximum number of breakpoints listed below the plot.
const LISTED: usize = 12;

impl Chart {
    pub fn svg(&self) -> String {
        let (varied, costs) = self.bounds();
        let x = Axis::logarithmic(varied, (LEFT, RIGHT));
        let y = Axis::logarithmic(costs, (BOTTOM, TOP)).rounded();
        let rows = self.breakpoints.len().clamp(1, LISTED + 1);
        #[allow(clippy::cast_precision_loss, reason = "a few rows")]
        let height = BOTTOM + 96.0 + rows as f64 * ROW + 12.0;
        let title = format!("{}: {}", self.title, self.axes());
        let mut svg = Svg::new(WIDTH, height, &title);
        svg.text((LEFT, 28.0), Anchor::Start, "head", &title);
        let about = "a line for the cheapest offer of each service; the shaded one is the cheapest of all; logarithmic axes";
        svg.text((LEFT, 48.0), Anchor::Start, "soft", about);
        axes(&mut svg, self, &x, &y);
        envelope(&mut svg, self, &x, &y);
        lines(&mut svg, self, &x, &y);
        breakpoints(&mut svg, self, &x, &y);
        svg.finish()
    }
}

fn axes(svg: &mut Svg, chart: &Chart, x: &Axis, y: &Axis) {
    for mark in y.round_ticks(12) {
        let position = y.coordinate(mark);
        svg.line((LEFT, position), (RIGHT, position), "grid");
        svg.text((LEFT - 8.0, position + 4.0), Anchor::End, "soft", &price(mark));
    }
    for mark in chart.marks(x, 8) {
        let position = x.coordinate(mark);
        svg.line((position, TOP), (position, BOTTOM), "grid");
        svg.text((position, BOTTOM + 18.0), Anchor::Middle, "soft", &chart.mark(mark));
    }
    svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    svg.line((LEFT, TOP), (LEFT, BOTTOM), "axis");
    let requested = x.coordinate(chart.requested());
    svg.line((requested, TOP), (requested, BOTTOM + 5.0), "axis");
    let text = format!("requested: {}", chart.mark(chart.requested()));
    svg.text((requested, BOTTOM + 40.0), Anchor::Middle, "soft", &text);
    svg.text((f64::midpoint(LEFT, RIGHT), BOTTOM + 60.0), Anchor::Middle, "", chart.scan.varied());
    svg.text((LEFT - 8.0, TOP - 14.0), Anchor::End, "soft", "USD");
}

/// A broad line below the cheapest of all.
fn envelope(svg: &mut Svg, chart: &Chart, x: &Axis, y: &Axis) {
    let mut least: std::collections::BTreeMap<PerMille, Usd> = std::collections::BTreeMap::new();
    for (at, cost) in chart.series.iter().flat_map(|series| series.points.iter().copied()) {
        least.entry(at).and_modify(|known| *known = (*known).min(cost)).or_insert(cost);
    }
    let points =
        least.into_iter().map(|(at, cost)| (x.coordinate(chart.scan.value(at)), y.coordinate(dollars(cost))));
    svg.path(points, "band");
}

fn lines(svg: &mut Svg, chart: &Chart, x: &Axis, y: &Axis) {
    let position =
        |(at, cost): &(PerMille, Usd)| (x.coordinate(chart.scan.value(*at)), y.coordinate(dollars(*cost)));
    let last = |series: &Series| series.points.last().map_or((RIGHT, BOTTOM), position);
    let ends: Vec<(f64, f64)> = chart.series.iter().map(last).collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, y)| *y).collect();
    let labels = spread(&wanted, LABEL, TOP + 4.0, BOTTOM - 4.0);
    // The cheapest last, so that it lies on top.
    for (number, series) in chart.series.iter().enumerate().rev() {
        svg.path(series.points.iter().map(position), &format!("line l{}", number % LINE_STYLES));
    }
    for (number, ((series, end), label)) in chart.series.iter().zip(&ends).zip(&labels).enumerate() {
        let look = number % LINE_STYLES;
        // A line that ends before the edge is not extended, only led to its label.
        let lead = if end.0 < RIGHT - 2.0 { "mark".to_owned() } else { format!("l{look}") };
        svg.path([*end, (RIGHT + 10.0, end.1), (LABELS - 12.0, *label), (LABELS - 6.0, *label)], &lead);
        svg.dot((LABELS - 4.0, *label), 3.0, &format!("d{look}"));
        svg.text((LABELS + 4.0, label + 1.0), Anchor::Start, "bold", &series.service);
        svg.text((LABELS + 4.0, label + 15.0), Anchor::Start, "soft", &series.detail);
    }
}

/// Numbers above the plot, each with a line down to its point, and what they stand for below it.
fn breakpoints(svg: &mut Svg, chart: &Chart, x: &Axis, y: &Axis) {
    let points: Vec<(f64, f64)> = chart
        .breakpoints
        .iter()
        .map(|point| (x.coordinate(chart.scan.value(point.scale)), y.coordinate(dollars(point.cost))))
        .collect();
    let wanted: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let numbers = spread(&wanted, NUMBER, LEFT + 10.0, RIGHT - 10.0);
    for (number, (point, position)) in points.iter().zip(&numbers).enumerate() {
        svg.path([(*position, TOP - 10.0), (point.0, TOP), *point], "mark");
        svg.dot(*point, 4.0, "dot");
        svg.text((*position, TOP - 14.0), Anchor::Middle, "bold", &(number + 1).to_string());
    }
    let mut row = BOTTOM + 96.0;
    if chart.breakpoints.is_empty() {
        svg.text((LEFT, row), Anchor::Start, "", &chart.unchanged());
    }
    for (number, breakpoint) in chart.breakpoints.iter().enumerate().take(LISTED) {
        svg.text((LEFT - 8.0, row), Anchor::End, "bold", &(number + 1).to_string());
        svg.text((LEFT, row), Anchor::Start, "", &breakpoint.describe());
        row += ROW;
    }
    if chart.breakpoints.len() > LISTED {
        let more = format!("and {} more", chart.breakpoints.len() - LISTED);
        svg.text((LEFT, row), Anchor::Start, "soft", &more);
    }
}
