//! Learning curves, one chart for each objective.

use cudock_base::chart::Axis;
use cudock_base::svg::{Anchor, Svg};
use cudock_base::text;
use cudock_sweep::{Objective, Trial};

use super::{Drawing, HEIGHT, MARGIN, UP, WIDTH};
use crate::values::{number, numbered};

/// Points of a curve that are drawn; of longer ones every nth is.
const MAX_POINTS: usize = 300;

/// The curves of trials; none if nothing was reported. Values that are not finite interrupt a curve.
pub(super) fn curves(drawing: &Drawing<'_>, objective: &Objective) -> Option<String> {
    let curves: Vec<(&Trial, Vec<(u64, f64)>)> = drawing
        .trials
        .iter()
        .map(|trial| (*trial, thinned(numbered(trial.curve(&objective.metric)))))
        .filter(|(_, points)| points.iter().any(|(_, value)| value.is_finite()))
        .collect();
    let points = || curves.iter().flat_map(|(_, points)| points);
    let last_step = points().map(|(step, _)| *step).max()?;
    let first_step = points().map(|(step, _)| *step).min()?;
    let across = Axis::linear((float(first_step), float(last_step)), (MARGIN, WIDTH - 20.0));
    let values = points().map(|(_, value)| *value).collect();
    let up = Axis::fitting(values, UP);

    let metric = text::truncate(&objective.metric, 60);
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("{metric} by step, one line per trial"));
    // A step is a whole number.
    let steps: Vec<f64> = across.ticks(8).into_iter().filter(|tick| tick.fract().abs() < 1e-9).collect();
    frame(&mut svg, (&across, &steps), &up, ("step", &metric));
    // The best are drawn last, above the others.
    for (trial, points) in curves.iter().rev() {
        let class = drawing.class(trial);
        for segment in points.split(|(_, value)| !value.is_finite()) {
            let place = |(step, value): &(u64, f64)| (across.coordinate(float(*step)), up.coordinate(*value));
            match segment {
                [] => {}
                [only] => svg.dot(place(only), 3.0, &format!("{class} point")),
                several => svg.path(several.iter().map(place), &format!("{class} line")),
            }
        }
    }
    Some(svg.finish())
}

/// Ticks and titles of two axes.
pub(super) fn frame(svg: &mut Svg, (across, ticks): (&Axis, &[f64]), up: &Axis, titles: (&str, &str)) {
    let bottom = HEIGHT - 40.0;
    for tick in up.ticks(5) {
        let y = up.coordinate(tick);
        svg.line((MARGIN, y), (WIDTH - 20.0, y), "grid");
        svg.text((MARGIN - 8.0, y + 4.0), Anchor::End, "soft", &number(tick));
    }
    for tick in ticks {
        let x = across.coordinate(*tick);
        svg.line((x, bottom), (x, bottom + 4.0), "axis");
        svg.text((x, bottom + 18.0), Anchor::Middle, "soft", &number(*tick));
    }
    svg.line((MARGIN, bottom), (WIDTH - 20.0, bottom), "axis");
    svg.text((WIDTH - 20.0, HEIGHT - 6.0), Anchor::End, "soft", titles.0);
    svg.text((8.0, 12.0), Anchor::Start, "bold", titles.1);
}

/// Every nth point, and the last.
fn thinned(points: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let every = points.len().div_ceil(MAX_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    kept.map(|(_, point)| point).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a position on a chart")]
fn float(step: u64) -> f64 {
    step as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_keep_their_ends() {
        let points = thinned((0..10_007).map(|step| (step, 0.5)).collect());
        assert!(points.len() <= MAX_POINTS + 1, "{}", points.len());
        assert_eq!((points.first().unwrap().0, points.last().unwrap().0), (0, 10_006));
        assert_eq!(thinned(vec![(1, 0.1), (2, 0.2)]).len(), 2);
    }
}
