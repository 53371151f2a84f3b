//! The chart of throughput against latency in the terminal.

use cudock_loadgen::results::text::{count, milliseconds};

/// Rows of the chart, and columns of the figures next to it.
const HEIGHT: usize = 6;
const FIGURES: usize = 9;

/// A point: latency in milliseconds, rows per second, and its mark.
pub(crate) type Point = (f64, f64, char);

/// Draws points, the last on top, and the meaning of their marks; latency is logarithmic.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "columns and rows of a terminal"
)]
pub(crate) fn terminal(points: &[Point], legend: &str, width: usize) -> Vec<String> {
    let width = width.saturating_sub(FIGURES + 2).max(20);
    let latencies = || points.iter().map(|point| point.0.max(1e-3));
    let (low, high) = (latencies().fold(f64::INFINITY, f64::min), latencies().fold(0.0, f64::max));
    let top = points.iter().map(|point| point.1).fold(0.0, f64::max);
    if points.is_empty() || top <= 0.0 {
        return Vec::new();
    }
    let range = (high / low).ln().max(1e-9);
    let column =
        |latency: f64| ((latency.max(1e-3) / low).ln() / range * (width - 1) as f64).round() as usize;
    let row = |rate: f64| ((1.0 - rate / top) * (HEIGHT - 1) as f64).round() as usize;
    let mut cells = vec![vec![' '; width]; HEIGHT];
    for (latency, rate, mark) in points {
        if let Some(cell) = cells.get_mut(row(*rate)).and_then(|row| row.get_mut(column(*latency))) {
            *cell = *mark;
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for (index, cells) in cells.iter().enumerate() {
        let share = 1.0 - index as f64 / (HEIGHT - 1) as f64;
        let figure =
            if index == 0 || index == HEIGHT - 1 { count((top * share).round()) } else { String::new() };
        let text: String = cells.iter().collect();
        lines.push(format!("{figure:>FIGURES$} \u{2524}{text}").trim_end().to_owned());
    }
    lines.push(format!("{:>FIGURES$} \u{2514}{}", "rows/s", "\u{2500}".repeat(width)));
    let (left, right) = (format!("p99 {}", milliseconds(low)), milliseconds(high));
    let texts = [&left, legend, &right].map(|text| text.chars().count());
    let gap = width.saturating_sub(texts.iter().sum());
    let (before, after) = (" ".repeat((gap / 2).max(1)), " ".repeat((gap - gap / 2).max(1)));
    lines.push(format!("{:>FIGURES$}  {left}{before}{legend}{after}{right}", ""));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_is_up_and_slow_is_right() {
        let lines = terminal(&[(1.0, 1.0, '.'), (10.0, 1200.0, 'o'), (100.0, 2000.0, '*')], "* best", 40);
        assert_eq!(lines.len(), HEIGHT + 2);
        assert!(lines[0].starts_with("    2,000 \u{2524}") && lines[0].ends_with('*'), "{}", lines[0]);
        assert!(lines[HEIGHT - 1].contains("\u{2524}."), "{lines:#?}");
        assert!(lines[2].contains('o'), "{lines:#?}");
        assert_eq!(lines[HEIGHT + 1].trim(), "p99 1.00 ms   * best   100 ms");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
    }

    #[test]
    fn one_point_or_none_can_be_drawn() {
        assert_eq!(terminal(&[], "", 80), Vec::<String>::new());
        assert_eq!(terminal(&[(0.0, 0.0, '*')], "", 80), Vec::<String>::new());
        assert!(terminal(&[(2.0, 10.0, '*')], "", 80)[0].contains('*'));
    }
}
