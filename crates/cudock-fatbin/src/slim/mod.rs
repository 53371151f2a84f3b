//! Removes code for GPUs that a program will not run on.
//!
//! Kept entries are not changed. In each container they are moved to the front, the size is updated, and the rest is
//! zeroed: the container stays in place, so that all pointers to it remain valid. Zeroed pages become holes in the file,
//! which cost nothing on disk, in an image layer or in transfers.

mod compact;
mod patch;
mod tree;
mod wheel;
mod write;

use std::collections::BTreeMap;

use crate::container::{Arch, EntryKind, FatbinEntry, Module};
use crate::read::{Binary, read};

pub use compact::CompactError;
pub use patch::Patch;
pub use tree::{SlimJob, SlimOutput, Slimmed, slim};
pub use write::{SlimError, in_memory};

/// A piece of code that a GPU may load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuCode {
    /// SASS.
    Sass(Arch),
    /// PTX.
    Ptx(Arch),
}

/// What to remove from a file.
#[derive(Debug, Clone, Default)]
pub struct SlimPlan {
    /// The size of GPU code in the file, including headers.
    pub before: u64,
    /// The size that remains.
    pub after: u64,
    /// The removed size by target.
    pub removed: BTreeMap<String, u64>,
    /// The changes to the file.
    pub patches: Vec<Patch>,
    /// The number of modules that no target can load.
    pub emptied: usize,
    /// The number of modules that each target can load.
    pub loadable: Vec<u64>,
    /// The number of modules that each of the other GPUs could load before, but not after.
    pub lost: Vec<u64>,
    /// The expected entries of each module afterwards.
    kept: Vec<Vec<Signature>>,
    /// Set if nothing is changed, so that no verification is needed.
    trusted: bool,
}

/// The properties of an entry that must not change; its offset may.
type Signature = (EntryKind, Option<Arch>, u64, u64, u64);

fn signature(entry: &FatbinEntry) -> Signature {
    (entry.kind, entry.arch, entry.flags, entry.stored, entry.bytes)
}

impl SlimPlan {
    /// The same file with nothing removed.
    fn unchanged(plan: &SlimPlan) -> SlimPlan {
        SlimPlan { before: plan.before, after: plan.before, trusted: true, ..SlimPlan::default() }
    }

    /// Verifies that slimmed bytes contain exactly what was to be kept. This fails, for example, if the file's own tables are
    /// inside of removed code.
    fn is_verified_by(&self, slimmed: &[u8]) -> bool {
        let of = |module: &Module| -> Vec<Signature> {
            module.entries.iter().filter(|entry| !entry.is_placeholder()).map(signature).collect()
        };
        self.trusted
            || read(slimmed).is_ok_and(|binary| binary.modules.iter().map(of).eq(self.kept.iter().cloned()))
    }
}

/// Decides for each module what stays: the code that the driver would load on one of the targets, which is the SASS with the
/// highest rank, or all suitable PTX if there is none; and code of unknown kind. `rank` returns how well a target, by index,
/// loads a piece of code (see [`SlimJob::rank`]).
pub fn plan(
    binary: &Binary,
    bytes: &[u8],
    targets: usize,
    rank: &dyn Fn(usize, GpuCode) -> Option<u32>,
) -> SlimPlan {
    plan_with_losses(binary, bytes, targets, rank, 0, &|_, _| false)
}

/// Like [`plan`], and counts for other GPUs the modules that they can no longer load.
fn plan_with_losses(
    binary: &Binary,
    bytes: &[u8],
    targets: usize,
    rank: &dyn Fn(usize, GpuCode) -> Option<u32>,
    gpus: usize,
    can_load: &dyn Fn(usize, GpuCode) -> bool,
) -> SlimPlan {
    let mut plan = SlimPlan { lost: vec![0; gpus], loadable: vec![0; targets], ..SlimPlan::default() };
    for module in &binary.modules {
        let kept = kept(module, targets, rank);
        for (target, loadable) in plan.loadable.iter_mut().enumerate() {
            let can_load = |entry: &FatbinEntry| codes(entry).any(|code| rank(target, code).is_some());
            *loadable += u64::from(module.entries.iter().any(can_load));
        }
        let size: u64 = module.entries.iter().map(FatbinEntry::size).sum();
        let stays: u64 =
            module.entries.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(entry, _)| entry.size()).sum();
        plan.before += size;
        plan.after += stays;
        let entries =
            module.entries.iter().zip(&kept).filter(|(entry, kept)| **kept && !entry.is_placeholder());
        plan.kept.push(entries.map(|(entry, _)| signature(entry)).collect());
        if kept.iter().all(|kept| *kept) {
            continue;
        }
        plan.emptied += usize::from(stays == 0);
        for (gpu, lost) in plan.lost.iter_mut().enumerate() {
            let loadable = |entry: &FatbinEntry| codes(entry).any(|code| can_load(gpu, code));
            let before = module.entries.iter().any(loadable);
            let after = module.entries.iter().zip(&kept).any(|(entry, kept)| *kept && loadable(entry));
            *lost += u64::from(before && !after);
        }
        for (entry, _) in module.entries.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            *plan.removed.entry(name(entry)).or_default() += entry.size();
        }
        plan.patches.extend(patch::module(module, &kept, bytes));
    }
    // Sections need not be in the order of their table.
    plan.patches.sort_by_key(|patch| patch.offset);
    plan
}

/// The code in an entry.
fn codes(entry: &FatbinEntry) -> impl Iterator<Item = GpuCode> {
    let own = match entry.kind {
        _ if entry.is_lto() => None,
        EntryKind::Ptx => entry.arch.map(GpuCode::Ptx),
        EntryKind::Cubin => entry.arch.map(GpuCode::Sass),
        _ => None,
    };
    own.into_iter().chain(entry.members.iter().map(|member| GpuCode::Sass(member.arch)))
}

fn name(entry: &FatbinEntry) -> String {
    match (entry.kind, entry.arch) {
        (EntryKind::Ptx, Some(arch)) => format!("compute_{arch}"),
        (_, Some(arch)) => format!("sm_{arch}"),
        (_, None) => {
            entry.members.iter().map(|member| format!("sm_{}", member.arch)).collect::<Vec<_>>().join("+")
        }
    }
}

/// Which entries of a module stay.
fn kept(module: &Module, targets: usize, rank: &dyn Fn(usize, GpuCode) -> Option<u32>) -> Vec<bool> {
    let sass = |entry: &FatbinEntry, target: usize| {
        codes(entry)
            .filter(|code| matches!(code, GpuCode::Sass(_)))
            .filter_map(|code| rank(target, code))
            .max()
    };
    let ptx = |entry: &FatbinEntry, target: usize| {
        codes(entry).any(|code| matches!(code, GpuCode::Ptx(_)) && rank(target, code).is_some())
    };
    // Entries that are neither SASS nor PTX have no substitute; placeholders cost nothing.
    let judged = |entry: &FatbinEntry| {
        matches!(entry.kind, EntryKind::Cubin | EntryKind::Ptx | EntryKind::Group)
            && !entry.is_lto()
            && !entry.is_placeholder()
    };
    // The driver loads the closest SASS: what ranks lower on every target is never loaded.
    let best: Vec<Option<u32>> = (0..targets)
        .map(|target| module.entries.iter().filter_map(|entry| sass(entry, target)).max())
        .collect();
    let stays = |entry: &FatbinEntry| {
        !judged(entry)
            || best.iter().enumerate().any(|(target, best)| match best {
                Some(best) => sass(entry, target) == Some(*best),
                None => ptx(entry, target),
            })
    };
    module.entries.iter().map(stays).collect()
}
