//! Builds the offers from price rows and meters.

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::tables::MeterKind;
use cudock_facts::version::Date;

use super::Catalog;
use crate::catalog::machine::{GIB, MachineType, ProfilePlan};
use crate::catalog::offer::{Offer, RegionId, SizeId, SourceId};
use crate::workload::Priority;
use cudock_facts::services::AzureOffering;

/// All offers, and the names of their price sources.
pub(super) fn all(catalog: &Catalog, facts: &Facts) -> (Vec<Offer>, Vec<String>) {
    let mut sources: Vec<String> = facts.prices().sources.iter().map(|source| source.name.clone()).collect();
    sources.push("azure_meters".to_owned());
    let meters = SourceId(u16::try_from(sources.len() - 1).unwrap_or(u16::MAX));
    let mut offers = of_sizes(catalog, facts, &sources);
    for size in catalog.sizes() {
        if let Some(machine) = catalog.machine(size).filter(|machine| machine.profile.is_some()) {
            for region in &machine.offered_in {
                offers.extend(of_profile(catalog, facts, size, machine, *region, meters));
            }
        }
    }
    (offers, sources)
}

/// A size costs the same on every service that uses it; a price of zero is not a price.
fn of_sizes(catalog: &Catalog, facts: &Facts, sources: &[String]) -> Vec<Offer> {
    let source = |name: Option<&str>| {
        let index = sources.iter().position(|known| Some(known.as_str()) == name);
        SourceId(index.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX))
    };
    let services = || AzureOffering::ALL.into_iter().filter(|service| service.uses_vm_sizes());
    let mut offers = Vec::with_capacity(16_384);
    // Rows of a size are adjacent: its id is looked up once.
    let mut last: Option<(&str, Option<SizeId>)> = None;
    for row in facts.prices().rows() {
        let size = match last {
            Some((name, size)) if name == row.size => size,
            _ => catalog.size(row.size),
        };
        last = Some((row.size, size));
        let (Some(size), Some(region)) = (size, catalog.region(row.region)) else { continue };
        let mut add = |priority, usd: Option<Usd>, date: Option<Date>, from: Option<&str>| {
            let (Some(rate), Some(date)) = (usd.filter(|usd| *usd > Usd::ZERO), date) else { return };
            for service in services().filter(|service| priority == Priority::Regular || service.has_spot()) {
                let source = source(from);
                offers.push(Offer { rate, date, size, region, source, service, priority, assumed: false });
            }
        };
        add(Priority::Regular, row.price, row.price_date, row.price_source);
        if catalog.machine(size).is_some_and(|machine| machine.spot != Some(false)) {
            add(Priority::Spot, row.spot, row.spot_date, row.spot_source);
        }
    }
    offers
}

/// A profile is billed by its parts; it is offered where each part has a price.
fn of_profile(
    catalog: &Catalog,
    facts: &Facts,
    size: SizeId,
    machine: &MachineType,
    region: RegionId,
    source: SourceId,
) -> Option<Offer> {
    let (service, kinds, per_hour) = match machine.profile? {
        ProfilePlan::Consumption => (
            AzureOffering::ContainerApps,
            [MeterKind::VcpuSecond, MeterKind::GibSecond, MeterKind::GpuSecond],
            3600,
        ),
        ProfilePlan::Dedicated => (
            AzureOffering::ContainerAppsDedicated,
            [MeterKind::ProfileVcpuHour, MeterKind::ProfileGibHour, MeterKind::ProfileGpuHour],
            1,
        ),
    };
    let name = catalog.region_name(region);
    let counts =
        [u64::from(machine.vcpu?), machine.ram?.div_ceil(GIB), u64::from(machine.gpus?.div_ceil(1000))];
    let mut rate = Usd::ZERO;
    let mut oldest: Option<Date> = None;
    let mut assumed = false;
    for (kind, count) in kinds.into_iter().zip(counts) {
        let of_gpu = matches!(kind, MeterKind::GpuSecond | MeterKind::ProfileGpuHour);
        let gpu = machine.gpu.as_deref().filter(|_| of_gpu);
        let meter = facts.meters().price(service.id(), kind, gpu, name)?;
        rate += meter.usd.times(per_hour).times(count);
        assumed |= meter.assumed;
        oldest = Some(oldest.map_or(meter.as_of, |day| day.min(meter.as_of)));
    }
    let (date, priority) = (oldest?, Priority::Regular);
    Some(Offer { rate, date, size, region, source, service, priority, assumed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::catalog;

    #[test]
    fn a_price_row_becomes_an_offer_of_every_service_that_uses_vm_sizes() {
        let size = catalog().size("NC4as_T4_v3").unwrap();
        let region = catalog().region("westeurope").unwrap();
        let of = |priority| {
            let here = catalog().offers().iter();
            let here = here.filter(|offer| offer.size == size && offer.region == region);
            here.filter(|offer| offer.priority == priority).count()
        };
        // VM, AKS, Batch, ML cluster, ML serverless, ML endpoint; the endpoint has no Spot.
        assert_eq!((of(Priority::Regular), of(Priority::Spot)), (6, 5));
    }

    #[test]
    fn offers_of_a_size_on_a_service_are_adjacent() {
        let mut seen = 0;
        for service in AzureOffering::ALL {
            for size in catalog().sizes() {
                let offers = catalog().offers_of(service, size);
                assert!(offers.iter().all(|offer| (offer.service, offer.size) == (service, size)));
                seen += offers.len();
            }
        }
        assert_eq!(seen, catalog().offers().len());
        assert!(seen > 10_000, "{seen}");
    }

    #[test]
    fn no_offer_is_free() {
        assert!(catalog().offers().iter().all(|offer| offer.rate > Usd::ZERO));
    }
}
