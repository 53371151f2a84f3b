//! Tables with aligned columns, which all reports use for lists.
//!
//! Cells may hold any text, such as that of an image: none leaves its line.

use crate::text::printable;

/// How the cells of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Columns with their titles, and rows of as many cells.
#[derive(Debug, Default)]
pub struct TextTable {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// Whether a column is left out if all its cells are empty.
    drops_empty: bool,
}

impl TextTable {
    /// A list: all columns aligned to the left, and none left out.
    pub fn list(titles: &[&str], rows: Vec<Vec<String>>) -> Self {
        let rows = rows.into_iter().map(printable_cells).collect();
        let columns = titles.iter().map(|title| ((*title).to_owned(), Align::Left)).collect();
        Self { columns, rows, drops_empty: false }
    }

    /// A report: columns that have nothing to show are left out.
    pub fn report(columns: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(title, align)| (title.to_owned(), align)).collect();
        Self { columns, rows: Vec::new(), drops_empty: true }
    }

    pub fn column(&mut self, title: impl Into<String>, align: Align) {
        self.columns.push((title.into(), align));
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        if cells.len() != self.columns.len() {
            crate::never!("a row of {} cells in a table of {} columns", cells.len(), self.columns.len());
        }
        self.rows.push(printable_cells(cells));
    }

    /// The titles and the rows, aligned.
    pub fn lines(&self) -> Vec<String> {
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

    /// The width of the widest cell or the title; zero if the column is left out.
    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        let widest = cells.max().unwrap_or(0);
        let title = self.columns.get(column).map_or(0, |(title, _)| title.chars().count());
        if widest == 0 && self.drops_empty { 0 } else { widest.max(title) }
    }
}

fn printable_cells(cells: Vec<String>) -> Vec<String> {
    cells.into_iter().map(|cell| printable(&cell).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_forges_no_row() {
        let mut report = TextTable::report([("NAME", Align::Left)]);
        report.row(vec!["a\nforged".into()]);
        for table in [report, TextTable::list(&["NAME"], vec![vec!["a\nforged".into()]])] {
            assert_eq!(table.lines(), ["NAME", "a\\nforged"]);
        }
    }

    #[test]
    fn numbers_end_below_each_other_and_empty_columns_are_left_out() {
        let mut table =
            TextTable::report([("name", Align::Left), ("note", Align::Left), ("USD", Align::Right)]);
        table.row(vec!["a".into(), String::new(), "1.50".into()]);
        table.row(vec!["longer".into(), String::new(), "12.00".into()]);
        assert_eq!(table.lines(), ["name      USD", "a        1.50", "longer  12.00"]);
    }

    #[test]
    fn a_list_keeps_all_its_columns() {
        let table =
            TextTable::list(&["NAME", "NOTE", "AGE"], vec![vec!["a".into(), String::new(), "2 d".into()]]);
        assert_eq!(table.lines(), ["NAME  NOTE  AGE", "a           2 d"]);
        assert_eq!(TextTable::list(&["NAME"], Vec::new()).lines(), ["NAME"]);
    }
}
