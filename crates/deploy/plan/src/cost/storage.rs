//! The storage of the data: its throughput and its prices.

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::tables::{DiskTier, Storage, StorageKind, StoragePrice, Throughput};

use crate::catalog::machine::{GIB, MachineType};

/// A storage with data of a size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataStore<'a> {
    pub(crate) row: &'a Storage,
    bytes: u64,
    gib: u64,
    throughput: Option<&'a Throughput>,
    pub(crate) tier: Option<&'a DiskTier>,
}

/// The prices of a storage in a region; unknown prices are none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DataStorePrices {
    /// Storing all of it for a month of 730 hours.
    pub(crate) month: Option<Usd>,
    /// Ten thousand reads.
    pub(crate) reads: Option<Usd>,
    /// Retrieving a GB.
    pub(crate) retrieval: Option<Usd>,
    /// Whether a price is that of another region.
    pub(crate) elsewhere: bool,
}

impl<'a> DataStore<'a> {
    pub(crate) fn find(facts: &'a Facts, id: &str, bytes: u64) -> Option<Self> {
        let row = facts.storage().storage.iter().find(|row| row.id == id)?;
        let gib = bytes.div_ceil(GIB);
        Some(Self {
            row,
            bytes,
            gib,
            throughput: facts.meters().throughput_of(id),
            tier: facts.meters().disk_for(id, gib),
        })
    }

    /// Bytes per second that one of `together` instances gets, limited by the storage and by the machine. Instances share
    /// the throughput of a file share.
    pub(crate) fn supply(&self, machine: &MachineType, together: u32) -> Option<u64> {
        let readers = match self.row.kind {
            StorageKind::File | StorageKind::Lustre => u64::from(together.max(1)),
            StorageKind::Local | StorageKind::Disk | StorageKind::Object => 1,
        };
        let own = match (self.tier, self.throughput) {
            (Some(tier), _) => Some(u64::from(tier.mb_per_s) * 1_000_000),
            (None, Some(row)) => row.bytes_per_second(self.gib, machine.local_disks),
            (None, None) => None,
        };
        let machine = match self.row.kind {
            StorageKind::Local => None,
            StorageKind::Disk => machine.remote_disks,
            StorageKind::Object | StorageKind::File | StorageKind::Lustre => machine.network,
        };
        let own = own.map(|rate| rate / readers);
        [own, self.most(), machine].into_iter().flatten().min()
    }

    fn most(&self) -> Option<u64> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from float saturates, and the figures are small"
        )]
        self.row.max_mbps.map(|mbps| (mbps * 1e6) as u64)
    }

    pub(crate) fn rate_is_assumed(&self) -> bool {
        self.tier.is_none() && self.throughput.is_some_and(|row| row.assumed)
    }

    /// The prices in a region, or in another if it has none.
    pub(crate) fn prices(&self, facts: &Facts, region: &str) -> DataStorePrices {
        let mut elsewhere = false;
        let mut find = |meter: &str| {
            let (price, here) = price(facts, &self.row.id, meter, region)?;
            elsewhere |= !here;
            Some(price)
        };
        let least = self.throughput.and_then(|row| row.least_gib).map_or(0, u64::from);
        let bytes = self.bytes.max(least.saturating_mul(GIB));
        let month = match self.tier {
            Some(tier) => find(&format!("{}-month", tier.tier)),
            None => find("gb-month").map(|gb| gb.share(u128::from(bytes), 1_000_000_000)).or_else(|| {
                let hour = find("gib-hour")?.times(self.gib.max(least));
                Some((hour + self.throughput_price(&mut find)).times(730))
            }),
        };
        let month = if self.row.kind == StorageKind::Local { Some(Usd::ZERO) } else { month };
        let (reads, retrieval) = (find("read-10k"), find("retrieval-gb"));
        DataStorePrices { month, reads, retrieval, elsewhere }
    }

    /// The price per hour of throughput that is billed by the megabyte per second.
    fn throughput_price(&self, find: &mut impl FnMut(&str) -> Option<Usd>) -> Usd {
        let Some(rate) = self.throughput.and_then(|row| row.bytes_per_second(self.gib, 1)) else {
            return Usd::ZERO;
        };
        let by_mb = find("mbps-hour").map(|price| price.times(rate.div_ceil(1_000_000)));
        by_mb
            .or_else(|| find("mibps-hour").map(|price| price.times(rate.div_ceil(1 << 20))))
            .unwrap_or_default()
    }
}

/// The price of a meter and whether it is that of the region: westeurope is the fallback, and then any region.
pub(super) fn price(facts: &Facts, storage: &str, meter: &str, region: &str) -> Option<(Usd, bool)> {
    let rows = || facts.storage().price.iter().filter(|row| row.storage == storage && row.meter == meter);
    let named = |name: &str| rows().find(|row| row.region == name).and_then(StoragePrice::exact);
    match named(region) {
        Some(price) => Some((price, true)),
        None => {
            named("westeurope").or_else(|| rows().find_map(StoragePrice::exact)).map(|price| (price, false))
        }
    }
}
