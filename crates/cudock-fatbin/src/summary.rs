//! Summarizes the GPU code of a file.

use std::collections::{BTreeMap, BTreeSet};

use crate::container::{Arch, EntryKind, FatbinEntry, Module, Variant};
use crate::read::Binary;
use crate::targets::ModuleTargets;

/// Totals for one kind and target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSummary {
    /// The kind of code.
    pub kind: CodeKind,
    /// The architecture.
    pub arch: Arch,
    /// The PTX version.
    pub ptx_isa: Option<(u16, u16)>,
    /// The number of entries, including members of groups.
    pub count: u64,
    /// The stored size. Members of a group get a share of its stored size.
    pub stored: u64,
    /// The decompressed size.
    pub bytes: u64,
}

/// The kind of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeKind {
    /// SASS.
    Sass,
    /// PTX.
    Ptx,
    /// Intermediate code for link-time optimization at run time.
    Ir,
    /// Unknown code.
    Unknown,
}

impl CodeSummary {
    /// `sm_90a`, `compute_120`, `lto_89`.
    pub fn target(&self) -> String {
        let prefix = match self.kind {
            CodeKind::Sass => "sm_",
            CodeKind::Ptx => "compute_",
            CodeKind::Ir => "lto_",
            CodeKind::Unknown => "unknown_",
        };
        format!("{prefix}{}", self.arch)
    }
}

/// The key of a total.
type Key = (CodeKind, Arch, Option<(u16, u16)>);

impl CodeKind {
    fn of(entry: &FatbinEntry) -> Self {
        match entry.kind {
            _ if entry.is_lto() => CodeKind::Ir,
            EntryKind::Ptx => CodeKind::Ptx,
            EntryKind::Cubin | EntryKind::Group => CodeKind::Sass,
            EntryKind::Ir => CodeKind::Ir,
            EntryKind::Unknown(_) => CodeKind::Unknown,
        }
    }
}

impl Binary {
    /// The totals by kind and target.
    pub fn lines(&self) -> Vec<CodeSummary> {
        self.lines_where(|_| true)
    }

    /// The totals of one section: NVIDIA's own tools only list `.nv_fatbin`.
    pub fn lines_in(&self, section: &str) -> Vec<CodeSummary> {
        self.lines_where(|module| module.section == section)
    }

    /// The number of modules by section.
    pub fn sections(&self) -> BTreeMap<String, u64> {
        let mut sections = BTreeMap::new();
        for module in &self.modules {
            *sections.entry(module.section.clone()).or_default() += 1;
        }
        sections
    }

    fn lines_where(&self, counts: impl Fn(&Module) -> bool) -> Vec<CodeSummary> {
        let mut lines: BTreeMap<Key, (u64, u64, u64)> = BTreeMap::new();
        let mut add = |kind, arch, isa, stored, bytes| {
            let line: &mut (u64, u64, u64) = lines.entry((kind, arch, isa)).or_default();
            line.0 += 1;
            // Sizes are claims, which may be absurd.
            line.1 = line.1.saturating_add(stored);
            line.2 = line.2.saturating_add(bytes);
        };
        for entry in self.modules.iter().filter(|module| counts(module)).flat_map(|module| &module.entries) {
            let kind = CodeKind::of(entry);
            if let Some(arch) = entry.arch.filter(|_| !entry.is_placeholder()) {
                add(kind, arch, (kind == CodeKind::Ptx).then_some(entry.version), entry.stored, entry.bytes);
            }
            let decompressed =
                entry.members.iter().fold(0_u64, |sum, member| sum.saturating_add(member.bytes));
            for member in &entry.members {
                let share =
                    u128::from(entry.stored) * u128::from(member.bytes) / u128::from(decompressed.max(1));
                add(kind, member.arch, None, u64::try_from(share).unwrap_or(u64::MAX), member.bytes);
            }
        }
        if let Some(cubin) = &self.cubin {
            add(CodeKind::Sass, cubin.arch, None, 0, 0);
        }
        let line = |((kind, arch, ptx_isa), (count, stored, bytes))| CodeSummary {
            kind,
            arch,
            ptx_isa,
            count,
            stored,
            bytes,
        };
        lines.into_iter().map(line).collect()
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
    /// The coverage of a file.
    pub fn of(binary: &Binary) -> Self {
        let intermediate = binary.lines().iter().any(|line| line.kind == CodeKind::Ir);
        Self { modules: binary.targets().into_iter().flatten().collect(), intermediate }
    }

    /// Adds the modules of another file.
    pub fn add(&mut self, other: &Coverage) {
        self.modules.extend(other.modules.iter().cloned());
        self.intermediate |= other.intermediate;
    }

    /// A summary, such as `covers sm_75 sm_90; no PTX: nothing newer than sm_90 will run`.
    pub fn sentence(&self) -> String {
        let sass = sorted(self.modules.iter().flat_map(|module| module.sass.iter().chain(&module.grouped)));
        let ptx = sorted(self.modules.iter().flat_map(|module| module.ptx.iter().map(|(arch, _)| arch)));
        let Some(newest) = sass.iter().max_by_key(|arch| arch.number) else {
            return match (ptx.is_empty(), self.intermediate) {
                (true, false) => "no GPU code".to_owned(),
                (true, true) => "only intermediate code: linking decides what it runs on".to_owned(),
                (false, _) => {
                    format!("only PTX ({}): GPUs compile it on first use", named("compute_", &ptx))
                }
            };
        };
        let covers = format!("covers {}", named("sm_", &sass));
        // PTX for a specific architecture does not run on newer GPUs.
        let Some(newest_ptx) = ptx.iter().rev().find(|arch| arch.variant == Variant::Plain) else {
            return format!("{covers}; no PTX: nothing newer than sm_{} will run", newest.number);
        };
        let general: Vec<&ModuleTargets> =
            self.modules.iter().filter(|module| !module.is_special()).collect();
        let with_ptx = general.iter().filter(|module| module.has_plain_ptx()).count();
        match (with_ptx, general.len()) {
            (with_ptx, all) if with_ptx == all => {
                format!("{covers}; newer GPUs compile its compute_{newest_ptx} PTX on first use")
            }
            (with_ptx, all) if with_ptx * 2 >= all => format!(
                "{covers}; newer GPUs compile its compute_{newest_ptx} PTX on first use, but {} of {all} modules have none",
                all - with_ptx
            ),
            (with_ptx, all) => format!(
                "{covers}; only {with_ptx} of {all} modules have PTX (compute_{newest_ptx}): most will not run on anything newer than sm_{}",
                newest.number
            ),
        }
    }
}

fn sorted<'a>(archs: impl Iterator<Item = &'a Arch>) -> Vec<Arch> {
    let archs: BTreeSet<Arch> = archs.copied().collect();
    archs.into_iter().collect()
}

fn named(prefix: &str, archs: &[Arch]) -> String {
    archs.iter().map(|arch| format!("{prefix}{arch}")).collect::<Vec<_>>().join(" ")
}
