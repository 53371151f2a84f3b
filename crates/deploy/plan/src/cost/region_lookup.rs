//! Looks up the charges of a region, once per region.

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::services::AzureOffering;
use cudock_facts::tables::MeterKind;

use crate::catalog::offer::RegionId;
use crate::context::PlanContext;
use crate::cost::region::{Fees, OS_DISK, RegionCostCache, RegionCosts, Transfer};
use crate::cost::storage::price;

impl RegionCostCache<'_> {
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
