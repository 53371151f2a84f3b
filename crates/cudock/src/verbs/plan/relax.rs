//! What could be had if something gave way, in words.

use cudock_facts::Facts;
use cudock_plan::{Catalog, Concession, Money, Placement, Verdicts, Workload};
use serde::Serialize;

use super::words;

/// What fits if something gives way.
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

pub(super) fn relaxed(
    catalog: &Catalog,
    facts: &Facts,
    workload: &Workload,
    verdicts: &Verdicts,
) -> Vec<Relaxed> {
    let told = |found: cudock_plan::Relaxed| {
        let changes: Vec<String> = found.concessions.iter().map(|one| change(*one, workload)).collect();
        let placement = found.placement;
        Relaxed {
            change: changes.join(", and "),
            service: placement.service.id(),
            size: placement.size.clone(),
            region: placement.region.clone(),
            priority: words::priority(placement.priority),
            total: placement.cost.total,
            placement,
        }
    };
    cudock_plan::relaxed(catalog, facts, workload, verdicts).into_iter().map(told).collect()
}

fn change(concession: Concession, workload: &Workload) -> String {
    let (gpu, wishes) = (&workload.gpu, &workload.wishes);
    match concession {
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
            format!("less management than {}", words::management(wishes.management))
        }
        Concession::MoreMoney => {
            format!("more money than {}", wishes.budget.map(words::dollars).unwrap_or_default())
        }
        Concession::MoreTime => {
            format!("more time than {}", wishes.deadline.map(words::time).unwrap_or_default())
        }
        Concession::LessMemory(gigabytes) => {
            format!("{gigabytes} GB on each GPU instead of {}", words::bytes(gpu.memory))
        }
        Concession::FewerGpus(gpus) => {
            format!("{gpus} GPUs in a machine instead of {}", gpu.per_instance)
        }
        Concession::OtherImage => "an image that runs there".to_owned(),
    }
}
