//! TOML with the span of every value.

use std::ops::Range;

use cudock_base::{LineIndex, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Fault;
use super::requirement::Mistake;

pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// The text of a file, for turning bytes into lines.
pub(super) struct Lines<'a>(LineIndex<'a>);

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self(LineIndex::new(text))
    }

    pub(super) fn span(&self, bytes: Range<usize>) -> Span {
        self.0.span(bytes)
    }

    pub(super) fn fault(&self, at: usize, message: impl Into<String>) -> Fault {
        let (line, column) = self.0.location(at);
        Fault::new(line, column, message)
    }

    /// A mistake within the string at `span`.
    pub(super) fn mistake(&self, span: Range<usize>, mistake: Mistake) -> Fault {
        // Past the quote. In a string with escapes the location is only near.
        let at = (span.start + 1 + mistake.at).min(span.end);
        self.fault(at, mistake.message)
    }
}

/// Reads a whole file.
pub(super) fn parse<'i>(text: &'i str, lines: &Lines<'_>) -> Result<DeTable<'i>, Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        lines.fault(at.min(text.len()), error.message())
    })?;
    Ok(table.into_inner())
}

/// The table at the end of a path of keys.
pub(super) fn table<'t, 'i>(root: &'t DeTable<'i>, path: &[&str]) -> Option<&'t DeTable<'i>> {
    path.iter().try_fold(root, |table, key| table.get(*key)?.get_ref().as_table())
}

/// The list at a key; nothing if there is none.
pub(super) fn list<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> impl Iterator<Item = &'t Value<'i>> {
    table.get(key).and_then(|value| value.get_ref().as_array()).into_iter().flat_map(|array| array.iter())
}

/// The text at a key.
pub(super) fn text<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}
