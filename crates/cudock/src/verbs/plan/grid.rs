//! A table with aligned columns.

use crate::output::{BOLD, line, styled};

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Columns with their titles, and rows of as many cells. A column with nothing in it is left out.
#[derive(Debug, Default)]
pub(super) struct Grid {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(columns: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(title, align)| (title.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn column(&mut self, title: impl Into<String>, align: Align) {
        self.columns.push((title.into(), align));
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The title and the rows, laid out.
    fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width_of(column)).collect();
        let laid_out = |cells: &[&str]| {
            let mut text = String::new();
            for ((cell, width), (_, align)) in cells.iter().zip(&widths).zip(&self.columns) {
                if *width == 0 {
                    continue;
                }
                let blank = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (first, second) = match align {
                    Align::Left => (*cell, blank.as_str()),
                    Align::Right => (blank.as_str(), *cell),
                };
                text.extend([first, second, "  "]);
            }
            text.trim_end().to_owned()
        };
        let titles: Vec<&str> = self.columns.iter().map(|(title, _)| title.as_str()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect::<Vec<_>>());
        std::iter::once(titles).chain(rows).map(|cells| laid_out(&cells)).collect()
    }

    /// The widest cell or the title; nothing if all cells are empty.
    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        let widest = cells.max().unwrap_or(0);
        let title = self.columns.get(column).map_or(0, |(title, _)| title.chars().count());
        if widest == 0 { 0 } else { widest.max(title) }
    }

    pub(super) fn print(&self) {
        for (index, text) in self.lines().iter().enumerate() {
            line(if index == 0 { styled(BOLD, text) } else { text.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_below_each_other_and_empty_columns_are_left_out() {
        let mut grid = Grid::new([("name", Align::Left), ("note", Align::Left), ("USD", Align::Right)]);
        grid.row(vec!["a".into(), String::new(), "1.50".into()]);
        grid.row(vec!["longer".into(), String::new(), "12.00".into()]);
        assert_eq!(grid.lines(), ["name      USD", "a        1.50", "longer  12.00"]);
    }
}
