//! The Pareto front of the first two objectives.

use cudock_base::chart::Axis;
use cudock_base::svg::Svg;
use cudock_base::text;
use cudock_sweep::Trial;

use super::curves::frame;
use super::{Drawing, HEIGHT, MARGIN, UP, WIDTH};

/// Trials by their results for the first two objectives, those on the front connected; none with a single objective.
pub(super) fn front(drawing: &Drawing<'_>) -> Option<String> {
    let objectives = &drawing.sweep.plan().objectives;
    let [first, second, ..] = objectives.as_slice() else {
        return None;
    };
    let place = |trial: &Trial| match trial.standing(objectives)?.as_slice() {
        [x, y, ..] => Some((*x, *y)),
        _ => None,
    };
    let places: Vec<(&Trial, (f64, f64))> =
        drawing.trials.iter().filter_map(|trial| Some((*trial, place(trial)?))).collect();
    if places.is_empty() {
        return None;
    }
    let across = Axis::fitting(places.iter().map(|(_, place)| place.0).collect(), (MARGIN, WIDTH - 20.0));
    let up = Axis::fitting(places.iter().map(|(_, place)| place.1).collect(), UP);
    let (x, y) = (text::truncate(&first.metric, 60), text::truncate(&second.metric, 60));
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("Pareto front of {x} and {y}"));
    frame(&mut svg, (&across, &across.ticks(8)), &up, (&x, &y));
    let on_chart = |(x, y): (f64, f64)| (across.coordinate(x), up.coordinate(y));
    let mut best: Vec<(f64, f64)> = drawing.sweep.front().into_iter().filter_map(place).collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    svg.path(best.into_iter().map(on_chart), "front line");
    for (trial, place) in places.iter().rev() {
        svg.dot(on_chart(*place), 5.0, &format!("{} point", drawing.class(trial)));
    }
    Some(svg.finish())
}
