//! When nothing fits: which needs and wishes stand in the way, and what could be had without them.

use cudock_base::format::{bytes, duration};
use cudock_facts::Facts;

use crate::catalog::Catalog;
use crate::format;
use crate::placement::Placement;
use crate::plan::plan;
use crate::verdict::Verdicts;
use crate::workload::{Management, Workload};

const GB: u64 = 1_000_000_000;

/// A need or wish that gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concession {
    /// Any GPU, not only those named.
    AnyGpu,
    /// Code that runs on any compute capability.
    AnyCapability,
    /// GPUs without `NVLink`.
    NoNvlink,
    /// Machines without `InfiniBand`.
    NoInfiniband,
    /// Fewer processors, or less main memory.
    SmallerMachine,
    /// An image for the other processor.
    OtherArchitecture,
    /// Regions that were not named.
    OtherRegions,
    /// Services that were not named.
    OtherServices,
    /// Sizes that were not named.
    OtherSizes,
    /// The other priority.
    OtherPriority,
    /// More to do oneself.
    LessManagement,
    /// More money.
    MoreMoney,
    /// More time.
    MoreTime,
    /// This many billion bytes on each GPU.
    LessMemory(u64),
    /// This many GPUs in an instance.
    FewerGpus(u32),
    /// An image that runs there.
    OtherImage,
}

impl Concession {
    /// What gives way, as a report says it.
    pub fn describe(self, workload: &Workload) -> String {
        let (gpu, wishes) = (&workload.gpu, &workload.wishes);
        match self {
            Concession::AnyGpu => format!("any GPU, not only {}", gpu.models.join(", ")),
            Concession::AnyCapability => "code that runs on any compute capability".to_owned(),
            Concession::NoNvlink => "GPUs without NVLink".to_owned(),
            Concession::NoInfiniband => "machines without InfiniBand".to_owned(),
            Concession::SmallerMachine => "fewer processors or less main memory".to_owned(),
            Concession::OtherArchitecture => "an image for the other processor".to_owned(),
            Concession::OtherRegions => format!("other regions than {}", wishes.regions.join(", ")),
            Concession::OtherServices => format!("other services than {}", wishes.services.join(", ")),
            Concession::OtherSizes => format!("other sizes than {}", wishes.sizes.join(", ")),
            Concession::OtherPriority => "the other priority".to_owned(),
            Concession::LessManagement => {
                format!("less management than {}", wishes.management.name())
            }
            Concession::MoreMoney => {
                format!("more money than {}", wishes.budget.map(format::dollars).unwrap_or_default())
            }
            Concession::MoreTime => {
                format!("more time than {}", wishes.deadline.map(duration).unwrap_or_default())
            }
            Concession::LessMemory(gigabytes) => {
                format!("{gigabytes} GB on each GPU instead of {}", bytes(gpu.memory))
            }
            Concession::FewerGpus(gpus) => {
                format!("{gpus} GPUs in a machine instead of {}", gpu.per_instance)
            }
            Concession::OtherImage => "an image that runs there".to_owned(),
        }
    }
}

/// What fits if something gives way.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxed {
    /// What gives way, all of it at once.
    pub concessions: Vec<Concession>,
    /// The cheapest placement then.
    pub placement: Placement,
}

/// Tries every need and wish by itself, and in pairs those of which one is not enough. Each trial is a plan of its own: a
/// few milliseconds.
pub fn relaxed(catalog: &Catalog, facts: &Facts, workload: &Workload, verdicts: &Verdicts) -> Vec<Relaxed> {
    let fitting = |concessions: &[Concession], verdicts: &Verdicts| {
        let other = concessions.iter().fold(workload.clone(), |work, concession| concession.made(work));
        let plan = plan(catalog, facts, &other, verdicts);
        let placement = plan.placement(plan.ranked().first()?);
        Some(Relaxed { concessions: concessions.to_vec(), placement })
    };
    let fits = |concession: Concession| {
        !plan(catalog, facts, &concession.made(workload.clone()), verdicts).ranked().is_empty()
    };
    let mut found: Vec<Relaxed> = Vec::new();
    let mut not_enough: Vec<Concession> = Vec::new();
    for concession in Concession::ALONE.into_iter().filter(|concession| concession.is_asked_of(workload)) {
        match fitting(&[concession], verdicts) {
            Some(relaxed) => found.push(relaxed),
            None => not_enough.push(concession),
        }
    }
    let memory = greatest(workload.gpu.memory / GB, |gigabytes| fits(Concession::LessMemory(gigabytes)));
    let fewer = |gpus: u64| Concession::FewerGpus(u32::try_from(gpus).unwrap_or(u32::MAX));
    let gpus = greatest(u64::from(workload.gpu.per_instance).saturating_sub(1), |gpus| fits(fewer(gpus)));
    found.extend(memory.and_then(|gigabytes| fitting(&[Concession::LessMemory(gigabytes)], verdicts)));
    found.extend(gpus.and_then(|gpus| fitting(&[fewer(gpus)], verdicts)));
    found.extend(fitting(&[Concession::OtherImage], &Verdicts::default()));
    for (index, one) in not_enough.iter().enumerate() {
        let others = not_enough.iter().skip(index + 1);
        found.extend(others.filter_map(|other| fitting(&[*one, *other], verdicts)));
    }
    found
}

