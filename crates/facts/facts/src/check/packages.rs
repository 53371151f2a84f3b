//! Checks `packages.toml`: names are normalized and unique, and references exist.

use std::collections::BTreeSet;

use super::{TableChecker, Violation};
use crate::store::Facts;
use crate::tables::GpuUse;

impl TableChecker {
    pub(super) fn packages(&mut self, facts: &Facts) {
        let packages = facts.packages();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        self.each("packages", "gpu", &packages.gpu, |row, check| {
            for name in std::iter::once(&row.name).chain(&row.also) {
                let message = || format!("has the name `{name}`, which is not normalized");
                check.require(is_normalized(name), message);
                check.require(seen.insert(name), || format!("shares the name `{name}` with another row"));
            }
            let named = row.uses != GpuUse::Wraps || !row.on.is_empty();
            check.require(named, || "wraps another package and does not name it");
        });
        self.each("packages", "no_gpu", &packages.no_gpu, |group, check| {
            for name in &group.names {
                check.require(is_normalized(name), || format!("has `{name}`, which is not normalized"));
                check.require(seen.insert(name), || format!("has `{name}`, which is duplicated"));
            }
        });
        self.each("packages", "gpu", &packages.gpu, |row, check| {
            for wrapped in &row.on {
                let message = || format!("runs on `{wrapped}`, which has no row");
                check.require(seen.contains(wrapped.as_str()), message);
            }
            let sorted = row.cuda.is_sorted_by(|a, b| a.from < b.from);
            check.require(sorted, || "has CUDA versions out of order");
        });
        self.each("packages", "pin", &packages.pin, |pins, check| {
            for (a, b) in pins.releases.iter().zip(pins.releases.iter().skip(1)) {
                let message = || format!("has {} after {}", b.version, a.version);
                check.require(a.version < b.version, message);
            }
        });
        for release in &facts.frameworks().torch {
            let companions = [("torchvision", &release.torchvision), ("torchaudio", &release.torchaudio)];
            for (name, version) in companions {
                let mut pins = version.iter().flat_map(|version| packages.pins_of(name, version));
                if let Some((_, needs)) = pins.find(|(_, needs)| **needs != release.version) {
                    let message =
                        format!("requires torch {needs}; frameworks.toml pairs it with {}", release.version);
                    let key = format!("{name} torch");
                    self.violations.push(Violation { table: "packages", list: "pin", key, message });
                }
            }
        }
    }
}

fn is_normalized(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(allowed) && !name.contains("--")
}
