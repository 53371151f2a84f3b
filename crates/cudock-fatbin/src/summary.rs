//! What a file's GPU code comes down to.

use std::collections::{BTreeMap, BTreeSet};

use crate::container::{Arch, Entry, EntryKind, Module, Variant};
use crate::read::Binary;
use crate::targets::Targets;

/// Entries of one kind for one target, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub kind: CodeKind,
    /// What it is for.
    pub arch: Arch,
    /// PTX's version.
    pub ptx_isa: Option<(u16, u16)>,
    /// How many entries; members of groups count as entries.
    pub count: u64,
    /// Bytes they take in the file. Members of a group share what the group takes, by their size.
    pub stored: u64,
    /// Their size when opened.
    pub bytes: u64,
}

/// What kind of code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeKind {
    /// Machine code.
    Sass,
    /// PTX.
    Ptx,
    /// Intermediate code for linking at run time.
    Ir,
    /// Something that has not been seen before.
    Unknown,
}

impl Line {
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

/// What entries are counted by.
type Key = (CodeKind, Arch, Option<(u16, u16)>);

impl CodeKind {
    fn of(entry: &Entry) -> Self {
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
    /// The code by kind and target.
    pub fn lines(&self) -> Vec<Line> {
        self.lines_where(|_| true)
    }

    /// The code by kind and target in one section: NVIDIA's own tools list `.nv_fatbin` alone.
    pub fn lines_in(&self, section: &str) -> Vec<Line> {
        self.lines_where(|module| module.section == section)
    }

    /// The sections that hold modules, and how many each.
    pub fn sections(&self) -> BTreeMap<String, u64> {
        let mut sections = BTreeMap::new();
        for module in &self.modules {
            *sections.entry(module.section.clone()).or_default() += 1;
        }
        sections
    }

    fn lines_where(&self, counts: impl Fn(&Module) -> bool) -> Vec<Line> {
        let mut lines: BTreeMap<Key, (u64, u64, u64)> = BTreeMap::new();
        let mut add = |kind, arch, isa, stored, bytes| {
            let line: &mut (u64, u64, u64) = lines.entry((kind, arch, isa)).or_default();
            line.0 += 1;
            // Sizes are claims, and claims may be absurd.
            line.1 = line.1.saturating_add(stored);
            line.2 = line.2.saturating_add(bytes);
        };
        for entry in self.modules.iter().filter(|module| counts(module)).flat_map(|module| &module.entries) {
            let kind = CodeKind::of(entry);
            if let Some(arch) = entry.arch.filter(|_| !entry.is_stand_in()) {
                add(kind, arch, (kind == CodeKind::Ptx).then_some(entry.version), entry.stored, entry.bytes);
            }
            let opened = entry.members.iter().fold(0_u64, |sum, member| sum.saturating_add(member.bytes));
            for member in &entry.members {
                let share = u128::from(entry.stored) * u128::from(member.bytes) / u128::from(opened.max(1));
                add(kind, member.arch, None, u64::try_from(share).unwrap_or(u64::MAX), member.bytes);
            }
        }
        if let Some(cubin) = &self.cubin {
            add(CodeKind::Sass, cubin.arch, None, 0, 0);
        }
        let line = |((kind, arch, ptx_isa), (count, stored, bytes))| Line {
            kind,
            arch,
            ptx_isa,
            count,
            stored,
            bytes,
        };
        lines.into_iter().map(line).collect()
    }

    /// How often each unknown kind and flag was met.
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

/// What the modules of one or more files run on.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    modules: Vec<Targets>,
    intermediate: bool,
}

impl Coverage {
    /// What a file runs on.
    pub fn of(binary: &Binary) -> Self {
        let intermediate = binary.lines().iter().any(|line| line.kind == CodeKind::Ir);
        Self { modules: binary.targets().into_iter().flatten().collect(), intermediate }
    }

    /// Adds the modules of another file.
    pub fn add(&mut self, other: &Coverage) {
        self.modules.extend(other.modules.iter().cloned());
        self.intermediate |= other.intermediate;
    }

    /// One sentence about what runs where, such as `covers sm_75 sm_90; no PTX: nothing newer than sm_90 will run`.
    pub fn sentence(&self) -> String {
        let sass = sorted(self.modules.iter().flat_map(|module| module.sass.iter().chain(&module.grouped)));
        let ptx = sorted(self.modules.iter().flat_map(|module| module.ptx.iter().map(|(arch, _)| arch)));
        let Some(newest) = sass.iter().max_by_key(|arch| arch.number) else {
            return match (ptx.is_empty(), self.intermediate) {
                (true, false) => "no GPU code".to_owned(),
                (true, true) => {
                    "intermediate code alone: what it runs on is decided when it is linked".to_owned()
                }
                (false, _) => {
                    format!("PTX alone ({}): cards compile it at first use", named("compute_", &ptx))
                }
            };
        };
        let covers = format!("covers {}", named("sm_", &sass));
        // PTX for one card alone does not carry to newer ones.
        let Some(newest_ptx) = ptx.iter().rev().find(|arch| arch.variant == Variant::Plain) else {
            return format!("{covers}; no PTX: nothing newer than sm_{} will run", newest.number);
        };
        let general: Vec<&Targets> = self.modules.iter().filter(|module| !module.is_special()).collect();
        let with_ptx = general.iter().filter(|module| module.has_plain_ptx()).count();
        match (with_ptx, general.len()) {
            (with_ptx, all) if with_ptx == all => {
                format!("{covers}; newer cards compile its compute_{newest_ptx} PTX at first use")
            }
            (with_ptx, all) if with_ptx * 2 >= all => format!(
                "{covers}; newer cards compile its compute_{newest_ptx} PTX at first use, and {} of {all} modules have none",
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
