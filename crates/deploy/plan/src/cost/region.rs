//! The charges of a region besides machines: disks, storage, data transfer, fees.

use std::cell::OnceCell;

use cudock_base::Usd;
use cudock_facts::Facts;
use cudock_facts::tables::DiskTier;

use super::storage::DataStorePrices;
use crate::catalog::Catalog;
use crate::catalog::machine::GIB;
use crate::workload::Workload;
use cudock_facts::services::AzureOffering;

/// The OS disk that Azure's documentation starts with.
pub(super) const OS_DISK: &str = "managed-disk-premium";
const LEAST_OS_DISK_GIB: u64 = 128;
/// Disk space of the operating system, in addition to the unpacked image.
const SYSTEM_GIB: u64 = 32;

/// The costs of all regions, each looked up when its first offer is priced.
pub(crate) struct RegionCostCache<'a> {
    pub(super) cells: Vec<OnceCell<RegionCosts>>,
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
    pub(super) fees: [Fees; 9],
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
}

impl RegionCosts {
    pub(crate) fn fees(&self, kind: AzureOffering) -> Fees {
        self.fees.get(usize::from(kind.index())).copied().unwrap_or_default()
    }
}
