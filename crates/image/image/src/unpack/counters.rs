//! Counts what was written and what was skipped on purpose.

use serde::{Deserialize, Serialize};

use super::error::printable;

/// The number of names to report for each kind of skipped item.
const MAX_NAMES: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnpackCounters {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    devices: Skipped,
    attributes: Skipped,
    unknown: Skipped,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Skipped {
    count: u64,
    first: Vec<String>,
}

impl Skipped {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MAX_NAMES {
            let name = name();
            if !self.first.contains(&name) {
                self.first.push(name);
            }
        }
    }

    fn note(&self, what: &str) -> Option<String> {
        let more = if self.count > self.first.len() as u64 { ", …" } else { "" };
        (self.count > 0).then(|| format!("{} {what} skipped: {}{more}", self.count, self.first.join(", ")))
    }
}

impl UnpackCounters {
    pub(super) fn skip_device(&mut self, path: &[u8]) {
        self.devices.add(|| printable(path));
    }

    pub(super) fn skip_attribute(&mut self, path: &[u8], name: &[u8]) {
        self.attributes.add(|| format!("{} of {}", printable(name), printable(path)));
    }

    pub(super) fn skip_unknown(&mut self, path: &[u8], type_flag: u8) {
        self.unknown.add(|| format!("{} (type {})", printable(path), printable(&[type_flag])));
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let notes = [
            self.devices.note("device nodes"),
            self.attributes.note("extended attributes"),
            self.unknown.note("entries of an unknown type"),
        ];
        notes.into_iter().flatten().collect()
    }
}
