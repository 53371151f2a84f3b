//! Where in the file a key stands.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::ProjectError;
use crate::error::place;

/// The text of a `cudock.toml`, so that whoever finds something wrong with a value can say where it stands: some values
/// can only be judged by those who know regions, sizes and cards.
///
/// Keys are written with dots between them, and entries of a list by their number: `deploy.regions.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    path: PathBuf,
    text: String,
}

/// Spans of a key and of its value.
struct Found {
    key: usize,
    value: usize,
}

impl Places {
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether the file has a key.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The line of a key, as `cudock.toml:12`; the file alone where it does not stand in it.
    pub fn name(&self, key: &str) -> String {
        let file = self
            .path
            .file_name()
            .map_or_else(|| self.path.display().to_string(), |name| name.to_string_lossy().into_owned());
        match self.find(key) {
            Some(found) => format!("{file}:{}", place(&self.text, found.key).0),
            None => file,
        }
    }

    /// The error that a key, whatever its value, should not be there.
    pub fn wrong_key(&self, key: &str, problem: impl Into<String>) -> ProjectError {
        self.error(self.find(key).map_or(0, |found| found.key), problem.into(), None)
    }

    /// The error that a key's value cannot be, with what was meant perhaps.
    pub fn wrong_value(
        &self,
        key: &str,
        problem: impl Into<String>,
        suggestion: Option<String>,
    ) -> ProjectError {
        self.error(self.find(key).map_or(0, |found| found.value), problem.into(), suggestion)
    }

    /// The error that a key, or an entry of a list, is no name that is known, with what was meant perhaps.
    pub fn unknown_name(
        &self,
        key: &str,
        problem: impl Into<String>,
        suggestion: Option<String>,
    ) -> ProjectError {
        self.error(self.find(key).map_or(0, |found| found.key), problem.into(), suggestion)
    }

    /// The one of some keys that stands last in the file.
    pub fn last_of<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        let found = keys.iter().filter_map(|key| Some((self.find(key)?.key, *key)));
        found.max().map(|(_, key)| key)
    }

    fn error(&self, offset: usize, problem: String, suggestion: Option<String>) -> ProjectError {
        let (line, column) = place(&self.text, offset);
        ProjectError::Parse { path: self.path.clone(), line, column, problem, suggestion }
    }

    fn find(&self, key: &str) -> Option<Found> {
        let document = DeTable::parse(&self.text).ok()?;
        let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
        let (name, value) = entry(document.get_ref(), first)?;
        below(name, value, rest)
    }
}

fn entry<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<(usize, &'t Spanned<DeValue<'i>>)> {
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    Some((key.span().start, value))
}

fn below(key: usize, value: &Spanned<DeValue<'_>>, rest: Option<&str>) -> Option<Found> {
    let Some(rest) = rest else { return Some(Found { key, value: value.span().start }) };
    let (first, rest) = rest.split_once('.').map_or((rest, None), |(first, rest)| (first, Some(rest)));
    match value.get_ref() {
        DeValue::Table(table) => {
            let (key, value) = entry(table, first)?;
            below(key, value, rest)
        }
        DeValue::Array(list) => {
            let value = list.get(first.parse::<usize>().ok()?)?;
            below(value.span().start, value, rest)
        }
        // A name where a list may stand is a list of one.
        _ if first == "0" && rest.is_none() => {
            Some(Found { key: value.span().start, value: value.span().start })
        }
        _ => None,
    }
}
