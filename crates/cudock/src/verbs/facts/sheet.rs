//! What a look-up prints: a sheet for one thing, a list for many.

use cudock_base::Date;
use cudock_base::format::count;
use serde_json::Value;

use crate::output::{self, BOLD, DIM, line, styled};

/// An answer, for people and for programs.
pub(super) struct Answer {
    /// The tables it rests on, the main one first.
    pub(super) tables: Vec<&'static str>,
    /// The rows, for programs.
    pub(super) rows: Vec<Value>,
    /// The same for people.
    pub(super) view: View,
}

pub(super) enum View {
    Sheets(Vec<Sheet>),
    List(List),
}

/// One thing, field by field.
pub(super) struct Sheet {
    title: String,
    fields: Vec<(&'static str, String)>,
    sources: Vec<String>,
}

impl Sheet {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), fields: Vec::new(), sources: Vec::new() }
    }

    /// Adds a field, if there is something to say.
    pub(super) fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }

    pub(super) fn maybe(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value.to_string()),
            None => self,
        }
    }

    pub(super) fn sources<'a>(mut self, sources: impl Iterator<Item = &'a str>) -> Self {
        self.sources.extend(sources.map(str::to_owned));
        self
    }

    fn print(&self, verbose: bool) {
        line(styled(BOLD, &self.title));
        let column = self.fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.fields {
            for (index, part) in value.lines().enumerate() {
                let name = if index == 0 { *name } else { "" };
                line(output::wrapped(&format!("  {name:column$}  "), part));
            }
        }
        if verbose {
            for source in &self.sources {
                line(styled(DIM, &format!("  {:column$}  {source}", "source")));
            }
        } else if !self.sources.is_empty() {
            let text = format!("{}{} (--verbose)", count(self.sources.len(), "source"), self.newest_source());
            line(styled(DIM, &format!("  {text}")));
        }
    }

    /// `, newest 2026-08-21`, where sources end in the date they were read on.
    fn newest_source(&self) -> String {
        let date = |source: &String| source.get(source.len().checked_sub(10)?..)?.parse::<Date>().ok();
        let newest = self.sources.iter().filter_map(date).max();
        newest.map_or_else(String::new, |date| format!(", newest {date}"))
    }
}

/// Many things, a line each.
pub(super) struct List {
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl List {
    fn print(&self) {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells =
                    self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
                let title = self.columns.get(column).map_or(0, |title| title.len());
                cells.chain([title]).max().unwrap_or(0)
            })
            .collect();
        let laid_out = |cells: Vec<&str>| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        line(styled(BOLD, &laid_out(self.columns.clone())));
        for row in &self.rows {
            line(laid_out(row.iter().map(String::as_str).collect()));
        }
    }
}

impl View {
    pub(super) fn print(&self, verbose: bool) {
        match self {
            View::List(list) => list.print(),
            View::Sheets(sheets) => {
                for (index, sheet) in sheets.iter().enumerate() {
                    if index > 0 {
                        line("");
                    }
                    sheet.print(verbose);
                }
            }
        }
    }
}

/// Items in one line.
pub(super) fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// A row as programs read it.
pub(super) fn value(row: &impl serde::Serialize) -> Value {
    serde_json::to_value(row).unwrap_or(Value::Null)
}

/// A word of a row's own spelling: `new-feature` of a branch's kind.
pub(super) fn word(item: &impl serde::Serialize) -> String {
    value(item).as_str().unwrap_or_default().to_owned()
}
