//! What a region asks for beside machines: disks, storage, moved data, fees. Looked up once for all offers.

use std::cell::OnceCell;

use cudock_facts::Facts;
use cudock_facts::tables::{DiskTier, MeterKind};

use super::storage::{StorePrices, price};
use crate::catalog::Catalog;
use crate::machine::GIB;
use crate::money::Money;
use crate::offer::RegionId;
use crate::question::Question;
use crate::service::ServiceKind;
use crate::workload::Workload;

/// A machine's own disk holds at least a system and what runs on it: the tier that documentation starts at.
const OS_DISK: &str = "managed-disk-premium";
const LEAST_OS_DISK_GIB: u64 = 128;
/// What the system takes of it, beside the unpacked image.
const SYSTEM_GIB: u64 = 32;

/// All regions, each looked up when the first offer there is priced.
pub(crate) struct Places<'a> {
    cells: Vec<OnceCell<Place>>,
    /// The disk that machines boot from.
    pub(crate) os_disk: Option<&'a DiskTier>,
}

/// One region.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) store: StorePrices,
    /// A month of the disk that machines boot from.
    pub(crate) disk_month: Option<Money>,
    pub(crate) disk_elsewhere: bool,
    /// What all that leaves Azure costs.
    pub(crate) egress: Option<Money>,
    /// A GB from where the data lies.
    pub(crate) transfer: Transfer,
    /// Whether a price of moving data is worked out from others.
    pub(crate) moving_assumed: bool,
    fees: [Fees; 9],
}

/// What moving data to a region costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// It lies there.
    #[default]
    None,
    /// A GB costs this.
    Gb(Money),
    /// Nobody knows.
    Unknown,
}

/// What a service asks for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fees {
    /// An hour, however many instances there are.
    pub(crate) hour: Money,
    /// An hour, if there are several instances to spread requests over.
    pub(crate) balancer_hour: Money,
    /// A day, however many instances there are.
    pub(crate) day: Money,
    /// A day for each 50 instances.
    pub(crate) nodes_day: Money,
    /// Whether that is taken from a sibling of the service.
    pub(crate) nodes_assumed: bool,
    /// What of `hour` is worked out from others.
    pub(crate) assumed_hour: Money,
    /// A million requests.
    pub(crate) requests: Money,
    /// Whether a price is worked out from others.
    pub(crate) assumed: bool,
}

impl<'a> Places<'a> {
    pub(crate) fn new(catalog: &Catalog, facts: &'a Facts, workload: &Workload) -> Self {
        let unpacked = workload.start.image.as_ref().map_or(0, |image| image.unpacked.div_ceil(GIB));
        let gib = unpacked.saturating_add(SYSTEM_GIB).max(LEAST_OS_DISK_GIB);
        Self {
            cells: catalog.regions().map(|_| OnceCell::new()).collect(),
            os_disk: facts.meters().disk_for(OS_DISK, gib),
        }
    }

    /// A region; none if it is of another catalogue.
    pub(crate) fn of(&self, question: &Question, region: RegionId) -> Option<&Place> {
        let cell = self.cells.get(region.index())?;
        Some(cell.get_or_init(|| self.look_up(question, region)))
    }

    fn look_up(&self, question: &Question, region: RegionId) -> Place {
        let (facts, name) = (question.facts, question.catalog.region_name(region));
        let meter = self.os_disk.map(|tier| format!("{}-month", tier.tier));
        let disk = meter.and_then(|meter| price(facts, OS_DISK, &meter, name));
        let data = question.workload.data.as_ref();
        let home = data.and_then(|data| data.region.as_deref()).unwrap_or(name);
        let serves = question.serves();
        Place {
            store: question.store.map(|store| store.prices(facts, home)).unwrap_or_default(),
            disk_month: disk.map(|(price, _)| price),
            disk_elsewhere: disk.is_some_and(|(_, here)| !here),
            egress: data.and_then(|data| egress(facts, name, data.leaves)),
            transfer: transfer(facts, home, name),
            moving_assumed: data.is_some_and(|data| moving_assumed(facts, home, name, data.leaves)),
            fees: ServiceKind::ALL.map(|kind| fees(facts, kind, name, serves)),
        }
    }
}

