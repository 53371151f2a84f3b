//! Charts of runs: latency by percentile, and responses over time.

mod throughput;

use cudock_base::chart::{Axis, round_up};
use cudock_base::svg::{Anchor, LINE_STYLES, Svg};
use cudock_base::text::format;
pub use throughput::{Curve, throughput};

use crate::results::text::label;
use crate::{LoadReport, Timeline};

/// A run and its name in the legend.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    pub label: &'a str,
    pub report: &'a LoadReport,
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 700.0;
/// Top and bottom of the two panels.
const LATENCY: (f64, f64) = (60.0, 330.0);
const RATE: (f64, f64) = (410.0, 620.0);
const LINE_HEIGHT: f64 = 18.0;
/// On longer axes of latencies only powers of ten have labels.
const LABELED_DECADES: f64 = 3.0;

/// Draws runs, each labeled with its load.
pub fn runs(title: &str, runs: &[LoadReport]) -> String {
    let labels: Vec<String> = runs.iter().map(|run| label(run.load)).collect();
    let series: Vec<Series<'_>> =
        labels.iter().zip(runs).map(|(label, report)| Series { label, report }).collect();
    render(title, &series)
}

pub fn render(title: &str, series: &[Series<'_>]) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a few runs")]
    let legend = LATENCY.0 + (series.len() + 1) as f64 * LINE_HEIGHT;
    let mut svg = Svg::new(WIDTH, legend.max(RATE.1 + 60.0), title);
    svg.text((LEFT, 26.0), Anchor::Start, "head", title);
    latency_panel(&mut svg, series);
    rate_panel(&mut svg, series);
    let mut y = LATENCY.0 + 4.0;
    for (number, one) in series.iter().enumerate() {
        svg.path([(RIGHT + 20.0, y), (RIGHT + 48.0, y)], &look(number));
        svg.text((RIGHT + 56.0, y + 4.0), Anchor::Start, "", one.label);
        y += LINE_HEIGHT;
    }
    if series.len() > LINE_STYLES {
        svg.text((RIGHT + 20.0, y + 4.0), Anchor::Start, "soft", "styles repeat from the tenth on");
    }
    svg.finish()
}

fn look(series: usize) -> String {
    format!("line l{}", series % LINE_STYLES)
}

/// How many nines a share has: 0.9 one, 0.99 two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).max(1e-12).log10()
}

fn latency_panel(svg: &mut Svg, series: &[Series<'_>]) {
    let (top, bottom) = LATENCY;
    let points = || series.iter().flat_map(|one| one.report.latency.curve.iter().copied());
    let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min).max(1e-3);
    let high = points().map(|point| point.1).fold(0.0, f64::max);
    let last = points().filter(|point| point.0 < 1.0).map(|point| nines(point.0)).fold(1.0, f64::max);
    let x = Axis::from_zero(last + 0.3, (LEFT, RIGHT));
    let y = Axis::logarithmic((low, high), (bottom, top)).rounded();
    svg.text((LEFT, top - 12.0), Anchor::Start, "soft", "latency by share of the responses");
    for (tick, is_labeled) in y.labeled_ticks(LABELED_DECADES) {
        let position = y.coordinate(tick);
        svg.line((LEFT, position), (RIGHT, position), "grid");
        if is_labeled {
            svg.text((LEFT - 8.0, position + 4.0), Anchor::End, "soft", &time(tick));
        }
    }
    for share in [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999] {
        if nines(share) <= last + 0.3 {
            let position = x.coordinate(nines(share));
            svg.line((position, top), (position, bottom), "grid");
            svg.text((position, bottom + 18.0), Anchor::Middle, "soft", &percent(share));
        }
    }
    svg.line((LEFT, bottom), (RIGHT, bottom), "axis");
    for (number, one) in series.iter().enumerate() {
        let curve = &one.report.latency.curve;
        if !curve.is_empty() {
            let end =
                curve.iter().filter(|point| point.0 < 1.0).map(|point| nines(point.0)).fold(0.0, f64::max);
            let at = |share: f64| if share < 1.0 { nines(share) } else { end + 0.3 };
            svg.path(
                curve.iter().map(|(share, ms)| (x.coordinate(at(*share)), y.coordinate(*ms))),
                &look(number),
            );
        }
    }
}

