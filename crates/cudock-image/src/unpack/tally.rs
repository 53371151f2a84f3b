//! What was left out of a layer on purpose, and how much was written.

use serde::{Deserialize, Serialize};

use super::error::shown;

/// Names that are told of each kind of thing left out.
const TOLD: usize = 8;

/// Counts what becomes of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    devices: LeftOut,
    attributes: LeftOut,
    unknown: LeftOut,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LeftOut {
    count: u64,
    first: Vec<String>,
}

impl LeftOut {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < TOLD {
            let name = name();
            if !self.first.contains(&name) {
                self.first.push(name);
            }
        }
    }

    fn note(&self, what: &str) -> Option<String> {
        let more = if self.count > self.first.len() as u64 { ", …" } else { "" };
        (self.count > 0).then(|| format!("{} {what} left out: {}{more}", self.count, self.first.join(", ")))
    }
}

impl Tally {
    pub(super) fn left_out_device(&mut self, path: &[u8]) {
        self.devices.add(|| shown(path));
    }

    pub(super) fn left_out_attribute(&mut self, path: &[u8], name: &[u8]) {
        self.attributes.add(|| format!("{} of {}", shown(name), shown(path)));
    }

    pub(super) fn left_out_unknown(&mut self, path: &[u8], letter: u8) {
        self.unknown.add(|| format!("{} (type {})", shown(path), shown(&[letter])));
    }

    /// In words, for people.
    pub(super) fn notes(&self) -> Vec<String> {
        let notes = [
            self.devices.note("device nodes"),
            self.attributes.note("extended attributes"),
            self.unknown.note("entries of an unknown type"),
        ];
        notes.into_iter().flatten().collect()
    }
}
