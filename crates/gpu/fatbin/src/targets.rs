//! The targets of each module, used by both `inspect` and `check`.

use cudock_facts::version::{PtxArch, PtxIsa, SmArch, Variant};

use crate::code_target::CodeTarget;
use crate::container::{EntryKind, FatbinEntry, Module};
use crate::read::Binary;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleTargets {
    pub sass: Vec<SmArch>,
    /// SASS in groups (`nvcc --concat`), which older drivers do not support.
    pub grouped: Vec<SmArch>,
    /// PTX with its ISA version, including that of the parts of a device-linked module.
    pub ptx: Vec<(PtxArch, PtxIsa)>,
}

impl ModuleTargets {
    /// Whether it only has `a` and `f` targets.
    pub(crate) fn is_special(&self) -> bool {
        let sass = self.sass.iter().chain(&self.grouped).map(|arch| arch.variant());
        sass.chain(self.ptx.iter().map(|(arch, _)| arch.variant())).all(|variant| variant != Variant::Plain)
    }

    pub(crate) fn has_plain_ptx(&self) -> bool {
        self.ptx.iter().any(|(arch, _)| arch.variant() == Variant::Plain)
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
        // The library chooses among its bare cubins, so that together they are one module.
        if !self.bare_cubins.is_empty() {
            let mut sass: Vec<SmArch> = self.bare_cubins.iter().map(|cubin| cubin.arch).collect();
            sass.sort_unstable();
            sass.dedup();
            all.push(Some(ModuleTargets { sass, ..ModuleTargets::default() }));
        }
        if all.is_empty() && !parts.is_empty() {
            all.push(Some(ModuleTargets { ptx: parts, ..ModuleTargets::default() }));
        }
        all
    }

    /// PTX that the driver links again if a device-linked module has no SASS for a GPU.
    pub fn linked_ptx(&self) -> Vec<(PtxArch, PtxIsa)> {
        let parts = self.relocatable.iter().filter_map(|module| module.targets(&[]));
        let mut ptx: Vec<_> = parts.flat_map(|targets| targets.ptx).collect();
        ptx.sort_unstable();
        ptx.dedup();
        ptx
    }
}

impl Module {
    /// The targets with the PTX of its parts; none if everything is linked later.
    fn targets(&self, parts: &[(PtxArch, PtxIsa)]) -> Option<ModuleTargets> {
        let mut targets = ModuleTargets { ptx: parts.to_vec(), ..ModuleTargets::default() };
        for entry in &self.entries {
            match entry.target {
                Some(CodeTarget::Sass(arch)) => targets.sass.push(arch),
                Some(CodeTarget::Ptx(arch)) => targets.ptx.extend(entry.ptx_isa().map(|isa| (arch, isa))),
                _ => {}
            }
            targets.grouped.extend(entry.members.iter().filter_map(|member| match member.target {
                CodeTarget::Sass(arch) => Some(arch),
                _ => None,
            }));
        }
        for list in [&mut targets.sass, &mut targets.grouped] {
            list.sort_unstable();
            list.dedup();
        }
        targets.ptx.sort_unstable();
        targets.ptx.dedup();
        // A module without known targets still has to be loaded, such as one that was slimmed to nothing.
        let loadable = |entry: &FatbinEntry| {
            matches!(entry.kind, EntryKind::Cubin | EntryKind::Ptx | EntryKind::Group) && !entry.is_lto()
        };
        (!parts.is_empty() || self.entries.iter().any(loadable)).then_some(targets)
    }
}
