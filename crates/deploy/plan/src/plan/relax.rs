//! Placements that fit if a need or constraint is relaxed, for workloads that fit nowhere.

use cudock_base::text::format::{bytes, duration};

use crate::context::PlanContext;
use crate::plan::placement::Placement;
use crate::plan::{Plan, plan};
use crate::report::format;
use crate::verdict::Verdicts;
use crate::workload::Workload;
use cudock_facts::services::Management;

const GB: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relaxation {
    AnyGpu,
    AnyCapability,
    AnyPrecision,
    NoNvlink,
    NoInfiniband,
    SmallerMachine,
    OtherArchitecture,
    OtherRegions,
    OtherServices,
    OtherSizes,
    OtherPriority,
    LessManagement,
    MoreMoney,
    MoreTime,
    /// This many billion bytes on each GPU.
    LessMemory(u64),
    FewerGpus(u32),
    OtherImage,
}

impl Relaxation {
    pub fn describe(self, workload: &Workload) -> String {
        let (gpu, constraints) = (&workload.gpu, &workload.constraints);
        match self {
            Relaxation::AnyGpu => format!("any GPU, not only {}", gpu.models.join(", ")),
            Relaxation::AnyCapability => "any compute capability".to_owned(),
            Relaxation::AnyPrecision => match gpu.precision {
                Some(format) => format!("another number format than {format}"),
                None => "another number format".to_owned(),
            },
            Relaxation::NoNvlink => "no NVLink".to_owned(),
            Relaxation::NoInfiniband => "no InfiniBand".to_owned(),
            Relaxation::SmallerMachine => "fewer vCPUs or less memory".to_owned(),
            Relaxation::OtherArchitecture => "an image for the other architecture".to_owned(),
            Relaxation::OtherRegions => format!("regions other than {}", constraints.regions.join(", ")),
            Relaxation::OtherServices => format!("services other than {}", constraints.services.join(", ")),
            Relaxation::OtherSizes => format!("sizes other than {}", constraints.sizes.join(", ")),
            Relaxation::OtherPriority => "the other priority".to_owned(),
            Relaxation::LessManagement => {
                format!("less management than {}", constraints.management.name())
            }
            Relaxation::MoreMoney => {
                format!("a budget above {}", constraints.budget.map(format::dollars).unwrap_or_default())
            }
            Relaxation::MoreTime => {
                format!("a deadline later than {}", constraints.deadline.map(duration).unwrap_or_default())
            }
            Relaxation::LessMemory(gigabytes) => {
                format!("{gigabytes} GB on each GPU instead of {}", bytes(gpu.memory))
            }
            Relaxation::FewerGpus(gpus) => {
                format!("{gpus} GPUs per machine instead of {}", gpu.per_instance)
            }
            Relaxation::OtherImage => "an image that runs there".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Relaxed {
    /// The relaxations, all applied at once.
    pub relaxations: Vec<Relaxation>,
    pub placement: Placement,
}

impl Plan<'_> {
    /// Placements that fit if needs or constraints are relaxed.
    pub fn relaxed(&self) -> Vec<Relaxed> {
        relaxed(&self.context)
    }
}

/// Tries every relaxation alone, and then pairs of those that are not enough alone. Each trial is a plan of a few
/// milliseconds.
fn relaxed(context: &PlanContext) -> Vec<Relaxed> {
    let PlanContext { catalog, facts, workload, verdicts, .. } = *context;
    let fitting = |relaxations: &[Relaxation], verdicts: &Verdicts| {
        let other = relaxations.iter().fold(workload.clone(), |work, relaxation| relaxation.apply(work));
        let plan = plan(catalog, facts, &other, verdicts);
        let placement = plan.placement(plan.ranked().first()?);
        Some(Relaxed { relaxations: relaxations.to_vec(), placement })
    };
    let fits = |relaxation: Relaxation| {
        !plan(catalog, facts, &relaxation.apply(workload.clone()), verdicts).ranked().is_empty()
    };
    let mut found: Vec<Relaxed> = Vec::new();
    let mut not_enough: Vec<Relaxation> = Vec::new();
    for relaxation in Relaxation::SIMPLE.into_iter().filter(|relaxation| relaxation.applies_to(workload)) {
        match fitting(&[relaxation], verdicts) {
            Some(relaxed) => found.push(relaxed),
            None => not_enough.push(relaxation),
        }
    }
    let memory = greatest(workload.gpu.memory / GB, |gigabytes| fits(Relaxation::LessMemory(gigabytes)));
    let fewer = |gpus: u64| Relaxation::FewerGpus(u32::try_from(gpus).unwrap_or(u32::MAX));
    let gpus = greatest(u64::from(workload.gpu.per_instance).saturating_sub(1), |gpus| fits(fewer(gpus)));
    found.extend(memory.and_then(|gigabytes| fitting(&[Relaxation::LessMemory(gigabytes)], verdicts)));
    found.extend(gpus.and_then(|gpus| fitting(&[fewer(gpus)], verdicts)));
    found.extend(fitting(&[Relaxation::OtherImage], &Verdicts::default()));
    for (index, one) in not_enough.iter().enumerate() {
        let others = not_enough.iter().skip(index + 1);
        found.extend(others.filter_map(|other| fitting(&[*one, *other], verdicts)));
    }
    found
}

impl Relaxation {
    /// Relaxations without a figure, in the order they are tried.
    const SIMPLE: [Self; 14] = [
        Self::AnyGpu,
        Self::AnyCapability,
        Self::AnyPrecision,
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

    /// Whether a workload has the need or constraint.
    fn applies_to(self, workload: &Workload) -> bool {
        self.apply(workload.clone()) != *workload
    }

    fn apply(self, mut workload: Workload) -> Workload {
        let Workload { gpu, machine, constraints, .. } = &mut workload;
        match self {
            Self::AnyGpu => gpu.models.clear(),
            Self::AnyCapability => (gpu.least_capability, gpu.greatest_capability) = (None, None),
            Self::AnyPrecision => gpu.precision = None,
            Self::NoNvlink => gpu.nvlink = false,
            Self::NoInfiniband => gpu.infiniband = false,
            Self::SmallerMachine => (machine.vcpu, machine.memory) = (0, 0),
            Self::OtherArchitecture => machine.architecture = None,
            Self::OtherRegions => constraints.regions.clear(),
            Self::OtherServices => constraints.services.clear(),
            Self::OtherSizes => constraints.sizes.clear(),
            Self::OtherPriority => constraints.priority = None,
            Self::LessManagement => constraints.management = Management::Own,
            Self::MoreMoney => constraints.budget = None,
            Self::MoreTime => constraints.deadline = None,
            Self::LessMemory(gigabytes) => gpu.memory = gigabytes.saturating_mul(GB),
            Self::FewerGpus(gpus) => gpu.per_instance = gpus,
            // Plans without verdicts instead.
            Self::OtherImage => {}
        }
        workload
    }
}

/// The greatest number from 1 to `high` for which a monotonic predicate holds.
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
    fn bisection_finds_the_greatest_number_that_holds() {
        for most in 1..40 {
            assert_eq!(greatest(40, |number| number <= most), Some(most));
        }
        assert_eq!(greatest(40, |_| false), None);
        assert_eq!(greatest(0, |_| true), None);
    }
}
