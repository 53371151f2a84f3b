//! What each module of a file can be loaded from: the one account that `inspect` and `check` both rest on.

use crate::container::{Arch, Entry, EntryKind, Module, Variant};
use crate::read::Binary;

/// What PTX is for, and its ISA version.
pub type PtxTarget = (Arch, (u16, u16));

/// The targets of one module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// Machine code.
    pub sass: Vec<Arch>,
    /// Machine code in groups (`nvcc --concat`), which older drivers do not open.
    pub grouped: Vec<Arch>,
    /// PTX with its ISA version, including that of the parts a device-linked module was made of.
    pub ptx: Vec<PtxTarget>,
}

impl Targets {
    /// Whether it was made for some cards alone: it has nothing but `a` and `f` targets.
    pub(crate) fn is_special(&self) -> bool {
        let mut archs = self.sass.iter().chain(&self.grouped).chain(self.ptx.iter().map(|(arch, _)| arch));
        archs.all(|arch| arch.variant != Variant::Plain)
    }

    pub(crate) fn has_plain_ptx(&self) -> bool {
        self.ptx.iter().any(|(arch, _)| arch.variant == Variant::Plain)
    }
}

impl Binary {
    /// The targets of each module, in the order of the file; none for a module that holds nothing but code for a later
    /// link. A bare cubin is one module; parts that were never linked count as one, too.
    pub fn targets(&self) -> Vec<Option<Targets>> {
        let parts = self.linked_ptx();
        let mut all: Vec<Option<Targets>> = self
            .modules
            .iter()
            .map(|module| module.targets(if module.device_linked { &parts } else { &[] }))
            .collect();
        all.extend(
            self.cubin.as_ref().map(|cubin| Some(Targets { sass: vec![cubin.arch], ..Targets::default() })),
        );
        if all.is_empty() && !parts.is_empty() {
            all.push(Some(Targets { ptx: parts, ..Targets::default() }));
        }
        all
    }

    /// PTX that the driver links again where a device-linked module has no machine code for a card.
    pub fn linked_ptx(&self) -> Vec<PtxTarget> {
        let parts = self.relocatable.iter().filter_map(|module| module.targets(&[]));
        let mut ptx: Vec<PtxTarget> = parts.flat_map(|targets| targets.ptx).collect();
        ptx.sort_unstable();
        ptx.dedup();
        ptx
    }
}

impl Module {
    /// Its targets, with the PTX of its parts; none if all it holds is linked later.
    fn targets(&self, parts: &[PtxTarget]) -> Option<Targets> {
        let mut targets = Targets { ptx: parts.to_vec(), ..Targets::default() };
        for entry in self.entries.iter().filter(|entry| !entry.is_lto() && !entry.is_stand_in()) {
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
        // What was slimmed away still has to be loaded by someone.
        let emptied = self.entries.iter().any(Entry::is_stand_in);
        (emptied || targets != Targets::default()).then_some(targets)
    }
}
