//! The chart of throughput against latency.

use cudock_base::chart::{Axis, round_up};
use cudock_base::svg::{Anchor, Svg};

use super::{LABELED_DECADES, LEFT, LINE_HEIGHT, RIGHT, WIDTH, look, rate_ticks, time};

/// Top and bottom of the panel.
const PANEL: (f64, f64) = (60.0, 420.0);

/// Measurements of one server at several loads: 99th percentile of the latency in milliseconds, and rows per second.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    pub label: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Draws curves on top of other measurements, and the latency target if there is one.
pub fn throughput(title: &str, curves: &[Curve<'_>], others: &[(f64, f64)], target: Option<f64>) -> String {
    let (top, bottom) = PANEL;
    let mut svg = Svg::new(WIDTH, bottom + 50.0, title);
    svg.text((LEFT, 26.0), Anchor::Start, "head", title);
    svg.text((LEFT, top - 12.0), Anchor::Start, "soft", "rows per second by p99 latency");
    let points = || curves.iter().flat_map(|curve| &curve.points).chain(others);
    let latencies = || points().map(|point| point.0).chain(target);
    let low = latencies().fold(f64::INFINITY, f64::min).max(1e-3);
    let x = Axis::logarithmic((low, latencies().fold(0.0, f64::max)), (LEFT, RIGHT)).rounded();
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let y = Axis::from_zero(round_up(highest / 5.0) * 5.0, (bottom, top));
    rate_ticks(&mut svg, &y);
    for (tick, is_labeled) in x.labeled_ticks(LABELED_DECADES) {
        let position = x.coordinate(tick);
        svg.line((position, top), (position, bottom), "grid");
        if is_labeled {
            svg.text((position, bottom + 18.0), Anchor::Middle, "soft", &time(tick));
        }
    }
    svg.line((LEFT, bottom), (RIGHT, bottom), "axis");
    if let Some(target) = target {
        svg.line((x.coordinate(target), top), (x.coordinate(target), bottom), "mark");
        svg.text((x.coordinate(target), bottom + 36.0), Anchor::Middle, "soft", "target");
    }
    let at = |(latency, rate): &(f64, f64)| (x.coordinate(*latency), y.coordinate(*rate));
    for point in others {
        svg.dot(at(point), 2.5, "dot");
    }
    let mut legend = top + 4.0;
    for (number, curve) in curves.iter().enumerate() {
        svg.path(curve.points.iter().map(at), &look(number));
        for point in &curve.points {
            svg.dot(at(point), 4.0, &format!("d{number}"));
        }
        svg.path([(RIGHT + 20.0, legend), (RIGHT + 48.0, legend)], &look(number));
        svg.text((RIGHT + 56.0, legend + 4.0), Anchor::Start, "", curve.label);
        legend += LINE_HEIGHT;
    }
    svg.finish()
}
