//! Results of look-ups: a sheet for one entry, a list for many.

use cudock_base::UsageError;
use cudock_base::text::suggest;
use serde::Serialize;
use serde_json::Value;

/// A result, as text and as JSON.
#[derive(Debug)]
pub struct LookupResult {
    /// The tables it is from, the main one first.
    pub tables: Vec<&'static str>,
    pub rows: Vec<Value>,
    /// The same as text.
    pub view: View,
}

impl LookupResult {
    /// Many entries, one row each.
    pub(crate) fn list<T: Serialize>(
        tables: &[&'static str],
        entries: &[T],
        columns: &[&'static str],
        cells: impl Fn(&T) -> Vec<String>,
    ) -> Self {
        Self::list_as(tables, entries, columns, value, cells)
    }

    /// Many entries, one row each, with JSON that is not the entry itself.
    pub(crate) fn list_as<T>(
        tables: &[&'static str],
        entries: &[T],
        columns: &[&'static str],
        json: impl Fn(&T) -> Value,
        cells: impl Fn(&T) -> Vec<String>,
    ) -> Self {
        let list = List { columns: columns.to_vec(), rows: entries.iter().map(cells).collect() };
        Self { tables: tables.to_vec(), rows: entries.iter().map(json).collect(), view: View::List(list) }
    }

    /// A few entries in full.
    pub(crate) fn sheets<T: Serialize>(
        tables: &[&'static str],
        entries: &[T],
        sheet: impl Fn(&T) -> Sheet,
    ) -> Self {
        let view = View::Sheets(entries.iter().map(sheet).collect());
        Self { tables: tables.to_vec(), rows: entries.iter().map(value).collect(), view }
    }

    /// One entry in full.
    pub(crate) fn sheet(tables: &[&'static str], row: &impl Serialize, sheet: Sheet) -> Self {
        Self { tables: tables.to_vec(), rows: vec![value(row)], view: View::Sheets(vec![sheet]) }
    }
}

#[derive(Debug)]
pub enum View {
    /// One or a few entries in full.
    Sheets(Vec<Sheet>),
    /// Many entries.
    List(List),
}

/// One entry, field by field.
#[derive(Debug)]
pub struct Sheet {
    pub title: String,
    /// Fields with their values, which may have several lines.
    pub fields: Vec<(&'static str, String)>,
    /// The sources of the facts.
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

/// Many entries, one row each.
#[derive(Debug)]
pub struct List {
    pub columns: Vec<&'static str>,
    /// Rows with as many cells.
    pub rows: Vec<Vec<String>>,
}

/// A row of a list.
pub(crate) fn cells(values: &[&dyn ToString]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

/// The row with an id; an error with similar ids if there is none. `noun` is what `cudock facts` calls such rows.
pub(crate) fn by_id<'f, T>(
    rows: &'f [T],
    id: impl Fn(&'f T) -> &'f str,
    noun: &str,
    name: &str,
) -> Result<&'f T, UsageError> {
    rows.iter().find(|row| id(row).eq_ignore_ascii_case(name)).ok_or_else(|| {
        let near = suggest::nearest(name, rows.iter().map(&id));
        let error = UsageError::new(format!("unknown {noun} `{name}`")).near(&near);
        error.hint(format!("`cudock facts {noun}` lists them"))
    })
}

/// Items separated by commas.
pub(crate) fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// Items on lines of their own.
pub(crate) fn lines(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join("\n")
}

/// A cell with a value, or a dash.
pub(crate) fn or_dash(item: Option<impl ToString>) -> String {
    item.map_or_else(|| "-".to_owned(), |item| item.to_string())
}

pub(crate) fn value(row: &impl Serialize) -> Value {
    serde_json::to_value(row).unwrap_or(Value::Null)
}

/// The name of an enum value in the tables, such as `new-feature`.
pub(crate) fn enum_name(item: &impl Serialize) -> String {
    value(item).as_str().unwrap_or_default().to_owned()
}
