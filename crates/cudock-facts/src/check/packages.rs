//! The rules of `packages.toml`: a package stands once, under a normalized name, and refers to packages there are.

use std::collections::BTreeSet;

use super::Found;
use crate::store::Facts;
use crate::tables::{GpuUse, Row};

impl Found {
    pub(super) fn packages(&mut self, facts: &Facts) {
        let packages = facts.packages();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for row in &packages.gpu {
            for name in std::iter::once(&row.name).chain(&row.also) {
                if !is_normalized(name) {
                    self.add(
                        "packages",
                        "gpu",
                        &&row.name,
                        format!("has the name `{name}`, which is not normalized"),
                    );
                }
                if !seen.insert(name) {
                    self.add(
                        "packages",
                        "gpu",
                        &&row.name,
                        format!("shares the name `{name}` with another row"),
                    );
                }
            }
            if row.uses == GpuUse::Wraps && row.on.is_empty() {
                self.add("packages", "gpu", &&row.name, "wraps another package and does not name it");
            }
        }
        for group in &packages.no_gpu {
            for name in &group.names {
                if !is_normalized(name) {
                    self.add(
                        "packages",
                        "no_gpu",
                        &&group.area,
                        format!("has `{name}`, which is not normalized"),
                    );
                }
                if !seen.insert(name) {
                    self.add("packages", "no_gpu", &&group.area, format!("has `{name}`, which stands twice"));
                }
            }
        }
        for row in &packages.gpu {
            for wrapped in row.on.iter().filter(|wrapped| !seen.contains(wrapped.as_str())) {
                self.add("packages", "gpu", &&row.name, format!("runs on `{wrapped}`, which has no row"));
            }
            let in_order = row.cuda.windows(2).all(|pair| matches!(pair, [a, b] if a.from < b.from));
            if !in_order {
                self.add("packages", "gpu", &&row.name, "has CUDA versions out of order");
            }
        }
        for pins in &packages.pin {
            for pair in pins.releases.windows(2) {
                if let [a, b] = pair
                    && a.version >= b.version
                {
                    self.add(
                        "packages",
                        "pin",
                        &pins.key(),
                        format!("has {} behind {}", b.version, a.version),
                    );
                }
            }
        }
        for release in &facts.frameworks().torch {
            let beside = [("torchvision", &release.torchvision), ("torchaudio", &release.torchaudio)];
            for (name, version) in
                beside.into_iter().filter_map(|(name, version)| Some((name, version.as_ref()?)))
            {
                let other = packages.pins_of(name, version).find(|(_, needs)| **needs != release.version);
                if let Some((_, needs)) = other {
                    let message =
                        format!("requires torch {needs}; frameworks.toml has it beside {}", release.version);
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
