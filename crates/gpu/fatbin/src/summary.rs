//! Summarizes the GPU code of a file.

use std::collections::{BTreeMap, BTreeSet};

use cudock_facts::version::{PtxArch, PtxIsa, SmArch, Variant};

use crate::bare::BareCubin;
use crate::code_target::CodeTarget;
use crate::container::{EntryKind, Module};
use crate::read::Binary;
use crate::targets::ModuleTargets;

/// Totals for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSummary {
    pub target: CodeTarget,
    pub ptx_isa: Option<PtxIsa>,
    /// The number of entries, including members of groups.
    pub count: u64,
    /// The stored size. Members of a group get a share of its stored size.
    pub stored: u64,
    pub bytes: u64,
}

impl Binary {
    /// The totals by kind and target.
    pub fn lines(&self) -> Vec<CodeSummary> {
        self.lines_where(|_| true, |_| true)
    }

    /// The totals of one section: NVIDIA's own tools only list `.nv_fatbin`.
    pub fn lines_in(&self, section: &str) -> Vec<CodeSummary> {
        self.lines_where(|module| module.section == section, |cubin| cubin.section == section)
    }

    /// The number of modules and bare cubins by section.
    pub fn sections(&self) -> BTreeMap<String, u64> {
        let mut sections = BTreeMap::new();
        let bare = self.bare_cubins.iter().map(|cubin| &cubin.section);
        for section in self.modules.iter().map(|module| &module.section).chain(bare) {
            *sections.entry(section.clone()).or_default() += 1;
        }
        sections
    }

    fn lines_where(
        &self,
        counts: impl Fn(&Module) -> bool,
        counts_bare: impl Fn(&BareCubin) -> bool,
    ) -> Vec<CodeSummary> {
        let mut lines: BTreeMap<(CodeTarget, Option<PtxIsa>), CodeSummary> = BTreeMap::new();
        let mut add = |target, ptx_isa, stored, bytes| {
            let empty = CodeSummary { target, ptx_isa, count: 0, stored: 0, bytes: 0 };
            let line = lines.entry((target, ptx_isa)).or_insert(empty);
            line.count += 1;
            // Sizes are claims, which may be absurd.
            line.stored = line.stored.saturating_add(stored);
            line.bytes = line.bytes.saturating_add(bytes);
        };
        for entry in self.modules.iter().filter(|module| counts(module)).flat_map(|module| &module.entries) {
            if let Some(target) = entry.target.filter(|_| !entry.is_placeholder()) {
                add(target, entry.ptx_isa(), entry.stored, entry.bytes);
            }
            let decompressed =
                entry.members.iter().fold(0_u64, |sum, member| sum.saturating_add(member.bytes));
            for member in &entry.members {
                let share =
                    u128::from(entry.stored) * u128::from(member.bytes) / u128::from(decompressed.max(1));
                add(member.target, None, u64::try_from(share).unwrap_or(u64::MAX), member.bytes);
            }
        }
        for cubin in self.bare_cubins.iter().filter(|cubin| counts_bare(cubin)) {
            add(CodeTarget::Sass(cubin.arch), None, cubin.stored, cubin.bytes);
        }
        if let Some(cubin) = &self.cubin {
            add(CodeTarget::Sass(cubin.arch), None, 0, 0);
        }
        lines.into_values().collect()
    }

    /// The number of unknown kinds and flags.
    pub fn unknown(&self) -> BTreeMap<String, u64> {
        let mut unknown = BTreeMap::new();
        for entry in self.modules.iter().flat_map(|module| &module.entries) {
            if let EntryKind::Unknown(kind) = entry.kind {
                *unknown.entry(format!("kind {kind:#x}")).or_default() += 1;
            }
            if entry.unknown_flags() != 0 {
                *unknown.entry(format!("flags {:#x}", entry.unknown_flags())).or_default() += 1;
            }
        }
        unknown
    }
}

/// The GPUs that the modules of one or more files run on.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    modules: Vec<ModuleTargets>,
    intermediate: bool,
}

impl Coverage {
    pub fn of(binary: &Binary) -> Self {
        let intermediate = binary.lines().iter().any(|line| matches!(line.target, CodeTarget::Ir(_)));
        Self { modules: binary.targets().into_iter().flatten().collect(), intermediate }
    }

    /// Adds the modules of another file.
    pub fn add(&mut self, other: &Coverage) {
        self.modules.extend(other.modules.iter().cloned());
        self.intermediate |= other.intermediate;
    }

    /// A summary, such as `covers sm_75 sm_90; no PTX: nothing newer than sm_90 will run`.
    pub fn sentence(&self) -> String {
        let modules = || self.modules.iter();
        let sass: BTreeSet<SmArch> =
            modules().flat_map(|module| module.sass.iter().chain(&module.grouped)).copied().collect();
        let ptx: BTreeSet<PtxArch> =
            modules().flat_map(|module| module.ptx.iter().map(|(arch, _)| *arch)).collect();
        let Some(newest) = sass.last().map(|arch| arch.capability().number()) else {
            return match (ptx.is_empty(), self.intermediate) {
                (true, false) => "no GPU code".to_owned(),
                (true, true) => "only intermediate code: linking decides what it runs on".to_owned(),
                (false, _) => {
                    format!("only PTX ({}): GPUs compile it on first use", list(&ptx))
                }
            };
        };
        let covers = format!("covers {}", list(&sass));
        // PTX for a specific architecture does not run on newer GPUs.
        let Some(newest_ptx) = ptx.iter().rev().find(|arch| arch.variant() == Variant::Plain) else {
            return format!("{covers}; no PTX: nothing newer than sm_{newest} will run");
        };
        let general: Vec<&ModuleTargets> =
            self.modules.iter().filter(|module| !module.is_special()).collect();
        let with_ptx = general.iter().filter(|module| module.has_plain_ptx()).count();
        match (with_ptx, general.len()) {
            (with_ptx, all) if with_ptx == all => {
                format!("{covers}; newer GPUs compile its {newest_ptx} PTX on first use")
            }
            (with_ptx, all) if with_ptx * 2 >= all => format!(
                "{covers}; newer GPUs compile its {newest_ptx} PTX on first use, but {} of {all} modules have none",
                all - with_ptx
            ),
            (with_ptx, all) => format!(
                "{covers}; only {with_ptx} of {all} modules have PTX ({newest_ptx}): most will not run on anything newer than sm_{newest}"
            ),
        }
    }
}

fn list(targets: &BTreeSet<impl ToString>) -> String {
    targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
