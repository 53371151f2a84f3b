//! Removes code for GPUs that a program will not run on.
//!
//! Kept entries are not changed. In each container they are moved to the front, the size is updated, and the rest is
//! zeroed: the container stays in place, so that all pointers to it remain valid. Zeroed pages become holes in the file,
//! which cost nothing on disk, in an image layer or in transfers.

mod compact;
mod copy;
mod job;
mod patch;
mod tree;
mod wheel;
mod write;

use std::collections::BTreeMap;

use cudock_facts::version::{Capability, SmArch};

use crate::bare::BareCubin;
use crate::code_target::CodeTarget;
use crate::container::{EntryKind, FatbinEntry, Module};
use crate::read::{Binary, read};

pub use compact::CompactError;
pub use job::{SlimJob, Slimmed};
pub use patch::Patch;
pub use tree::{SlimOutput, slim};
pub use wheel::slim_bytes;
pub use write::{SlimError, in_memory};

/// The code to remove from a file.
#[derive(Debug, Clone, Default)]
pub struct SlimPlan {
    /// The size of GPU code in the file, including headers.
    pub before: u64,
    pub after: u64,
    /// The removed size by target.
    pub removed: BTreeMap<String, u64>,
    pub patches: Vec<Patch>,
    /// The number of modules that each target can load.
    pub loadable: Vec<u64>,
    /// The number of modules that each of the other GPUs could load before, but not after.
    pub lost: Vec<u64>,
    /// The expected entries of each module afterwards.
    kept: Vec<Vec<Signature>>,
    /// The expected bare cubins afterwards: their architectures and sizes.
    kept_bare: Vec<(SmArch, u64)>,
    /// Set if nothing is changed, so that no verification is needed.
    trusted: bool,
}

/// The properties of an entry that must not change; its offset may.
type Signature = (EntryKind, Option<CodeTarget>, u64, u64, u64);

fn signature(entry: &FatbinEntry) -> Signature {
    (entry.kind, entry.target, entry.flags, entry.stored, entry.bytes)
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
            || read(slimmed).is_ok_and(|binary| {
                let bare = binary.bare_cubins.iter().map(|cubin| (cubin.arch, cubin.stored));
                binary.modules.iter().map(of).eq(self.kept.iter().cloned())
                    && bare.eq(self.kept_bare.iter().copied())
            })
    }
}

/// Decides for each module what stays: the code that the driver would load on one of the targets, which is the closest SASS,
/// or all suitable PTX if there is none; and code of unknown kind. Counts for `gpus` the modules that they can no longer load.
pub fn plan(binary: &Binary, bytes: &[u8], targets: &[Capability], gpus: &[Capability]) -> SlimPlan {
    let mut plan =
        SlimPlan { lost: vec![0; gpus.len()], loadable: vec![0; targets.len()], ..SlimPlan::default() };
    for module in &binary.modules {
        let kept = kept(module, targets);
        for (target, loadable) in targets.iter().zip(&mut plan.loadable) {
            *loadable += u64::from(module.entries.iter().any(|entry| runs_on(entry, *target)));
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
        for (gpu, lost) in gpus.iter().zip(&mut plan.lost) {
            let before = module.entries.iter().any(|entry| runs_on(entry, *gpu));
            let after = module.entries.iter().zip(&kept).any(|(entry, kept)| *kept && runs_on(entry, *gpu));
            *lost += u64::from(before && !after);
        }
        for (entry, _) in module.entries.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            let names: Vec<String> = codes(entry).map(|target| target.to_string()).collect();
            *plan.removed.entry(names.join("+")).or_default() += entry.size();
        }
        plan.patches.extend(patch::module(module, &kept, bytes));
    }
    plan_bare(&mut plan, &binary.bare_cubins, targets, gpus);
    // Sections need not be in the order of their table.
    plan.patches.sort_by_key(|patch| patch.offset);
    plan
}

/// Removes the bare cubins that run on no target. Each is another kernel, so that none can stand in for another.
fn plan_bare(plan: &mut SlimPlan, cubins: &[BareCubin], targets: &[Capability], gpus: &[Capability]) {
    let runs = |cubin: &BareCubin, gpu: &Capability| cubin.arch.runs_on(*gpu);
    let is_kept = |cubin: &&BareCubin| targets.iter().any(|target| runs(cubin, target));
    for (target, loadable) in targets.iter().zip(&mut plan.loadable) {
        *loadable += u64::from(cubins.iter().any(|cubin| runs(cubin, target)));
    }
    for (gpu, lost) in gpus.iter().zip(&mut plan.lost) {
        let before = cubins.iter().any(|cubin| runs(cubin, gpu));
        let after = cubins.iter().filter(is_kept).any(|cubin| runs(cubin, gpu));
        *lost += u64::from(before && !after);
    }
    for cubin in cubins {
        plan.before += cubin.stored;
        if is_kept(&cubin) {
            plan.after += cubin.stored;
            plan.kept_bare.push((cubin.arch, cubin.stored));
            continue;
        }
        *plan.removed.entry(cubin.arch.to_string()).or_default() += cubin.stored;
        plan.patches.push(Patch { offset: cubin.offset, bytes: Vec::new(), zeros: cubin.stored });
    }
}

fn codes(entry: &FatbinEntry) -> impl Iterator<Item = CodeTarget> {
    entry.target.into_iter().chain(entry.members.iter().map(|member| member.target))
}

fn runs_on(entry: &FatbinEntry, gpu: Capability) -> bool {
    codes(entry).any(|code| code.runs_on(gpu))
}

/// The capability of the closest SASS in an entry that a GPU loads. Numbers of one GPU compare alike, since drivers differ in
/// which of them they go by.
fn closest_sass(entry: &FatbinEntry, gpu: Capability) -> Option<Capability> {
    let sass = codes(entry).filter_map(|code| match code {
        CodeTarget::Sass(arch) if arch.runs_on(gpu) => Some(arch.capability().current()),
        _ => None,
    });
    sass.max()
}

/// Which entries of a module stay.
fn kept(module: &Module, targets: &[Capability]) -> Vec<bool> {
    // Entries that are neither SASS nor PTX have no substitute; placeholders cost nothing.
    let judged = |entry: &FatbinEntry| {
        matches!(entry.kind, EntryKind::Cubin | EntryKind::Ptx | EntryKind::Group)
            && !entry.is_lto()
            && !entry.is_placeholder()
    };
    // The driver loads the closest SASS: what is further from every target is never loaded.
    let closest: Vec<(Capability, Option<Capability>)> = targets
        .iter()
        .map(|gpu| (*gpu, module.entries.iter().filter_map(|entry| closest_sass(entry, *gpu)).max()))
        .collect();
    let stays = |entry: &FatbinEntry| {
        !judged(entry)
            || closest.iter().any(|(gpu, closest)| match closest {
                Some(closest) => closest_sass(entry, *gpu) == Some(*closest),
                // Without any SASS for this GPU, what runs on it is PTX.
                None => runs_on(entry, *gpu),
            })
    };
    module.entries.iter().map(stays).collect()
}
