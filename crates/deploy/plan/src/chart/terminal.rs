//! The chart in a terminal: a letter for each service.

use cudock_base::chart::Axis;

use super::{Chart, dollars, price};

const HEIGHT: usize = 18;
/// Columns for the marks of the cost axis.
const FIGURES: usize = 10;

struct Canvas {
    width: usize,
    cells: Vec<Vec<char>>,
}

impl Canvas {
    fn new(width: usize) -> Self {
        Self { width, cells: vec![vec![' '; width]; HEIGHT] }
    }

    fn put(&mut self, column: usize, row: usize, letter: char) {
        if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = letter;
        }
    }
}

impl Chart {
    /// The chart as lines of text, a letter for each service.
    pub fn terminal(&self, width: usize) -> Vec<String> {
        rows(self, width.saturating_sub(FIGURES + 3).max(30))
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns and rows of a terminal"
)]
fn rows(chart: &Chart, width: usize) -> Vec<String> {
    let (varied, costs) = chart.bounds();
    let x = Axis::logarithmic(varied, (0.0, (width - 1) as f64));
    let y = Axis::logarithmic(costs, ((HEIGHT - 1) as f64, 0.0)).rounded();
    let column = |value: f64| x.coordinate(value).round() as usize;
    let row = |value: f64| y.coordinate(value).round() as usize;
    let mut canvas = Canvas::new(width);
    for down in 0..HEIGHT {
        canvas.put(column(chart.requested()), down, '\u{2502}');
    }
    // The cheapest last, so that it lies on top.
    let lines: Vec<_> = chart.series.iter().zip('A'..='Z').collect();
    for (series, letter) in lines.into_iter().rev() {
        for (at, cost) in &series.points {
            canvas.put(column(chart.scan.value(*at)), row(dollars(*cost)), letter);
        }
    }
    for point in &chart.breakpoints {
        canvas.put(column(chart.scan.value(point.scale)), row(dollars(point.cost)), '*');
    }
    let marks: Vec<(usize, String)> =
        y.round_ticks(HEIGHT / 2).into_iter().map(|mark| (row(mark), price(mark))).collect();
    let mut out: Vec<String> = canvas
        .cells
        .iter()
        .enumerate()
        .map(|(down, cells)| {
            let figure = marks.iter().find(|(row, _)| *row == down).map_or("", |(_, figure)| figure);
            let text: String = cells.iter().collect();
            format!("{figure:>FIGURES$} \u{2524}{}", text.trim_end())
        })
        .collect();
    out.push(format!("{:>FIGURES$} \u{2514}{}", "", "\u{2500}".repeat(canvas.width)));
    let positions = chart.marks(&x, width / 14).into_iter().map(|mark| (column(mark), chart.mark(mark)));
    out.push(format!("{:>FIGURES$}  {}", "", x_marks(positions, width)));
    let legend = format!("* the cheapest changes   \u{2502} requested: {}", chart.mark(chart.requested()));
    out.push(format!("{:>FIGURES$}  {legend}", ""));
    out
}

/// Marks below an axis, each centered; one that would touch the last is left out.
fn x_marks(positions: impl Iterator<Item = (usize, String)>, width: usize) -> String {
    let mut text = String::new();
    for (position, figure) in positions {
        let length = figure.chars().count();
        let begin = position.saturating_sub(length / 2).min(width.saturating_sub(length));
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
    fn marks_do_not_touch() {
        let positions = [(0, "1".to_owned()), (2, "2.5".to_owned()), (10, "10".to_owned())];
        assert_eq!(x_marks(positions.into_iter(), 20), "1        10");
    }
}
