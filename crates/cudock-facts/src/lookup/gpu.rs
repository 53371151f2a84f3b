use super::Found;
use crate::suggest;
use crate::tables::{Gpu, Gpus};

impl Gpus {
    /// The card or cards a name stands for: our id, the driver's name, or the first part of either (`A100`).
    pub fn find(&self, name: &str) -> Found<'_, Gpu> {
        let wanted = bare(name);
        let exact =
            |gpu: &&Gpu| bare(&gpu.id) == wanted || gpu.names.iter().any(|known| bare(known) == wanted);
        let mut rows: Vec<&Gpu> = self.gpu.iter().filter(exact).collect();
        if rows.is_empty() && !wanted.is_empty() {
            rows = self.gpu.iter().filter(|gpu| begins_with(&gpu.id, name)).collect();
        }
        Found::from_rows(rows, || suggest::nearest(name, self.gpu.iter().map(|gpu| gpu.id.as_str())))
    }

    /// The card with a PCI device number, such as 0x2335. Boards of one chip may share one.
    pub fn by_pci_id(&self, device: u16) -> Vec<&Gpu> {
        let id = format!("{device:04x}");
        self.gpu.iter().filter(|gpu| gpu.pci_ids.contains(&id)).collect()
    }

    /// The card a driver's product name stands for. Drivers add memory and form to the names they know
    /// (`NVIDIA A100-SXM4-80GB`); a name that is not in the table is not guessed at.
    pub fn by_product_name(&self, name: &str) -> Option<&Gpu> {
        let wanted = bare(name);
        self.gpu.iter().find(|gpu| gpu.names.iter().any(|known| bare(known) == wanted))
    }
}

/// A name without its maker and without what people vary in writing.
fn bare(name: &str) -> String {
    let folded = suggest::folded(name);
    for maker in ["nvidiageforce", "nvidiatesla", "nvidia", "geforce", "tesla", "amdinstinct", "amd"] {
        if let Some(rest) = folded.strip_prefix(maker).filter(|rest| !rest.is_empty()) {
            return rest.to_owned();
        }
    }
    folded
}

/// Whether `id` is `name` and then a further part: A100-40 begins with A100, and A100 does not begin with A10.
fn begins_with(id: &str, name: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split([' ', '-', '_']).filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect()
    };
    let (id, name) = (parts(id), parts(name));
    !name.is_empty() && id.starts_with(&name)
}
