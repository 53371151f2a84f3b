//! Every kernel of a file.

use crate::container::EntryKind;
use crate::cubin::{Cubin, Kernel};
use crate::read::Binary;

impl Binary {
    /// Every kernel of every cubin with the target it is for, by opening all of them. `bytes` is the file.
    pub fn kernels(&self, bytes: &[u8]) -> Vec<(String, Kernel)> {
        let mut kernels = Vec::new();
        let mut add = |target: String, cubin: &[u8]| {
            let Some(cubin) = Cubin::parse(cubin) else { return };
            kernels.extend(cubin.kernels.into_iter().map(|kernel| (target.clone(), kernel)));
        };
        if let Some(cubin) = &self.cubin {
            add(cubin.arch.to_string(), bytes);
        }
        for entry in self.modules.iter().flat_map(|module| &module.entries) {
            if !matches!(entry.kind, EntryKind::Cubin | EntryKind::Group) || entry.is_lto() {
                continue;
            }
            let Ok(payload) = entry.payload(bytes) else { continue };
            if let Some(target) = entry.target {
                add(target.to_string(), &payload);
            }
            for member in &entry.members {
                let range = usize::try_from(member.start).ok().zip(usize::try_from(member.bytes).ok());
                let cubin = range.and_then(|(start, size)| payload.get(start..start.checked_add(size)?));
                add(member.target.to_string(), cubin.unwrap_or_default());
            }
        }
        kernels
    }

    /// The PTX targets of device-linked code (`-rdc`), which the driver can link again: `compute_75`.
    pub fn device_link_targets(&self) -> Vec<String> {
        if !self.modules.iter().any(|module| module.device_linked) {
            return Vec::new();
        }
        let mut targets: Vec<String> = self.linked_ptx().iter().map(|(arch, _)| arch.to_string()).collect();
        targets.dedup();
        targets
    }
}
