//! Removing code for cards a program will never meet.
//!
//! Nothing that is kept changes its content. In each container the entries to keep are moved to its front, its size is
//! set to theirs, and the rest of its room is zeroed: the container stays where it was, so every pointer to it holds.
//! Zeroed pages become holes in the file, and cost nothing on disk, in an image layer or on the wire.

mod compact;
mod patch;
mod tree;
mod wheel;
mod write;

use std::collections::BTreeMap;

use crate::container::{Arch, Entry, EntryKind, Module};
use crate::read::{Binary, read};

pub use compact::CompactError;
pub use patch::Patch;
pub use tree::{Job, Output, Slimmed, slim};
pub use write::{SlimError, in_memory};

/// A piece of code that a card may load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Machine code.
    Sass(Arch),
    /// PTX.
    Ptx(Arch),
}

/// What is removed from a file.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Bytes of GPU code in the file, headers included.
    pub before: u64,
    /// Bytes of it that stay.
    pub after: u64,
    /// Bytes removed, by target.
    pub removed: BTreeMap<String, u64>,
    /// What to write where.
    pub patches: Vec<Patch>,
    /// Modules that no target can load.
    pub emptied: usize,
    /// How many modules each target can load.
    pub loadable: Vec<u64>,
    /// How many modules each of the other cards could load and cannot any more.
    pub lost: Vec<u64>,
    /// What must be listed afterwards, module by module.
    kept: Vec<Vec<Signature>>,
    /// Set where nothing is changed, so that nothing needs proof.
    trusted: bool,
}

/// What of an entry must not change. Its place may.
type Signature = (EntryKind, Option<Arch>, u64, u64, u64);

fn signature(entry: &Entry) -> Signature {
    (entry.kind, entry.arch, entry.flags, entry.stored, entry.bytes)
}

impl Plan {
    /// The same file with nothing removed, of which nothing is asked.
    fn untouched(plan: &Plan) -> Plan {
        Plan { before: plan.before, after: plan.before, trusted: true, ..Plan::default() }
    }

    /// Whether slimmed bytes list exactly what was to be kept. A file whose own tables lie in the code that went, say,
    /// does not.
    fn is_proven_by(&self, slimmed: &[u8]) -> bool {
        let of = |module: &Module| -> Vec<Signature> {
            module.entries.iter().filter(|entry| !entry.is_stand_in()).map(signature).collect()
        };
        self.trusted
            || read(slimmed).is_ok_and(|binary| binary.modules.iter().map(of).eq(self.kept.iter().cloned()))
    }
}

/// Decides, module by module, what stays: what the driver would load on one of the targets, which is the machine code
/// that ranks highest there, or all PTX that fits where there is none; and what is neither, which this cannot judge.
/// `rank` says how well a target, by its number, loads a piece of code (see [`Job::rank`]).
pub fn plan(
    binary: &Binary,
    bytes: &[u8],
    targets: usize,
    rank: &dyn Fn(usize, Code) -> Option<u32>,
) -> Plan {
    plan_and_tell(binary, bytes, targets, rank, 0, &|_, _| false)
}

/// The same, and tells for other cards how many modules they could load and cannot any more.
fn plan_and_tell(
    binary: &Binary,
    bytes: &[u8],
    targets: usize,
    rank: &dyn Fn(usize, Code) -> Option<u32>,
    cards: usize,
    loads: &dyn Fn(usize, Code) -> bool,
) -> Plan {
    let mut plan = Plan { lost: vec![0; cards], loadable: vec![0; targets], ..Plan::default() };
    for module in &binary.modules {
        let kept = kept(module, targets, rank);
        for (target, loadable) in plan.loadable.iter_mut().enumerate() {
            let loads = |entry: &Entry| codes(entry).any(|code| rank(target, code).is_some());
            *loadable += u64::from(module.entries.iter().any(loads));
        }
        let size: u64 = module.entries.iter().map(Entry::size).sum();
        let stays: u64 =
            module.entries.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(entry, _)| entry.size()).sum();
        plan.before += size;
        plan.after += stays;
        let entries = module.entries.iter().zip(&kept).filter(|(entry, kept)| **kept && !entry.is_stand_in());
        plan.kept.push(entries.map(|(entry, _)| signature(entry)).collect());
        if kept.iter().all(|kept| *kept) {
            continue;
        }
        plan.emptied += usize::from(stays == 0);
        for (card, lost) in plan.lost.iter_mut().enumerate() {
            let loadable = |entry: &Entry| codes(entry).any(|code| loads(card, code));
            let before = module.entries.iter().any(loadable);
            let after = module.entries.iter().zip(&kept).any(|(entry, kept)| *kept && loadable(entry));
            *lost += u64::from(before && !after);
        }
        for (entry, _) in module.entries.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            *plan.removed.entry(name(entry)).or_default() += entry.size();
        }
        plan.patches.extend(patch::module(module, &kept, bytes));
    }
    // Sections need not lie in the order of their table.
    plan.patches.sort_by_key(|patch| patch.offset);
    plan
}

/// What cards may load of an entry.
fn codes(entry: &Entry) -> impl Iterator<Item = Code> {
    let own = match entry.kind {
        _ if entry.is_lto() => None,
        EntryKind::Ptx => entry.arch.map(Code::Ptx),
        EntryKind::Cubin => entry.arch.map(Code::Sass),
        _ => None,
    };
    own.into_iter().chain(entry.members.iter().map(|member| Code::Sass(member.arch)))
}

fn name(entry: &Entry) -> String {
    match (entry.kind, entry.arch) {
        (EntryKind::Ptx, Some(arch)) => format!("compute_{arch}"),
        (_, Some(arch)) => format!("sm_{arch}"),
        (_, None) => {
            entry.members.iter().map(|member| format!("sm_{}", member.arch)).collect::<Vec<_>>().join("+")
        }
    }
}

/// Which entries of a module stay.
fn kept(module: &Module, targets: usize, rank: &dyn Fn(usize, Code) -> Option<u32>) -> Vec<bool> {
    let sass = |entry: &Entry, target: usize| {
        codes(entry).filter(|code| matches!(code, Code::Sass(_))).filter_map(|code| rank(target, code)).max()
    };
    let ptx = |entry: &Entry, target: usize| {
        codes(entry).any(|code| matches!(code, Code::Ptx(_)) && rank(target, code).is_some())
    };
    // What is neither machine code nor PTX has no substitute in the module; what stands in already costs nothing.
    let judged = |entry: &Entry| {
        matches!(entry.kind, EntryKind::Cubin | EntryKind::Ptx | EntryKind::Group)
            && !entry.is_lto()
            && !entry.is_stand_in()
    };
    // The driver takes the closest machine code: what ranks lower on every target is never loaded.
    let best: Vec<Option<u32>> = (0..targets)
        .map(|target| module.entries.iter().filter_map(|entry| sass(entry, target)).max())
        .collect();
    let stays = |entry: &Entry| {
        !judged(entry)
            || best.iter().enumerate().any(|(target, best)| match best {
                Some(best) => sass(entry, target) == Some(*best),
                None => ptx(entry, target),
            })
    };
    module.entries.iter().map(stays).collect()
}
