//! Checks `packages.toml`: names are normalized and unique, and references exist.

use std::collections::BTreeSet;

use super::TableChecker;
use crate::store::Facts;
use crate::tables::{GpuUse, TableRow};

impl TableChecker {
    pub(super) fn packages(&mut self, facts: &Facts) {
        let packages = facts.packages();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for row in &packages.gpu {
            for name in std::iter::once(&row.name).chain(&row.also) {
                if !is_normalized(name) {
                    let message = format!("has the name `{name}`, which is not normalized");
                    self.add("packages", "gpu", &row.name, message);
                }
                if !seen.insert(name) {
                    let message = format!("shares the name `{name}` with another row");
                    self.add("packages", "gpu", &row.name, message);
                }
            }
            if row.uses == GpuUse::Wraps && row.on.is_empty() {
                self.add("packages", "gpu", &row.name, "wraps another package and does not name it");
            }
        }
        for group in &packages.no_gpu {
            for name in &group.names {
                if !is_normalized(name) {
                    let message = format!("has `{name}`, which is not normalized");
                    self.add("packages", "no_gpu", &group.area, message);
                }
                if !seen.insert(name) {
                    self.add("packages", "no_gpu", &group.area, format!("has `{name}`, which is duplicated"));
                }
            }
        }
        for row in &packages.gpu {
            for wrapped in row.on.iter().filter(|wrapped| !seen.contains(wrapped.as_str())) {
                self.add("packages", "gpu", &row.name, format!("runs on `{wrapped}`, which has no row"));
            }
            let in_order = row.cuda.windows(2).all(|pair| matches!(pair, [a, b] if a.from < b.from));
            if !in_order {
                self.add("packages", "gpu", &row.name, "has CUDA versions out of order");
            }
        }
        for pins in &packages.pin {
            for pair in pins.releases.windows(2) {
                if let [a, b] = pair
                    && a.version >= b.version
                {
                    let message = format!("has {} after {}", b.version, a.version);
                    self.add("packages", "pin", &pins.key(), message);
                }
            }
        }
        for release in &facts.frameworks().torch {
            let companions = [("torchvision", &release.torchvision), ("torchaudio", &release.torchaudio)];
            for (name, version) in
                companions.into_iter().filter_map(|(name, version)| Some((name, version.as_ref()?)))
            {
                let other = packages.pins_of(name, version).find(|(_, needs)| **needs != release.version);
                if let Some((_, needs)) = other {
                    let message =
                        format!("requires torch {needs}; frameworks.toml pairs it with {}", release.version);
                    self.add("packages", "pin", &format!("{name} torch"), message);
                }
            }
        }
    }
}

fn is_normalized(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(allowed) && !name.contains("--")
}
