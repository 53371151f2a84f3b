//! An answer: a sheet for one thing, a list for many.

use serde_json::Value;

/// An answer, for people and for programs.
#[derive(Debug)]
pub struct Answer {
    /// The tables it rests on, the main one first.
    pub tables: Vec<&'static str>,
    /// The rows, for programs.
    pub rows: Vec<Value>,
    /// The same for people.
    pub view: View,
}

/// An answer for people.
#[derive(Debug)]
pub enum View {
    /// One or a few things in full.
    Sheets(Vec<Sheet>),
    /// Many things.
    List(List),
}

/// One thing, field by field.
#[derive(Debug)]
pub struct Sheet {
    /// Its name.
    pub title: String,
    /// Fields with their values, which may have several lines.
    pub fields: Vec<(&'static str, String)>,
    /// Where the facts are from.
    pub sources: Vec<String>,
}

impl Sheet {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), fields: Vec::new(), sources: Vec::new() }
    }

    /// Adds a field unless it is empty.
    pub(crate) fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }

    pub(crate) fn maybe(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value.to_string()),
            None => self,
        }
    }

    pub(crate) fn sources<'a>(mut self, sources: impl Iterator<Item = &'a str>) -> Self {
        self.sources.extend(sources.map(str::to_owned));
        self
    }
}

/// Many things, a row each.
#[derive(Debug)]
pub struct List {
    /// The titles of the columns.
    pub columns: Vec<&'static str>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
}

/// Items on one line.
pub(crate) fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// A row as JSON.
pub(crate) fn value(row: &impl serde::Serialize) -> Value {
    serde_json::to_value(row).unwrap_or(Value::Null)
}

/// An enum's name in the tables: `new-feature` of a driver branch.
pub(crate) fn word(item: &impl serde::Serialize) -> String {
    value(item).as_str().unwrap_or_default().to_owned()
}
