//! The chart in a terminal: a letter for each service.

use super::axis::Axis;
use super::{Drawn, dollars, price};
use crate::output::{self, BOLD, DIM, line, styled};

const HEIGHT: usize = 18;
/// Columns for the figures of the axis.
const FIGURES: usize = 10;

/// A paper of letters.
struct Paper {
    width: usize,
    cells: Vec<Vec<char>>,
}

impl Paper {
    fn new(width: usize) -> Self {
        Self { width, cells: vec![vec![' '; width]; HEIGHT] }
    }

    fn put(&mut self, column: usize, row: usize, letter: char) {
        if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = letter;
        }
    }
}

pub(super) fn print(drawn: &Drawn) {
    line(styled(BOLD, &format!("{} by {} (logarithmic)", drawn.cost, drawn.scan.varied())));
    let width = output::width().saturating_sub(FIGURES + 3).max(30);
    for text in rows(drawn, width) {
        line(text);
    }
    for (series, letter) in drawn.series.iter().zip('A'..='Z') {
        line(format!(
            "  {}  {}  {}",
            styled(BOLD, &letter.to_string()),
            series.service,
            styled(DIM, &series.detail)
        ));
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns and rows of a terminal"
)]
fn rows(drawn: &Drawn, width: usize) -> Vec<String> {
    let (varied, costs) = drawn.bounds();
    let x = Axis::new(varied, (0.0, (width - 1) as f64));
    let y = Axis::rounded(costs, ((HEIGHT - 1) as f64, 0.0));
    let column = |value: f64| x.place(value).round() as usize;
    let row = |value: f64| y.place(value).round() as usize;
    let mut paper = Paper::new(width);
    for down in 0..HEIGHT {
        paper.put(column(drawn.asked()), down, '\u{2502}');
    }
    // The cheapest last, so that it lies on top.
    let lines: Vec<_> = drawn.series.iter().zip('A'..='Z').collect();
    for (series, letter) in lines.into_iter().rev() {
        for (at, cost) in &series.points {
            paper.put(column(drawn.scan.value(*at)), row(dollars(*cost)), letter);
        }
    }
    for change in &drawn.changes {
        paper.put(column(drawn.scan.value(change.place)), row(dollars(change.cost)), '*');
    }
    let marks: Vec<(usize, String)> =
        y.marks(HEIGHT / 2).into_iter().map(|mark| (row(mark), price(mark))).collect();
    let mut out: Vec<String> = paper
        .cells
        .iter()
        .enumerate()
        .map(|(down, cells)| {
            let figure = marks.iter().find(|(row, _)| *row == down).map_or("", |(_, figure)| figure);
            let text: String = cells.iter().collect();
            format!("{figure:>FIGURES$} \u{2524}{}", text.trim_end())
        })
        .collect();
    out.push(format!("{:>FIGURES$} \u{2514}{}", "", "\u{2500}".repeat(paper.width)));
    let places = drawn.marks(&x, width / 14).into_iter().map(|mark| (column(mark), drawn.mark(mark)));
    out.push(format!("{:>FIGURES$}  {}", "", figures(places, width)));
    let asked = format!("* the cheapest changes   \u{2502} asked for: {}", drawn.mark(drawn.asked()));
    out.push(format!("{:>FIGURES$}  {asked}", ""));
    out
}

/// Figures below an axis, each in the middle of its place; one that would touch the last is left out.
fn figures(places: impl Iterator<Item = (usize, String)>, width: usize) -> String {
    let mut text = String::new();
    for (place, figure) in places {
        let length = figure.chars().count();
        let begin = place.saturating_sub(length / 2).min(width.saturating_sub(length));
        let used = text.chars().count();
        if used == 0 || begin > used {
            text.push_str(&" ".repeat(begin - used));
            text.push_str(&figure);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_do_not_touch() {
        let places = [(0, "1".to_owned()), (2, "2.5".to_owned()), (10, "10".to_owned())];
        assert_eq!(figures(places.into_iter(), 20), "1        10");
    }
}
