//! The targets of each module, used by both `inspect` and `check`.

use crate::container::{Arch, EntryKind, FatbinEntry, Module, Variant};
use crate::read::Binary;

/// The target of PTX, and its ISA version.
pub type PtxTarget = (Arch, (u16, u16));

/// The targets of one module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleTargets {
    /// SASS.
    pub sass: Vec<Arch>,
    /// SASS in groups (`nvcc --concat`), which older drivers do not support.
    pub grouped: Vec<Arch>,
    /// PTX with its ISA version, including that of the parts of a device-linked module.
    pub ptx: Vec<PtxTarget>,
}

impl ModuleTargets {
    /// Whether it only has `a` and `f` targets.
    pub(crate) fn is_special(&self) -> bool {
        let mut archs = self.sass.iter().chain(&self.grouped).chain(self.ptx.iter().map(|(arch, _)| arch));
        archs.all(|arch| arch.variant != Variant::Plain)
    }

    pub(crate) fn has_plain_ptx(&self) -> bool {
        self.ptx.iter().any(|(arch, _)| arch.variant == Variant::Plain)
    }
}

impl Binary {
    /// The targets of each module, in file order; none for a module that only contains code for later linking. A bare cubin is
    /// one module, and so are parts that were never linked.
    pub fn targets(&self) -> Vec<Option<ModuleTargets>> {
        let parts = self.linked_ptx();
        let mut all: Vec<Option<ModuleTargets>> = self
            .modules
            .iter()
            .map(|module| module.targets(if module.device_linked { &parts } else { &[] }))
            .collect();
        all.extend(
            self.cubin
                .as_ref()
                .map(|cubin| Some(ModuleTargets { sass: vec![cubin.arch], ..ModuleTargets::default() })),
        );
        if all.is_empty() && !parts.is_empty() {
            all.push(Some(ModuleTargets { ptx: parts, ..ModuleTargets::default() }));
        }
        all
    }

    /// PTX that the driver links again if a device-linked module has no SASS for a GPU.
    pub fn linked_ptx(&self) -> Vec<PtxTarget> {
        let parts = self.relocatable.iter().filter_map(|module| module.targets(&[]));
        let mut ptx: Vec<PtxTarget> = parts.flat_map(|targets| targets.ptx).collect();
        ptx.sort_unstable();
        ptx.dedup();
        ptx
    }
}

impl Module {
    /// The targets with the PTX of its parts; none if everything is linked later.
    fn targets(&self, parts: &[PtxTarget]) -> Option<ModuleTargets> {
        let mut targets = ModuleTargets { ptx: parts.to_vec(), ..ModuleTargets::default() };
        for entry in self.entries.iter().filter(|entry| !entry.is_lto() && !entry.is_placeholder()) {
            match entry.kind {
                EntryKind::Cubin => targets.sass.extend(entry.arch),
                EntryKind::Group => targets.grouped.extend(entry.members.iter().map(|member| member.arch)),
                EntryKind::Ptx => targets.ptx.extend(entry.arch.map(|arch| (arch, entry.version))),
                EntryKind::Ir | EntryKind::Unknown(_) => {}
            }
        }
        for list in [&mut targets.sass, &mut targets.grouped] {
            list.sort_unstable();
            list.dedup();
        }
        targets.ptx.sort_unstable();
        targets.ptx.dedup();
        // A module that was slimmed to nothing still has to be loaded.
        let emptied = self.entries.iter().any(FatbinEntry::is_placeholder);
        (emptied || targets != ModuleTargets::default()).then_some(targets)
    }
}
