use std::collections::{BTreeMap, BTreeSet};

use super::order::compare;
use super::{Cache, ENTRY, EXTENSION, HEADER, HWCAPS_SECTION, Hwcap, MAGIC, NAMED_HWCAP};

/// The mark for little-endian numbers.
const LITTLE: u8 = 2;

impl Cache {
    /// The bytes of the cache, with its entries in the loader's order; those of equal names stay as they are.
    ///
    /// None if it would be larger than its numbers can say.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|one, other| compare(one, other));
        // The loader walks these in parallel with its own list, which is sorted by name.
        let hwcaps: BTreeSet<&str> = entries
            .iter()
            .filter_map(|entry| match &entry.hwcap {
                Hwcap::Named(name) => Some(name.as_str()),
                Hwcap::Bits(_) => None,
            })
            .collect();
        let mut strings =
            Strings { base: HEADER + entries.len() * ENTRY, bytes: Vec::new(), known: BTreeMap::new() };
        let mut table = Vec::with_capacity(entries.len() * ENTRY);
        for entry in &entries {
            let bits = match &entry.hwcap {
                Hwcap::Bits(bits) => *bits,
                Hwcap::Named(name) => NAMED_HWCAP | hwcaps.iter().position(|known| known == name)? as u64,
            };
            table.extend(entry.flags.to_le_bytes());
            table.extend(strings.place(&entry.name)?.to_le_bytes());
            table.extend(strings.place(&entry.path)?.to_le_bytes());
            table.extend(entry.os_version.to_le_bytes());
            table.extend(bits.to_le_bytes());
        }
        let mut names = Vec::new();
        for name in &hwcaps {
            names.extend(strings.place(name)?.to_le_bytes());
        }
        let end = strings.base + strings.bytes.len();
        let extension = end.next_multiple_of(4);

        let mut bytes = MAGIC.to_vec();
        bytes.extend(u32::try_from(entries.len()).ok()?.to_le_bytes());
        bytes.extend(u32::try_from(strings.bytes.len()).ok()?.to_le_bytes());
        bytes.extend([LITTLE, 0, 0, 0]);
        let offset = if hwcaps.is_empty() { 0 } else { extension };
        bytes.extend(u32::try_from(offset).ok()?.to_le_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(table);
        bytes.extend(strings.bytes);
        if !hwcaps.is_empty() {
            bytes.resize(extension, 0);
            // One section: its mark, no flags, where its numbers are and how many bytes they take.
            let numbers = u32::try_from(extension + 24).ok()?;
            let size = u32::try_from(names.len()).ok()?;
            for number in [EXTENSION, 1, HWCAPS_SECTION, 0, numbers, size] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(names);
        }
        Some(bytes)
    }
}

/// Texts, each once, with where they begin in the file.
struct Strings<'a> {
    base: usize,
    bytes: Vec<u8>,
    known: BTreeMap<&'a str, u32>,
}

impl<'a> Strings<'a> {
    fn place(&mut self, text: &'a str) -> Option<u32> {
        if let Some(known) = self.known.get(text) {
            return Some(*known);
        }
        let at = u32::try_from(self.base + self.bytes.len()).ok()?;
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        self.known.insert(text, at);
        Some(at)
    }
}
