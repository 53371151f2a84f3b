//! The charges of a region besides machines: disks, storage, data transfer, fees. Looked up once
//! per region.

use std::cell::OnceCell;

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::tables::{DiskTier, MeterKind};

use super::storage::{DataStorePrices, price};
use crate::catalog::Catalog;
use crate::catalog::machine::GIB;
use crate::catalog::offer::RegionId;
use crate::context::PlanContext;
use crate::workload::Workload;
use cudock_facts::services::AzureOffering;

/// The OS disk that Azure's documentation starts with.
const OS_DISK: &str = "managed-disk-premium";
const LEAST_OS_DISK_GIB: u64 = 128;
/// Disk space of the operating system, in addition to the unpacked image.
const SYSTEM_GIB: u64 = 32;

/// The costs of all regions, each looked up when its first offer is priced.
pub(crate) struct RegionCostCache<'a> {
    cells: Vec<OnceCell<RegionCosts>>,
    pub(crate) os_disk: Option<&'a DiskTier>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RegionCosts {
    pub(crate) store: DataStorePrices,
    pub(crate) disk_month: Option<Usd>,
    pub(crate) disk_elsewhere: bool,
    /// The price of all data that leaves Azure.
    pub(crate) egress: Option<Usd>,
    /// Moving data from its own region.
    pub(crate) transfer: Transfer,
    /// Whether a price of moving data is derived from others.
    pub(crate) moving_assumed: bool,
    fees: [Fees; 9],
}

/// The price of moving data to a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// It is there already.
    #[default]
    None,
    Gb(Usd),
    Unknown,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fees {
    /// Per hour, independent of instances.
    pub(crate) hour: Usd,
    /// Per hour, for load balancing over several instances.
    pub(crate) balancer_hour: Usd,
    /// Per day, independent of instances.
    pub(crate) day: Usd,
    /// Per day for each 50 instances.
    pub(crate) nodes_day: Usd,
    /// Whether that is taken from a related service.
    pub(crate) nodes_assumed: bool,
    /// The part of `hour` that is derived from others.
    pub(crate) assumed_hour: Usd,
    pub(crate) requests: Usd,
    /// Whether a fee is derived from other prices.
    pub(crate) assumed: bool,
}

impl<'a> RegionCostCache<'a> {
    pub(crate) fn new(catalog: &Catalog, facts: &'a Facts, workload: &Workload) -> Self {
        let unpacked = workload.start.image.as_ref().map_or(0, |image| image.unpacked.div_ceil(GIB));
        let gib = unpacked.saturating_add(SYSTEM_GIB).max(LEAST_OS_DISK_GIB);
        Self {
            cells: catalog.regions().map(|_| OnceCell::new()).collect(),
            os_disk: facts.meters().disk_for(OS_DISK, gib),
        }
    }

    /// The costs of a region; none for an id of another catalog.
    pub(crate) fn of(&self, context: &PlanContext, region: RegionId) -> Option<&RegionCosts> {
        let cell = self.cells.get(region.index())?;
        Some(cell.get_or_init(|| self.look_up(context, region)))
    }

    fn look_up(&self, context: &PlanContext, region: RegionId) -> RegionCosts {
        let (facts, name) = (context.facts, context.catalog.region_name(region));
        let meter = self.os_disk.map(|tier| format!("{}-month", tier.tier));
        let disk = meter.and_then(|meter| price(facts, OS_DISK, &meter, name));
        let data = context.workload.data.as_ref();
        let home = data.and_then(|data| data.region.as_deref()).unwrap_or(name);
        let serves = context.serves();
        RegionCosts {
            store: context.store.map(|store| store.prices(facts, home)).unwrap_or_default(),
            disk_month: disk.map(|(price, _)| price),
            disk_elsewhere: disk.is_some_and(|(_, here)| !here),
            egress: data.and_then(|data| egress(facts, name, data.leaves)),
            transfer: transfer(facts, home, name),
            moving_assumed: data.is_some_and(|data| moving_assumed(facts, home, name, data.leaves)),
            fees: AzureOffering::ALL.map(|kind| fees(facts, kind, name, serves)),
        }
    }
}

impl RegionCosts {
    pub(crate) fn fees(&self, kind: AzureOffering) -> Fees {
        self.fees.get(usize::from(kind.index())).copied().unwrap_or_default()
    }
}

fn transfer(facts: &Facts, from: &str, to: &str) -> Transfer {
    match facts.meters().transfer(from, to) {
        _ if from == to => Transfer::None,
        Some(meter) => Transfer::Gb(meter.usd),
        None => Transfer::Unknown,
    }
}

fn moving_assumed(facts: &Facts, from: &str, to: &str, leaves: u64) -> bool {
    let out = facts.meters().price("network", MeterKind::EgressGb, None, to).filter(|_| leaves > 0);
    [facts.meters().transfer(from, to), out].into_iter().flatten().any(|meter| meter.assumed)
}

/// The price of bytes that leave Azure, tier by tier, without the free grant of a subscription.
fn egress(facts: &Facts, region: &str, bytes: u64) -> Option<Usd> {
    const GB: u128 = 1_000_000_000;
    if bytes == 0 {
        return Some(Usd::ZERO);
    }
    let tiers = facts.meters().tiers("network", MeterKind::EgressGb, None, region);
    let mut total = Usd::ZERO;
    let mut from = 0_u128;
    for (index, tier) in tiers.iter().enumerate() {
        let next = tiers.get(index + 1).map_or(u128::MAX, |next| u128::from(next.above) * GB);
        let until = u128::from(bytes).min(next);
        total += tier.usd.share(until.saturating_sub(from), GB);
        from = until.max(from);
    }
    (!tiers.is_empty()).then_some(total)
}

fn fees(facts: &Facts, kind: AzureOffering, region: &str, serves: bool) -> Fees {
    let mut assumed = false;
    let mut priced = |service: &str, meter: MeterKind| {
        let row = facts.meters().price(service, meter, None, region);
        assumed |= row.is_some_and(|row| row.assumed);
        row.map_or((Usd::ZERO, false), |row| (row.usd, row.assumed))
    };
    let always = [
        MeterKind::ClusterHour,
        MeterKind::SystemNodeHour,
        MeterKind::LoadBalancerHour,
        MeterKind::ManagementHour,
    ];
    let always = always.map(|meter| priced(kind.id(), meter));
    let mut hour: Usd = always.iter().map(|(money, _)| *money).sum();
    let assumed_hour = always.iter().filter(|(_, assumed)| *assumed).map(|(money, _)| *money).sum();
    let (nodes_day, nodes_assumed) = priced(kind.id(), MeterKind::NodeBalancerDay);
    let (day, _) = priced(kind.id(), MeterKind::RegistryDay);
    let mut find = |service: &str, meter: MeterKind| priced(service, meter).0;
    let (mut balancer_hour, mut requests) = (Usd::ZERO, Usd::ZERO);
    if serves {
        requests = find(kind.id(), MeterKind::RequestsMillion);
        if matches!(kind, AzureOffering::Vm | AzureOffering::Aks) {
            hour += find("network", MeterKind::PublicIpHour);
        }
        if kind == AzureOffering::Vm {
            // There is one kind of load balancer; its price is in the row of clusters.
            balancer_hour = find(AzureOffering::Aks.id(), MeterKind::LoadBalancerHour);
        }
    }
    Fees { hour, balancer_hour, day, nodes_day, nodes_assumed, assumed_hour, requests, assumed }
}
