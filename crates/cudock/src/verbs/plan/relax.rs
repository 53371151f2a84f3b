//! When nothing fits: which single need or wish stands in the way, and what could be had without it.

use cudock_facts::Facts;
use cudock_plan::{Catalog, Money, Placement, Verdicts, Workload, plan};
use serde::Serialize;

use super::words;

/// What fits if one thing gives way.
#[derive(Debug, Serialize)]
pub(super) struct Relaxed {
    /// What gives way, in words.
    pub(super) change: String,
    pub(super) service: &'static str,
    pub(super) size: String,
    pub(super) region: String,
    pub(super) priority: &'static str,
    pub(super) total: Money,
    #[serde(skip)]
    pub(super) placement: Placement,
}

/// Tries every need and wish by itself. Each trial is a plan of its own: a few milliseconds.
pub(super) fn relaxed(
    catalog: &Catalog,
    facts: &Facts,
    workload: &Workload,
    verdicts: &Verdicts,
) -> Vec<Relaxed> {
    let fitting = |change: String, workload: &Workload, verdicts: &Verdicts| {
        let plan = plan(catalog, facts, workload, verdicts);
        let placement = plan.placement(plan.ranked().first()?);
        Some(Relaxed {
            change,
            service: placement.service.id(),
            size: placement.size.clone(),
            region: placement.region.clone(),
            priority: words::priority(placement.priority),
            total: placement.cost.total,
            placement,
        })
    };
    let single = dropped(workload);
    let mut found: Vec<Relaxed> = Vec::new();
    let mut not_enough: Vec<&Drop> = Vec::new();
    for drop in &single {
        match fitting(drop.change.clone(), &drop.from(workload), verdicts) {
            Some(relaxed) => found.push(relaxed),
            None => not_enough.push(drop),
        }
    }
    let fits = |workload: &Workload| !plan(catalog, facts, workload, verdicts).ranked().is_empty();
    found.extend(less_memory(workload, fits).and_then(|(change, less)| fitting(change, &less, verdicts)));
    found.extend(fewer_gpus(workload, fits).and_then(|(change, fewer)| fitting(change, &fewer, verdicts)));
    found.extend(fitting("an image that runs there".to_owned(), workload, &Verdicts::default()));
    // Two at once, of those of which one is not enough.
    for (index, one) in not_enough.iter().enumerate() {
        for other in not_enough.iter().skip(index + 1) {
            let change = format!("{}, and {}", one.change, other.change);
            found.extend(fitting(change, &other.from(&one.from(workload)), verdicts));
        }
    }
    found
}

/// A need or wish that gives way.
struct Drop {
    change: String,
    edit: fn(&mut Workload),
}

impl Drop {
    fn from(&self, workload: &Workload) -> Workload {
        let mut other = workload.clone();
        (self.edit)(&mut other);
        other
    }
}

/// Every need and wish that a workload has.
fn dropped(workload: &Workload) -> Vec<Drop> {
    let mut all = Vec::new();
    let mut add = |given: bool, change: String, edit: fn(&mut Workload)| {
        if given {
            all.push(Drop { change, edit });
        }
    };
    let (gpu, wishes) = (&workload.gpu, &workload.wishes);
    add(!gpu.models.is_empty(), format!("any GPU, not only {}", gpu.models.join(", ")), |work| {
        work.gpu.models.clear();
    });
    let bounded = gpu.least_capability.is_some() || gpu.greatest_capability.is_some();
    add(bounded, "code that runs on any compute capability".to_owned(), |work| {
        (work.gpu.least_capability, work.gpu.greatest_capability) = (None, None);
    });
    add(gpu.nvlink, "GPUs without NVLink".to_owned(), |work| work.gpu.nvlink = false);
    add(gpu.infiniband, "machines without InfiniBand".to_owned(), |work| work.gpu.infiniband = false);
    let machine = &workload.machine;
    add(machine.vcpu > 0 || machine.memory > 0, "fewer processors or less main memory".to_owned(), |work| {
        (work.machine.vcpu, work.machine.memory) = (0, 0);
    });
    add(machine.architecture.is_some(), "an image for the other processor".to_owned(), |work| {
        work.machine.architecture = None;
    });
    add(!wishes.regions.is_empty(), format!("other regions than {}", wishes.regions.join(", ")), |work| {
        work.wishes.regions.clear();
    });
    add(!wishes.services.is_empty(), format!("other services than {}", wishes.services.join(", ")), |work| {
        work.wishes.services.clear();
    });
    add(!wishes.sizes.is_empty(), format!("other sizes than {}", wishes.sizes.join(", ")), |work| {
        work.wishes.sizes.clear();
    });
    add(wishes.priority.is_some(), "the other priority".to_owned(), |work| work.wishes.priority = None);
    let management = words::management(wishes.management);
    add(management != "own", format!("less management than {management}"), |work| {
        work.wishes.management = cudock_plan::Management::Own;
    });
    let budget = wishes.budget.map(words::dollars).unwrap_or_default();
    add(wishes.budget.is_some(), format!("more money than {budget}"), |work| work.wishes.budget = None);
    let deadline = wishes.deadline.map(words::time).unwrap_or_default();
    add(wishes.deadline.is_some(), format!("more time than {deadline}"), |work| work.wishes.deadline = None);
    all
}

/// The most memory of a GPU that something has, in whole gigabytes.
fn less_memory(workload: &Workload, fits: impl Fn(&Workload) -> bool) -> Option<(String, Workload)> {
    const GB: u64 = 1_000_000_000;
    let with = |memory: u64| {
        let mut other = workload.clone();
        other.gpu.memory = memory;
        other
    };
    let most = greatest(workload.gpu.memory / GB, |gigabytes| fits(&with(gigabytes * GB)))?;
    let change = format!("{most} GB on each GPU instead of {}", words::bytes(workload.gpu.memory));
    Some((change, with(most * GB)))
}

/// The most GPUs that one machine has.
fn fewer_gpus(workload: &Workload, fits: impl Fn(&Workload) -> bool) -> Option<(String, Workload)> {
    let with = |gpus: u64| {
        let mut other = workload.clone();
        other.gpu.per_instance = u32::try_from(gpus).unwrap_or(u32::MAX);
        other
    };
    let asked = u64::from(workload.gpu.per_instance);
    let most = greatest(asked.saturating_sub(1), |gpus| gpus > 0 && fits(&with(gpus)))?;
    Some((format!("{most} GPUs in a machine instead of {asked}"), with(most)))
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
