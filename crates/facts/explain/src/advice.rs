//! Computes fixes that depend on a number in the message.
//!
//! A fixed text such as "install the cu126 build" fails again on older drivers. If a message contains the deciding number,
//! the fix is computed from the tables.

use std::collections::{BTreeMap, BTreeSet};

use cudock_facts::Facts;
use cudock_facts::tables::{Advice, Branch, GpuClass, TorchBuild};
use cudock_facts::version::{Capability, CudaVersion, DriverVersion};

use crate::report::Hit;

/// The fixes for a hit, most likely first.
pub fn fixes(facts: &Facts, hit: &Hit<'_>) -> Vec<String> {
    let computed = match (hit.message.advice, hit.group.as_deref()) {
        (Some(Advice::DriverCuda), Some(number)) => {
            let cuda = number.parse().ok().and_then(CudaVersion::from_api);
            cuda.map(|cuda| for_driver_of(facts, cuda)).filter(|fixes| !fixes.is_empty())
        }
        _ => None,
    };
    computed.unwrap_or_else(|| hit.message.fix.clone())
}

/// The fixes for a driver whose newest CUDA version is `cuda`.
fn for_driver_of(facts: &Facts, cuda: CudaVersion) -> Vec<String> {
    let drivers = facts.drivers();
    let branch = drivers.branch_with(cuda).or_else(|| {
        let older = drivers.branch.iter().filter(|branch| branch.cuda <= cuda);
        older.max_by_key(|branch| branch.branch)
    });
    // A driver older than all rows starts no build of the tables.
    let driver = branch.map_or(DriverVersion::of_branch(1), newest_release);
    let mut fixes = Vec::new();
    let newest = facts.frameworks().newest_torch(drivers, Some(driver), &[]);
    if let Some((version, build)) = newest {
        let tag = &build.tag;
        fixes.push(format!(
            "Install a build that this driver starts (it implements CUDA {cuda}); the newest is torch {version}+{tag}: \
             pip install torch=={version} --index-url https://download.pytorch.org/whl/{tag}",
        ));
    }
    if let (Some(branch), Some((_, build))) = (branch, newest) {
        for ((version, tag), cards) in without_code(facts, branch, build) {
            fixes.push(format!(
                "For GPUs of compute capability {} take torch {version}+{tag}, because that build has no code for them \
                 (`cudock facts gpu`).",
                cards.join(", ")
            ));
        }
    }
    let higher =
        drivers.minor_compat.iter().filter(|row| row.min_linux > driver && row.cuda_major > cuda.major());
    let higher: Vec<String> = higher
        .map(|row| format!("{} or newer for builds with CUDA {}", row.min_linux, row.cuda_major))
        .collect();
    if !higher.is_empty() {
        let last =
            drivers.architecture.iter().filter(|row| row.last_driver_branch == branch.map(|row| row.branch));
        let last: Vec<&str> = last.map(|row| row.name.as_str()).collect();
        let except = match last.as_slice() {
            [] => String::new(),
            names => {
                format!(" ({} GPUs cannot: their last branch is R{})", names.join(", "), driver.branch())
            }
        };
        fixes.push(format!("Or upgrade the host driver: {}{except}.", higher.join(", ")));
    }
    let compat = branch
        .and_then(|row| facts.forward_compat().packages_for(row.branch).map(|package| package.cuda).max());
    if let Some(newest) = compat {
        fixes.push(format!(
            "Or, on a data-center GPU, install cuda-compat-{}-{} in the image: it runs CUDA {newest} on this driver.",
            newest.major(),
            newest.minor()
        ));
    }
    fixes
}

/// The GPUs that a branch drives and a build has no code for, by the newest build that has it.
fn without_code(
    facts: &Facts,
    branch: &Branch,
    build: &TorchBuild,
) -> BTreeMap<(String, String), Vec<String>> {
    let gpus = facts.gpus().gpu.iter().filter(|gpu| gpu.class != GpuClass::Jetson);
    let cards: BTreeSet<Capability> = gpus.filter_map(|gpu| gpu.capability).collect();
    let is_driven = |card: &Capability| {
        facts.drivers().architecture_of(*card).is_some_and(|row| {
            let first = row.first_toolkit_of.get(card).copied().or(row.first_toolkit);
            row.last_driver_branch.is_none_or(|last| branch.branch <= last)
                && first.is_none_or(|first| first <= branch.cuda)
        })
    };
    let mut builds: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for card in cards.into_iter().filter(is_driven).filter(|card| !build.has_code_for(&[*card])) {
        let other = facts.frameworks().newest_torch(facts.drivers(), Some(newest_release(branch)), &[card]);
        if let Some((version, other)) = other {
            builds.entry((version.to_string(), other.tag.clone())).or_default().push(card.to_string());
        }
    }
    builds
}

fn newest_release(branch: &Branch) -> DriverVersion {
    branch.latest_linux.unwrap_or(DriverVersion::of_branch(branch.branch))
}