impl Place {
    pub(crate) fn fees(&self, kind: ServiceKind) -> Fees {
        self.fees.get(usize::from(kind.place())).copied().unwrap_or_default()
    }
}

fn transfer(facts: &Facts, from: &str, to: &str) -> Transfer {
    match facts.meters().transfer(from, to) {
        _ if from == to => Transfer::None,
        Some(meter) => Transfer::Gb(nanos(meter.usd.nanos())),
        None => Transfer::Unknown,
    }
}

fn moving_assumed(facts: &Facts, from: &str, to: &str, leaves: u64) -> bool {
    let out = facts.meters().price("network", MeterKind::EgressGb, None, to).filter(|_| leaves > 0);
    [facts.meters().transfer(from, to), out].into_iter().flatten().any(|meter| meter.assumed)
}

/// What so many bytes cost that leave Azure, tier by tier. What is free for a whole subscription is not taken off.
fn egress(facts: &Facts, region: &str, bytes: u64) -> Option<Money> {
    const GB: u128 = 1_000_000_000;
    if bytes == 0 {
        return Some(Money::ZERO);
    }
    let tiers = facts.meters().tiers("network", MeterKind::EgressGb, None, region);
    let mut total = Money::ZERO;
    let mut from = 0_u128;
    for (place, tier) in tiers.iter().enumerate() {
        let next = tiers.get(place + 1).map_or(u128::MAX, |next| u128::from(next.above) * GB);
        let until = u128::from(bytes).min(next);
        total += nanos(tier.usd.nanos()).share(until.saturating_sub(from), GB);
        from = until.max(from);
    }
    (!tiers.is_empty()).then_some(total)
}

fn fees(facts: &Facts, kind: ServiceKind, region: &str, serves: bool) -> Fees {
    let mut assumed = false;
    let mut priced = |service: &str, meter: MeterKind| {
        let row = facts.meters().price(service, meter, None, region);
        assumed |= row.is_some_and(|row| row.assumed);
        row.map_or((Money::ZERO, false), |row| (nanos(row.usd.nanos()), row.assumed))
    };
    let always = [
        MeterKind::ClusterHour,
        MeterKind::SystemNodeHour,
        MeterKind::LoadBalancerHour,
        MeterKind::ManagementHour,
    ];
    let always = always.map(|meter| priced(kind.id(), meter));
    let mut hour: Money = always.iter().map(|(money, _)| *money).sum();
    let assumed_hour = always.iter().filter(|(_, assumed)| *assumed).map(|(money, _)| *money).sum();
    let (nodes_day, nodes_assumed) = priced(kind.id(), MeterKind::NodeBalancerDay);
    let (day, _) = priced(kind.id(), MeterKind::RegistryDay);
    let mut find = |service: &str, meter: MeterKind| priced(service, meter).0;
    let (mut balancer_hour, mut requests) = (Money::ZERO, Money::ZERO);
    if serves {
        requests = find(kind.id(), MeterKind::RequestsMillion);
        if matches!(kind, ServiceKind::Vm | ServiceKind::Aks) {
            hour += find("network", MeterKind::PublicIpHour);
        }
        if kind == ServiceKind::Vm {
            // One kind of balancer is sold; the row that tells its price is that of clusters.
            balancer_hour = find(ServiceKind::Aks.id(), MeterKind::LoadBalancerHour);
        }
    }
    Fees { hour, balancer_hour, day, nodes_day, nodes_assumed, assumed_hour, requests, assumed }
}

fn nanos(nanos: u64) -> Money {
    Money::from_nanos(u128::from(nanos))
}