impl Concession {
    /// Those that are made or not, in the order they are tried.
    const ALONE: [Self; 13] = [
        Self::AnyGpu,
        Self::AnyCapability,
        Self::NoNvlink,
        Self::NoInfiniband,
        Self::SmallerMachine,
        Self::OtherArchitecture,
        Self::OtherRegions,
        Self::OtherServices,
        Self::OtherSizes,
        Self::OtherPriority,
        Self::LessManagement,
        Self::MoreMoney,
        Self::MoreTime,
    ];

    /// Whether a workload has the need or wish at all.
    fn is_asked_of(self, workload: &Workload) -> bool {
        let Workload { gpu, machine, wishes, .. } = workload;
        match self {
            Self::AnyGpu => !gpu.models.is_empty(),
            Self::AnyCapability => gpu.least_capability.is_some() || gpu.greatest_capability.is_some(),
            Self::NoNvlink => gpu.nvlink,
            Self::NoInfiniband => gpu.infiniband,
            Self::SmallerMachine => machine.vcpu > 0 || machine.memory > 0,
            Self::OtherArchitecture => machine.architecture.is_some(),
            Self::OtherRegions => !wishes.regions.is_empty(),
            Self::OtherServices => !wishes.services.is_empty(),
            Self::OtherSizes => !wishes.sizes.is_empty(),
            Self::OtherPriority => wishes.priority.is_some(),
            Self::LessManagement => wishes.management != Management::Own,
            Self::MoreMoney => wishes.budget.is_some(),
            Self::MoreTime => wishes.deadline.is_some(),
            Self::LessMemory(_) | Self::FewerGpus(_) | Self::OtherImage => true,
        }
    }

    /// The workload once it is made.
    fn made(self, mut workload: Workload) -> Workload {
        let Workload { gpu, machine, wishes, .. } = &mut workload;
        match self {
            Self::AnyGpu => gpu.models.clear(),
            Self::AnyCapability => (gpu.least_capability, gpu.greatest_capability) = (None, None),
            Self::NoNvlink => gpu.nvlink = false,
            Self::NoInfiniband => gpu.infiniband = false,
            Self::SmallerMachine => (machine.vcpu, machine.memory) = (0, 0),
            Self::OtherArchitecture => machine.architecture = None,
            Self::OtherRegions => wishes.regions.clear(),
            Self::OtherServices => wishes.services.clear(),
            Self::OtherSizes => wishes.sizes.clear(),
            Self::OtherPriority => wishes.priority = None,
            Self::LessManagement => wishes.management = Management::Own,
            Self::MoreMoney => wishes.budget = None,
            Self::MoreTime => wishes.deadline = None,
            Self::LessMemory(gigabytes) => gpu.memory = gigabytes.saturating_mul(GB),
            Self::FewerGpus(gpus) => gpu.per_instance = gpus,
            // The verdicts are what gives way.
            Self::OtherImage => {}
        }
        workload
    }
}

/// The greatest number up to `high` for which it holds, if it holds for one at least; whatever holds for a number is
/// taken to hold below it.
fn greatest(high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (1, high);
    if high == 0 || !holds(low) {
        return None;
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_number_that_holds_is_found() {
        for most in 1..40 {
            assert_eq!(greatest(40, |number| number <= most), Some(most));
        }
        assert_eq!(greatest(40, |_| false), None);
        assert_eq!(greatest(0, |_| true), None);
    }
}
