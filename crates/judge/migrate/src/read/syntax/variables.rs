//! Variables that a text sets, with their values.

use std::collections::HashMap;

use super::tree::Tree;
use crate::read::names::is_name_byte;

/// The limit for variables that refer to each other.
const MAX_CHAIN: usize = 8;

/// A value with the bytes to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) struct Located {
    pub(in crate::read) text: String,
    pub(in crate::read) start: usize,
    pub(in crate::read) end: usize,
}

/// Values by name, each with its bytes.
#[derive(Debug, Default)]
pub(in crate::read) struct Variables<'t> {
    values: HashMap<&'t str, Vec<Located>>,
}

impl<'t> Variables<'t> {
    /// Collects pairs as variables: pipelines set them in maps.
    pub(in crate::read) fn gather_pairs(&mut self, tree: &Tree<'t>) {
        for pair in tree.pairs.iter().filter(|pair| pair.literal) {
            let text = tree.slice(pair.value).to_owned();
            let located = Located { text, start: pair.value.0, end: pair.value.1 };
            self.add(tree.slice(pair.name), located);
        }
    }

    pub(super) fn add(&mut self, name: &'t str, value: Located) {
        self.values.entry(name).or_default().push(value);
    }

    /// Sorts the values for [`Self::get`].
    pub(in crate::read) fn sort(&mut self) {
        for values in self.values.values_mut() {
            values.sort_by_key(|located| located.start);
        }
    }

    /// The value of a variable at a byte: the last one set before it, or else the first.
    pub(in crate::read) fn get(&self, name: &str, before: usize) -> Option<Located> {
        let mut name = name.to_owned();
        for _ in 0..MAX_CHAIN {
            let values = self.values.get(name.as_str())?;
            let earlier = values.partition_point(|located| located.start < before);
            let value = values.get(earlier.saturating_sub(1))?;
            match variable_name(&value.text).filter(|other| *other != name) {
                Some(other) if self.values.contains_key(other) => name = other.to_owned(),
                _ => return Some(Located { text: value.text.clone(), ..*value }),
            }
        }
        None
    }
}

/// The name in `$NAME` and `${NAME}`.
pub(super) fn variable_name(value: &str) -> Option<&str> {
    let inside = value.strip_prefix('$')?;
    let name = inside.strip_prefix('{').and_then(|inside| inside.strip_suffix('}')).unwrap_or(inside);
    (!name.is_empty() && name.bytes().all(is_name_byte)).then_some(name)
}
