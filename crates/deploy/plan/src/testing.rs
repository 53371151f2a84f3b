//! Test helpers: a workload to vary, and the embedded tables.

use std::sync::OnceLock;
use std::time::Duration;

use cudock_base::{Rate, Usd};
use cudock_facts::Facts;
use cudock_facts::tables::DataAccess;
use cudock_facts::version::Date;

use crate::catalog::Catalog;
use crate::catalog::offer::Offer;
use crate::context::{Case, PlanContext, ReadMode};
use crate::cost::{self, Unfit, Usage};
use crate::verdict::Verdicts;
use crate::workload::{
    Constraints, DataNeeds, DayLoad, GpuNeeds, Image, MachineNeeds, Priority, Spot, Start, Work, Workload,
};
use cudock_facts::services::AzureOffering;

pub(crate) const T4: &str = "Standard_NC4as_T4_v3";
pub(crate) const SECOND: u128 = 1000;
pub(crate) const MINUTE: u128 = 60 * SECOND;
pub(crate) const HOUR: u128 = 60 * MINUTE;

pub(crate) fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(Facts::embedded)
}

pub(crate) fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| Catalog::of(facts()))
}

/// Work on one T4 that any GPU can do, from an image of 3 GB that unpacks to 6 GB and is ready after 5 s.
pub(crate) fn workload(work: Work) -> Workload {
    Workload {
        work,
        gpu: GpuNeeds {
            memory: 10_000_000_000,
            per_instance: 1,
            instances: 1,
            measured_on: Some("T4".into()),
            ..GpuNeeds::default()
        },
        machine: MachineNeeds::default(),
        data: None,
        start: Start {
            image: Some(Image { compressed: 3_000_000_000, unpacked: 6_000_000_000, ..Image::default() }),
            ready: Duration::from_secs(5),
            ..Start::default()
        },
        spot: None,
        constraints: Constraints::default(),
        begins: Date::new(2026, 11, 15).unwrap(),
        assumptions: Vec::new(),
    }
}

pub(crate) fn job(minutes: u64) -> Workload {
    workload(Work::Job { duration: Duration::from_secs(minutes * 60) })
}

/// A rate in thousandths per second.
pub(crate) fn per_second(thousandths: u64) -> Rate {
    Rate::from_nanos_per_day(u128::from(thousandths) * 86_400_000_000)
}

/// Requests at a constant rate in thousandths per second; an instance serves ten per second and is
/// kept half full.
pub(crate) fn serve(millis: u64) -> Workload {
    let load = DayLoad { hours: [per_second(millis); 24] };
    workload(Work::Serve { load, replica_rate: per_second(10_000), target_percent: 50 })
}

/// Data that is streamed once, in reads of a MiB.
pub(crate) fn data(bytes: u64, storage: &str) -> DataNeeds {
    DataNeeds {
        bytes,
        storage: storage.into(),
        region: None,
        access: DataAccess::Stream,
        passes: 1,
        rate_per_gpu: None,
        read_size: 1 << 20,
        leaves: 0,
    }
}

/// Spot without checkpoints, at a rate of evictions in thousandths per hour.
pub(crate) fn spot(evictions_per_hour: u64) -> Spot {
    let evictions = per_second(evictions_per_hour).share(1, 3600);
    Spot { evictions, checkpoint_every: None, checkpoint_takes: Duration::ZERO }
}

/// Calls a function with the case of a size on a service.
pub(crate) fn on<T>(
    workload: &Workload,
    service: AzureOffering,
    size: &str,
    inspect: impl FnOnce(&Case) -> T,
) -> T {
    let verdicts = Verdicts::default();
    let context = PlanContext::new(catalog(), facts(), workload, &verdicts);
    let case = Case::new(&context, service, catalog().size(size).unwrap()).unwrap();
    inspect(&case)
}

/// The usage of a workload on a size of a service, its data being streamed.
pub(crate) fn used(
    workload: &Workload,
    service: AzureOffering,
    size: &str,
    priority: Priority,
) -> Result<Usage, Unfit> {
    on(workload, service, size, |case| cost::usage(case, priority, ReadMode::Stream))
}

/// The cost of a workload on a size of a service in western Europe at a dollar an hour, part by
/// part.
pub(crate) fn parts_at_a_dollar(workload: &Workload, service: AzureOffering, size: &str) -> cost::Parts {
    let region = catalog().region("westeurope").unwrap();
    let rate = Usd::from_cents(100);
    on(workload, service, size, |case| {
        let offer = Offer::new(service, case.size, region, Priority::Regular, rate, workload.begins);
        let usage = cost::usage(case, Priority::Regular, ReadMode::Stream).unwrap();
        cost::price(case, &offer, &usage).unwrap()
    })
}
