//! Looks up GPUs by name and by PCI id.

mod chips;
mod name;

use self::name::GpuName;
use super::NameMatch;
use crate::tables::{ComputeFormat, Gpu, Gpus, OfChips};
use crate::version::Capability;
use cudock_base::text::suggest;

/// The limit for matches: a name with more is too short to be meaningful.
const MAX_MATCHES: usize = 12;

impl Gpus {
    /// The GPUs with a name: our id, the name from nvidia-smi (also truncated with dots, of a MIG device or with a vGPU
    /// profile), a product name of pci.ids, a chip, or the distinctive part of one of these (`A100`, `P4000`).
    pub fn find(&self, name: &str) -> NameMatch<'_, Gpu> {
        let wanted = GpuName::parse(name);
        let mut rows = self.exactly(&wanted);
        // A name without a number is a product line, of which the table has only some GPUs.
        if rows.is_empty() && !wanted.is_truncated && wanted.text.bytes().any(|byte| byte.is_ascii_digit()) {
            rows = self.gpu.iter().filter(|gpu| begins_with(&gpu.id, &wanted.text)).collect();
        }
        if rows.is_empty() {
            rows = self.by_product(&wanted);
        }
        if rows.len() > MAX_MATCHES {
            rows.clear();
        }
        let ids = || self.gpu.iter().chain(&self.of_chips().rows).map(|gpu| gpu.id.as_str());
        NameMatch::from_rows(rows, || suggest::nearest(name, ids()))
    }

    /// The number formats that GPUs of a compute capability calculate in; none if that is unknown.
    pub fn native_formats(&self, capability: Capability) -> Option<&[ComputeFormat]> {
        let row = self.arithmetic.iter().find(|row| row.capability == capability)?;
        Some(&row.native)
    }

    /// The GPUs with a PCI device id, such as 0x2335. Boards of one chip may share one.
    pub fn by_pci_id(&self, device: u16) -> Vec<&Gpu> {
        let id = format!("{device:04x}");
        let with_id = |gpu: &&Gpu| gpu.pci_ids.contains(&id);
        let rows: Vec<&Gpu> = self.gpu.iter().filter(with_id).collect();
        if rows.is_empty() { self.of_chips().rows.iter().filter(with_id).collect() } else { rows }
    }

    /// The GPU with a driver's product name; `None` if the name is unknown or ambiguous.
    pub fn by_product_name(&self, name: &str) -> Option<&Gpu> {
        let wanted = GpuName::parse(name);
        let mut rows = self.exactly(&wanted);
        if rows.is_empty() {
            let same = |(known, row): (GpuName, _)| {
                (known.equals(&wanted) && known.laptop == wanted.laptop).then_some(row)
            };
            rows = self.products().filter_map(same).collect();
        }
        let first = rows.first()?;
        rows.iter().all(|row| row.id == first.id).then_some(*first)
    }

    /// Rows whose id or one of whose names equals this one.
    fn exactly(&self, wanted: &GpuName) -> Vec<&Gpu> {
        let bare = bare(&wanted.text);
        let is = |gpu: &&Gpu| {
            self::bare(&gpu.id) == bare || gpu.names.iter().any(|known| self::bare(known) == bare)
        };
        if wanted.is_truncated || bare.is_empty() { Vec::new() } else { self.gpu.iter().filter(is).collect() }
    }

    /// Rows by product name: equal names, or else names that contain all wanted words.
    fn by_product(&self, wanted: &GpuName) -> Vec<&Gpu> {
        let products: Vec<(GpuName, &Gpu)> = self.products().collect();
        for matches in [GpuName::equals, GpuName::contains] {
            let found = || products.iter().filter(|(known, _)| matches(known, wanted));
            // Desktop and laptop GPUs share names; the other kind matches only if this one does not exist.
            let same_kind = found().any(|(known, _)| known.laptop == wanted.laptop);
            let mut rows: Vec<&Gpu> = Vec::new();
            for (_, row) in found().filter(|(known, _)| !same_kind || known.laptop == wanted.laptop) {
                if !rows.iter().any(|seen| seen.id == row.id) {
                    rows.push(row);
                }
            }
            if !rows.is_empty() {
                return rows;
            }
        }
        let is_chip = |gpu: &&Gpu| gpu.names.is_empty() && gpu.id.eq_ignore_ascii_case(&wanted.text);
        self.of_chips().rows.iter().filter(is_chip).collect()
    }

    fn products(&self) -> impl Iterator<Item = (GpuName, &Gpu)> {
        let of_chips = self.of_chips();
        let named = self
            .gpu
            .iter()
            .chain(&of_chips.rows)
            .flat_map(|gpu| gpu.names.iter().map(move |name| (GpuName::parse(name), gpu)));
        let aliases = of_chips
            .aliases
            .iter()
            .filter_map(|(name, row)| Some((GpuName::parse(name), self.gpu.get(*row)?)));
        named.chain(aliases)
    }

    fn of_chips(&self) -> &OfChips {
        self.of_chips.get_or_init(|| chips::derive(self))
    }
}

/// A normalized name without its vendor.
fn bare(name: &str) -> String {
    let folded = suggest::normalize(name);
    for maker in ["nvidiageforce", "nvidiatesla", "nvidia", "geforce", "tesla", "amdinstinct", "amd"] {
        if let Some(rest) = folded.strip_prefix(maker).filter(|rest| !rest.is_empty()) {
            return rest.to_owned();
        }
    }
    folded
}

/// Whether `id` starts with the parts of `name`: A100-40 begins with A100, but A100 does not begin with A10.
fn begins_with(id: &str, name: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split([' ', '-', '_']).filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect()
    };
    let (id, name) = (parts(id), parts(name));
    !name.is_empty() && id.starts_with(&name)
}
