//! The price of a usage in a region. Machine time is rounded up once, to a billionth of a dollar, as is each other part;
//! the sum is exact.

use cudock_base::Usd;
use cudock_facts::tables::StorageKind;

use super::region::{RegionCosts, Transfer};
use super::serve::MILLION;
use super::usage::{MONTH, Usage};
use crate::catalog::offer::Offer;
use crate::context::Case;
use crate::plan::placement::PartKind;

const HOUR: u128 = 3_600_000;
const DAY: u128 = 24 * HOUR;
const GB: u128 = 1_000_000_000;

/// The parts of a cost, in the order reports list them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    money: [Usd; 9],
    assumed_fee: Usd,
}

impl Parts {
    pub(crate) fn total(&self) -> Usd {
        self.money.into_iter().sum()
    }

    /// How much of the total rests on assumptions: the start, whose rates are undocumented, the disk, whose size is a guess,
    /// and fees that were derived from other prices.
    pub(crate) fn uncertainty(&self) -> Usd {
        let [_, start, _, _, _, _, disk, _, _] = self.money;
        start + disk + self.assumed_fee
    }

    /// The parts that are not zero.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PartKind, Usd)> + '_ {
        PartKind::ALL.into_iter().zip(self.money).filter(|(_, money)| *money > Usd::ZERO)
    }

    pub(crate) fn of(&self, kind: PartKind) -> Usd {
        self.iter().find(|(known, _)| *known == kind).map(|(_, money)| money).unwrap_or_default()
    }
}

/// Unknown prices, which reject a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpriced {
    Egress,
    /// Data that comes from its own region.
    Transfer,
}

pub(crate) fn price(case: &Case, offer: &Offer, usage: &Usage) -> Result<Parts, Unpriced> {
    let unknown = RegionCosts::default();
    let region = case.context.region_costs.of(case.context, offer.region).unwrap_or(&unknown);
    let hour = offer.rate;
    let bill = &usage.bill;
    // Machine time is rounded once: each part is what it adds to those before it. So the sum depends on the billed time
    // only, not on how it is split.
    let (mut until, mut paid) = (0_u128, Usd::ZERO);
    let mut time = |millis: u128| {
        // Most parts are zero for most offers, and division is slow.
        if millis == 0 {
            return Usd::ZERO;
        }
        until = until.saturating_add(millis);
        let part = hour.share(until, HOUR).saturating_sub(paid);
        paid += part;
        part
    };
    let (fee, assumed_fee) = fee(case, region, usage);
    Ok(Parts {
        assumed_fee,
        money: [
            time(bill.work),
            time(bill.start),
            time(bill.idle),
            time(bill.lost),
            time(bill.rounding),
            fee,
            disk(case, region, usage),
            storage(case, region, usage),
            moved(case, region, usage)?,
        ],
    })
}

/// The fee of the service, and the part of it that is assumed.
fn fee(case: &Case, region: &RegionCosts, usage: &Usage) -> (Usd, Usd) {
    let fees = region.fees(case.terms.kind);
    let share = |rate: Usd, unit: u128| {
        if rate == Usd::ZERO { rate } else { rate.share(usage.lasts, unit) }
    };
    let balancer = if usage.machines > 1 { fees.balancer_hour } else { Usd::ZERO };
    let nodes = fees.nodes_day.times(balancers(usage.machines));
    let by_time = share(fees.hour + balancer, HOUR) + share(fees.day + nodes, DAY);
    let assumed_nodes = if fees.nodes_assumed { nodes } else { Usd::ZERO };
    let assumed = share(fees.assumed_hour, HOUR) + share(assumed_nodes, DAY);
    if fees.requests == Usd::ZERO {
        return (by_time, assumed);
    }
    (by_time + fees.requests.share(usage.requests, MILLION * MILLION), assumed)
}

/// The load balancers of a number of nodes: one for each 50.
pub(crate) fn balancers(machines: u32) -> u64 {
    u64::from(machines).div_ceil(50)
}

