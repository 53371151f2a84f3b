//! What a file's GPU code comes down to.

use std::collections::BTreeMap;

use crate::container::{Arch, Entry, EntryKind, Module, Variant};
use crate::read::Binary;

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

/// One sentence about what runs where, such as `covers sm_75 sm_90; no PTX: nothing newer than sm_90 will run`.
pub fn sentence(lines: &[Line]) -> String {
    let of = |kind: CodeKind| -> Vec<Arch> {
        let mut archs: Vec<Arch> =
            lines.iter().filter(|line| line.kind == kind).map(|line| line.arch).collect();
        archs.sort();
        archs.dedup();
        archs
    };
    let named = |prefix: &str, archs: &[Arch]| -> String {
        archs.iter().map(|arch| format!("{prefix}{arch}")).collect::<Vec<_>>().join(" ")
    };
    let (sass, ptx, ir) = (of(CodeKind::Sass), of(CodeKind::Ptx), of(CodeKind::Ir));
    let newest = sass.iter().max_by_key(|arch| arch.number);
    // PTX for one card alone does not carry to newer ones.
    let carries = ptx.iter().rev().find(|arch| arch.variant == Variant::Plain);
    match (newest, carries) {
        (None, _) if ptx.is_empty() && ir.is_empty() => "no GPU code".to_owned(),
        (None, _) if ptx.is_empty() => {
            "intermediate code alone: what it runs on is decided when it is linked".to_owned()
        }
        (None, _) => format!("PTX alone ({}): cards compile it at first use", named("compute_", &ptx)),
        (Some(newest), None) => {
            format!(
                "covers {}; no PTX: nothing newer than sm_{} will run",
                named("sm_", &sass),
                newest.number
            )
        }
        (Some(_), Some(carries)) => {
            format!(
                "covers {}; newer cards compile its compute_{carries} PTX at first use",
                named("sm_", &sass)
            )
        }
    }
}
