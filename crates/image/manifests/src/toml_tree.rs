//! Reads TOML with the span of every value.

use std::ops::Range;

use cudock_base::{LineIndex, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::PositionedError;
use crate::pip::requirement::RequirementError;

pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// Converts bytes of a TOML file to spans and positions.
pub(super) struct Lines<'a>(LineIndex<'a>);

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(LineIndex::new(text))
    }

    pub(super) fn span(&self, bytes: Range<usize>) -> Span {
        self.0.span(bytes)
    }

    pub(super) fn error_at(&self, at: usize, message: impl Into<String>) -> PositionedError {
        let (line, column) = self.0.location(at);
        PositionedError::new(line, column, message)
    }

    /// An error within the string at `span`.
    pub(super) fn error_within(&self, span: Range<usize>, error: RequirementError) -> PositionedError {
        // Past the quote. In a string with escapes, the position is approximate.
        let at = (span.start + 1 + error.at).min(span.end);
        self.error_at(at, error.message)
    }
}

pub(super) fn parse<'i>(text: &'i str, lines: &Lines<'_>) -> Result<DeTable<'i>, PositionedError> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        lines.error_at(at.min(text.len()), error.message())
    })?;
    Ok(table.into_inner())
}

/// The table at the end of a path of keys.
pub(super) fn table<'t, 'i>(root: &'t DeTable<'i>, path: &[&str]) -> Option<&'t DeTable<'i>> {
    path.iter().try_fold(root, |table, key| table.get(*key)?.get_ref().as_table())
}

/// The members of the list at a key.
pub(super) fn list<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> impl Iterator<Item = &'t Value<'i>> {
    table.get(key).and_then(|value| value.get_ref().as_array()).into_iter().flat_map(|array| array.iter())
}

pub(super) fn text<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}

pub(super) fn texts<'t>(table: &'t DeTable<'_>, key: &str) -> impl Iterator<Item = &'t str> {
    list(table, key).filter_map(|value| value.get_ref().as_str())
}

pub(super) fn is_true(table: &DeTable<'_>, key: &str) -> bool {
    table.get(key).and_then(|value| value.get_ref().as_bool()) == Some(true)
}

pub(super) fn has_any(table: &DeTable<'_>, keys: &[&str]) -> bool {
    keys.iter().any(|key| table.contains_key(*key))
}