fn disk(case: &Case, region: &RegionCosts, usage: &Usage) -> Usd {
    match region.disk_month {
        Some(month) if case.terms.kind.bills_disk() => month.share(usage.disks, MONTH),
        _ => Usd::ZERO,
    }
}

fn storage(case: &Case, region: &RegionCosts, usage: &Usage) -> Usd {
    let (Some(data), Some(store)) = (&case.workload().data, &case.context.store) else { return Usd::ZERO };
    let prices = region.store;
    // Each machine has its own managed disk; other storage is shared.
    let copies = if store.row.kind == StorageKind::Disk { u64::from(usage.machines.max(1)) } else { 1 };
    let kept = prices.month.map(|month| month.share(usage.lasts, MONTH).times(copies));
    let reads = usage.read.div_ceil(u128::from(data.read_size.max(1)));
    let read = prices.reads.map(|ten_thousand| ten_thousand.share(reads, 10_000));
    let fetched = prices.retrieval.map(|gb| gb.share(usage.read, GB));
    [kept, read, fetched].into_iter().flatten().sum()
}

fn moved(case: &Case, region: &RegionCosts, usage: &Usage) -> Result<Usd, Unpriced> {
    if case.workload().data.is_none() {
        return Ok(Usd::ZERO);
    }
    let out = region.egress.ok_or(Unpriced::Egress)?;
    let brought = match region.transfer {
        Transfer::None => Usd::ZERO,
        Transfer::Gb(gb) => gb.share(usage.read, GB),
        Transfer::Unknown => return Err(Unpriced::Transfer),
    };
    Ok(out + brought)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T4, data, job, parts_at_a_dollar, serve};
    use crate::workload::DataNeeds;
    use cudock_facts::services::AzureOffering;

    fn nanos(money: Usd) -> u128 {
        money.nanos()
    }

    fn terabyte(storage: &str, region: Option<&str>, leaves: u64) -> DataNeeds {
        let region = region.map(str::to_owned);
        DataNeeds { region, passes: 2, read_size: 4_000_000, leaves, ..data(1_000_000_000_000, storage) }
    }

    #[test]
    fn time_is_paid_by_the_hour_and_rounded_up_once() {
        // 40 minutes on a machine: 85 s of start and 2375 s of work at a dollar an hour.
        let parts = parts_at_a_dollar(&job(40), AzureOffering::Vm, T4);
        // 2375/3600 = 0.6597222..., up; with the start 2460/3600 = 0.6833333..., up.
        assert_eq!(nanos(parts.of(PartKind::Compute)), 659_722_223);
        assert_eq!(nanos(parts.of(PartKind::ColdStart)), 683_333_334 - 659_722_223);
        // A P10 at 21.68 a month of 730 h for 245 + 2400 s: 21.68 x 2645 / 2,628,000 = 0.0218203...
        assert_eq!(nanos(parts.of(PartKind::Disk)), 21_820_244);
        assert_eq!(parts.total(), parts.iter().map(|(_, money)| money).sum());
    }

    #[test]
    fn a_cluster_costs_more_than_its_nodes() {
        // 0.10 for the cluster, 0.096 for the system node, 0.025 for the balancer: 0.221 an hour, for
        // 450 + 20 + 40 + 5 + 2400 = 2915 s.
        let parts = parts_at_a_dollar(&job(40), AzureOffering::Aks, T4);
        assert_eq!(nanos(parts.of(PartKind::Fee)), (221_000_000_u128 * 2915).div_ceil(3600));
    }

    #[test]
    fn machine_learning_pays_for_a_balancer_and_a_registry_and_batch_for_a_balancer() {
        // 0.33 a day for a balancer and 0.167 a day for the registry, for 360 + 20 + 60 + 5 + 2400 = 2845 s of 86,400 s:
        // 0.497 x 2845 / 86,400 = 0.0163653356.
        let fee = |kind| parts_at_a_dollar(&job(40), kind, T4).of(PartKind::Fee);
        assert_eq!(nanos(fee(AzureOffering::MlCluster)), 16_365_336);
        assert_eq!(fee(AzureOffering::MlServerless), fee(AzureOffering::MlCluster));
        // 0.030 an hour for 330 + 20 + 60 + 5 + 2400 = 2815 s: 0.030 x 2815 / 3600 = 0.0234583334.
        assert_eq!(nanos(fee(AzureOffering::Batch)), 23_458_334);
        // 51 nodes have two balancers: (2 x 0.33 + 0.167) x 2845 / 86,400 = 0.0272316551.
        let mut many = job(40);
        many.gpu.instances = 51;
        let fee = parts_at_a_dollar(&many, AzureOffering::MlCluster, T4).of(PartKind::Fee);
        assert_eq!(nanos(fee), 27_231_656);
    }

    #[test]
    fn the_uncertainty_is_the_start_the_disk_and_what_is_assumed_of_fees() {
        let parts = parts_at_a_dollar(&job(40), AzureOffering::Vm, T4);
        assert_eq!(parts.uncertainty(), parts.of(PartKind::ColdStart) + parts.of(PartKind::Disk));
        // The balancer of serverless compute is taken from clusters: 0.33 x 2845 / 86,400 = 0.0108663195.
        let parts = parts_at_a_dollar(&job(40), AzureOffering::MlServerless, T4);
        assert_eq!(nanos(parts.uncertainty()), nanos(parts.of(PartKind::ColdStart)) + 10_866_320);
        let parts = parts_at_a_dollar(&job(40), AzureOffering::MlCluster, T4);
        assert_eq!(parts.uncertainty(), parts.of(PartKind::ColdStart));
    }

    /// The cost of a part of forty minutes of work on a machine with these data.
    fn with_data(part: PartKind, data: DataNeeds) -> u128 {
        let mut workload = job(40);
        workload.data = Some(data);
        nanos(parts_at_a_dollar(&workload, AzureOffering::Vm, T4).of(part))
    }

    #[test]
    fn storage_is_kept_and_read() {
        // 1 TB of hot blobs at 0.018032 a GB and month for 2645 s, and 2 TB in reads of 4 MB: 500,000 at 0.0043 for
        // ten thousand = 0.215.
        let kept = (18_032_000_000_u128 * 2645).div_ceil(2_628_000);
        let hot = with_data(PartKind::Storage, terabyte("blob-hot", None, 0));
        assert_eq!(hot, kept + 215_000_000);
        // Cool blobs: 2 TB fetched at 0.01 a GB are 20 dollars, 500,000 reads at 0.01 for ten thousand 50 cents.
        let kept = (10_000_000_000_u128 * 2645).div_ceil(2_628_000);
        let cool = with_data(PartKind::Storage, terabyte("blob-cool", None, 0));
        assert_eq!(cool, kept + 20_500_000_000);
    }

    #[test]
    fn data_from_another_region_and_out_of_azure_is_paid_by_the_gigabyte() {
        // 2 TB from northeurope at 0.02 = 40 dollars; 500 GB out at 0.087 = 43.50, the free 100 GB not taken off.
        let data = terabyte("blob-hot", Some("northeurope"), 500_000_000_000);
        assert_eq!(with_data(PartKind::Egress, data), 83_500_000_000);
    }

    #[test]
    fn much_egress_gets_cheaper_tier_by_tier() {
        // 20,000 GB: 10,335 at 0.087 and 9,665 at 0.083 = 899.145 + 802.195.
        let data = terabyte("blob-hot", None, 20_000_000_000_000);
        assert_eq!(with_data(PartKind::Egress, data), 1_701_340_000_000);
    }

    #[test]
    fn requests_to_container_apps_are_paid_by_the_million() {
        // One a second: 2.628 million a month at 0.40.
        let serve = serve(1000);
        let parts = parts_at_a_dollar(&serve, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4");
        assert_eq!(nanos(parts.of(PartKind::Fee)), 1_051_200_000);
        // A machine has a public address at half a cent an hour.
        let parts = parts_at_a_dollar(&serve, AzureOffering::Vm, T4);
        assert_eq!(nanos(parts.of(PartKind::Fee)), 730 * 5_000_000);
        assert_eq!(nanos(parts.of(PartKind::Compute) + parts.of(PartKind::Idle)), 730_000_000_000);
    }
}
