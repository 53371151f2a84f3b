//! The location of each key in a `cudock.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::LineIndex;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::ProjectError;

/// The text of a `cudock.toml` and the offsets of its keys, so that a rejected value can be reported with its location:
/// some values can only be judged by those who know regions, sizes and GPUs.
///
/// Keys are written with dots between them, and entries of a list by their index: `deploy.regions.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestText {
    path: PathBuf,
    text: String,
    keys: BTreeMap<String, KeyOffsets>,
}

/// Byte offsets of a key and of its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeyOffsets {
    key: usize,
    value: usize,
}

impl ManifestText {
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        let mut keys = BTreeMap::new();
        if let Ok(document) = DeTable::parse(text) {
            collect("", document.get_ref(), &mut keys);
        }
        Self { path: path.to_owned(), text: text.to_owned(), keys }
    }

    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The line of a key, as `cudock.toml:12`; only the file if it does not have the key.
    pub fn location(&self, key: &str) -> String {
        let file = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        match self.find(key) {
            Some(offsets) => format!("{file}:{}", LineIndex::new(&self.text).line(offsets.key)),
            None => file.into_owned(),
        }
    }

    /// An error at a key or an entry of a list, whatever its value.
    pub fn key_error(
        &self,
        key: &str,
        problem: impl Into<String>,
        suggestion: Option<String>,
    ) -> ProjectError {
        self.error(self.find(key).unwrap_or_default().key, problem.into(), suggestion)
    }

    /// An error at the value of a key.
    pub fn value_error(
        &self,
        key: &str,
        problem: impl Into<String>,
        suggestion: Option<String>,
    ) -> ProjectError {
        self.error(self.find(key).unwrap_or_default().value, problem.into(), suggestion)
    }

    /// The one of some keys that is last in the file.
    pub(crate) fn last_of<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        keys.iter().filter_map(|key| Some((self.find(key)?.key, *key))).max().map(|(_, key)| key)
    }

    fn error(&self, offset: usize, problem: String, suggestion: Option<String>) -> ProjectError {
        ProjectError::at(&self.path, &self.text, offset, problem, suggestion)
    }

    fn find(&self, key: &str) -> Option<KeyOffsets> {
        // A single name stands for a list of one.
        let entry = || self.keys.get(key.strip_suffix(".0")?).map(|offsets| offsets.value);
        self.keys.get(key).copied().or_else(|| entry().map(|value| KeyOffsets { key: value, value }))
    }
}

fn collect(prefix: &str, table: &DeTable<'_>, keys: &mut BTreeMap<String, KeyOffsets>) {
    for (key, value) in table {
        insert(format!("{prefix}{}", key.get_ref()), key.span().start, value, keys);
    }
}

fn insert(name: String, key: usize, value: &Spanned<DeValue<'_>>, keys: &mut BTreeMap<String, KeyOffsets>) {
    match value.get_ref() {
        DeValue::Table(table) => collect(&format!("{name}."), table, keys),
        DeValue::Array(list) => {
            for (index, entry) in list.iter().enumerate() {
                insert(format!("{name}.{index}"), entry.span().start, entry, keys);
            }
        }
        _ => {}
    }
    keys.insert(name, KeyOffsets { key, value: value.span().start });
}
