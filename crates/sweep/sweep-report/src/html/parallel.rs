//! Parallel coordinates: one axis for each parameter and objective, one line for each trial.

use cudock_base::chart::Axis;
use cudock_base::svg::{Anchor, Svg};
use cudock_base::text;
use cudock_sweep::{Distribution, ParameterValue, Trial};

use super::{Drawing, HEIGHT, WIDTH};
use crate::values::number;

const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 34.0;
/// Position of parameters that a trial does not have.
const INACTIVE: f64 = HEIGHT - 12.0;
const MAX_LABELS: usize = 12;

/// One axis: where a trial is on it, and its labels.
struct Coordinate<'s> {
    title: &'s str,
    scale: CoordinateScale<'s>,
    /// The coordinates of the trials, in their order.
    places: Vec<f64>,
    has_inactive: bool,
}

enum CoordinateScale<'s> {
    Choices(&'s [ParameterValue]),
    Numbers(Axis),
}

/// The chart; none if no trial has a value for each objective.
pub(super) fn parallel(drawing: &Drawing<'_>) -> Option<String> {
    let plan = drawing.sweep.plan();
    let objectives = &plan.objectives;
    let scored: Vec<(&Trial, Vec<f64>)> = drawing
        .trials
        .iter()
        .filter_map(|trial| {
            Some((*trial, trial.scores(objectives).into_iter().collect::<Option<Vec<f64>>>()?))
        })
        .collect();
    if scored.is_empty() {
        return None;
    }
    let mut columns: Vec<Coordinate<'_>> = plan
        .space
        .parameters
        .iter()
        .map(|parameter| {
            let values = scored.iter().map(|(trial, _)| trial.parameters.get(&parameter.name));
            column(&parameter.name, &parameter.distribution, &values.collect::<Vec<_>>())
        })
        .collect();
    for (index, objective) in objectives.iter().enumerate() {
        let values: Vec<f64> = scored.iter().filter_map(|(_, scores)| scores.get(index).copied()).collect();
        let axis = Axis::fitting(values.clone(), (BOTTOM, TOP));
        columns.push(Coordinate {
            title: &objective.metric,
            places: values.into_iter().map(|value| axis.coordinate(value)).collect(),
            scale: CoordinateScale::Numbers(axis),
            has_inactive: false,
        });
    }
    Some(draw(drawing, &scored, &columns))
}

fn draw(drawing: &Drawing<'_>, scored: &[(&Trial, Vec<f64>)], columns: &[Coordinate<'_>]) -> String {
    // Wide spaces are wider than the page, which scrolls.
    let gaps = u32::try_from(columns.len().saturating_sub(1)).unwrap_or(u32::MAX).max(1);
    let gap = ((WIDTH - 140.0) / f64::from(gaps)).max(90.0);
    let width = WIDTH.max(140.0 + gap * f64::from(gaps));
    let x = |index: usize| 60.0 + gap * f64::from(u32::try_from(index).unwrap_or(u32::MAX));
    let mut svg = Svg::new(width, HEIGHT, "Parameters and objectives, one line per trial");
    for (row, (trial, _)) in scored.iter().enumerate().rev() {
        let points = columns.iter().enumerate();
        let points = points.filter_map(|(index, column)| Some((x(index), *column.places.get(row)?)));
        let class = format!("{} line {}", drawing.class(trial), rank_class(row, scored.len()));
        svg.path(points, &class);
    }
    for (index, column) in columns.iter().enumerate() {
        let x = x(index);
        svg.line((x, TOP), (x, BOTTOM), "axis");
        svg.text((x, 16.0), Anchor::Middle, "bold", &text::truncate(column.title, 16));
        match &column.scale {
            CoordinateScale::Choices(choices) => {
                for (number, choice) in
                    choices.iter().enumerate().step_by(choices.len().div_ceil(MAX_LABELS).max(1))
                {
                    let y = choice_place(number, choices.len());
                    svg.text(
                        (x + 5.0, y + 4.0),
                        Anchor::Start,
                        "soft",
                        &text::truncate(&choice.to_string(), 12),
                    );
                }
            }
            CoordinateScale::Numbers(axis) => {
                for tick in axis.ticks(5) {
                    let y = axis.coordinate(tick);
                    svg.line((x - 3.0, y), (x, y), "axis");
                    svg.text((x + 5.0, y + 4.0), Anchor::Start, "soft", &number(tick));
                }
            }
        }
        if column.has_inactive {
            svg.text((x + 5.0, INACTIVE + 4.0), Anchor::Start, "soft", "inactive");
        }
    }
    svg.finish()
}

/// Trials are in the order of their rank, in five groups from best to worst.
fn rank_class(row: usize, rows: usize) -> String {
    format!("q{}", (row * 5 / rows.max(1)).min(4))
}

fn column<'s>(
    title: &'s str,
    distribution: &'s Distribution,
    values: &[Option<&ParameterValue>],
) -> Coordinate<'s> {
    let has_inactive = values.iter().any(Option::is_none);
    let scale = match distribution {
        Distribution::Choice(choices) => CoordinateScale::Choices(choices),
        other => CoordinateScale::Numbers(numeric_axis(
            other,
            values.iter().filter_map(|value| (*value)?.as_number()),
        )),
    };
    let place = |value: Option<&ParameterValue>| {
        let place = match (&scale, value) {
            (_, None) => None,
            (CoordinateScale::Choices(choices), Some(value)) => {
                let number = choices.iter().position(|choice| choice == value);
                number.map(|number| choice_place(number, choices.len()))
            }
            (CoordinateScale::Numbers(axis), Some(value)) => {
                value.as_number().map(|value| axis.coordinate(value))
            }
        };
        place.unwrap_or(INACTIVE)
    };
    let places = values.iter().copied().map(place).collect();
    Coordinate { title, scale, places, has_inactive }
}

/// The bounds of a distribution, or what was observed if it has none.
fn numeric_axis(distribution: &Distribution, observed: impl Iterator<Item = f64>) -> Axis {
    let ends = (BOTTOM, TOP);
    let range = observed
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    match distribution {
        Distribution::Uniform { min, max } | Distribution::QUniform { min, max, .. } => {
            Axis::linear((min.min(range.0), max.max(range.1)), ends)
        }
        Distribution::LogUniform { min, max } | Distribution::QLogUniform { min, max, .. } => {
            Axis::logarithmic_or_linear((min.min(range.0), max.max(range.1)), ends)
        }
        Distribution::LogNormal { .. } | Distribution::QLogNormal { .. } => {
            Axis::logarithmic_or_linear(range, ends)
        }
        _ => Axis::linear(range, ends),
    }
}

fn choice_place(number: usize, choices: usize) -> f64 {
    let steps = u32::try_from(choices.saturating_sub(1)).unwrap_or(u32::MAX);
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    if steps == 0 {
        f64::midpoint(TOP, BOTTOM)
    } else {
        BOTTOM - (BOTTOM - TOP) * f64::from(number) / f64::from(steps)
    }
}