fn rate_panel(svg: &mut Svg, series: &[Series<'_>]) {
    let (top, bottom) = RATE;
    let lines: Vec<Timeline> = series.iter().map(|one| smoothed(&one.report.timeline)).collect();
    let highest = lines.iter().flat_map(|line| line.per_second.iter().copied()).fold(0.0, f64::max);
    let seconds = series.iter().map(|one| one.report.seconds).fold(0.0, f64::max);
    let x = Axis::from_zero(seconds, (LEFT, RIGHT));
    // One burst must not flatten all the rest, and round ends read better.
    let y = Axis::from_zero(round_up(highest / 5.0) * 5.0, (bottom, top));
    svg.text((LEFT, top - 12.0), Anchor::Start, "soft", "2xx responses per second");
    rate_ticks(svg, &y);
    for tick in x.ticks(8) {
        let position = (x.coordinate(tick), bottom + 18.0);
        svg.text(position, Anchor::Middle, "soft", &format!("{} s", short(tick)));
    }
    svg.line((LEFT, bottom), (RIGHT, bottom), "axis");
    for (number, line) in lines.iter().enumerate() {
        let steps = line.per_second.iter().scan(0.0, |time, rate| {
            let begin = *time;
            *time += line.slot_seconds;
            Some([(begin, *rate), (*time, *rate)])
        });
        svg.path(steps.flatten().map(|(time, rate)| (x.coordinate(time), y.coordinate(rate))), &look(number));
    }
}

/// Ticks of a vertical axis of rates.
fn rate_ticks(svg: &mut Svg, y: &Axis) {
    for tick in y.ticks(5) {
        let position = y.coordinate(tick);
        svg.line((LEFT, position), (RIGHT, position), "grid");
        svg.text((LEFT - 8.0, position + 4.0), Anchor::End, "soft", &thousands(tick));
    }
}

/// The rate over longer pieces of time where few responses came, so that the line shows the rate and not the single
/// responses.
fn smoothed(line: &Timeline) -> Timeline {
    const ENOUGH: f64 = 30.0;
    let responses = line.per_second.iter().sum::<f64>() * line.slot_seconds;
    let merged = [1_u16, 2, 4, 5, 10].into_iter().find(|merged| {
        #[allow(clippy::cast_precision_loss, reason = "a hundred positions")]
        let positions = line.per_second.len() as f64 / f64::from(*merged);
        responses >= ENOUGH * positions
    });
    let merged = merged.unwrap_or(20);
    Timeline {
        slot_seconds: line.slot_seconds * f64::from(merged),
        per_second: line
            .per_second
            .chunks(usize::from(merged))
            .map(|positions| positions.iter().sum::<f64>() / f64::from(merged))
            .collect(),
    }
}

/// Up to three decimals, without trailing zeros.
fn short(value: f64) -> String {
    trimmed(&format!("{value:.3}"))
}

fn trimmed(decimal: &str) -> String {
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn time(milliseconds: f64) -> String {
    let (value, unit) =
        if milliseconds >= 1000.0 { (milliseconds / 1000.0, "s") } else { (milliseconds, "ms") };
    format!("{} {unit}", short(value))
}

fn percent(share: f64) -> String {
    format!("{} %", trimmed(&format!("{:.4}", share * 100.0)))
}

/// Digits in groups of three.
fn thousands(value: f64) -> String {
    let digits = short(value);
    match digits.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", format::thousands(whole)),
        None => format::thousands(&digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_responses_are_averaged_over_longer_times() {
        let line = |responses: f64| Timeline { slot_seconds: 0.1, per_second: vec![responses / 0.1; 100] };
        assert_eq!(smoothed(&line(50.0)).per_second.len(), 100);
        let few = smoothed(&line(1.0));
        assert_eq!(few.per_second.len(), 5);
        assert!(few.per_second.iter().all(|rate| (rate - 10.0).abs() < 1e-9));
        assert!((few.slot_seconds - 2.0).abs() < 1e-9);
    }

    #[test]
    fn labels_read_well() {
        assert_eq!(time(0.05), "0.05 ms");
        assert_eq!(time(2000.0), "2 s");
        assert_eq!(percent(0.999_99), "99.999 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(250.0), "250");
        assert_eq!(thousands(0.5), "0.5");
    }
}
