//! The catalog: machine types, regions and priced offers, as exact numbers.

pub(crate) mod availability;
mod build;
pub(crate) mod machine;
pub(crate) mod offer;
mod offers;

use cudock_base::bug::Parts;

use crate::catalog::availability::RegionStatus;
use crate::catalog::machine::{MachineType, ProfilePlan};
use crate::catalog::offer::{Offer, RegionId, SizeId, SourceId};
use cudock_facts::services::AzureOffering;

/// Every service, size, region and priority that has a price. Built once; planning only reads it.
#[derive(Debug, Clone)]
pub struct Catalog {
    machines: Vec<MachineType>,
    regions: Vec<String>,
    statuses: Vec<RegionStatus>,
    sources: Vec<String>,
    offers: Vec<Offer>,
}

impl Catalog {
    /// Replaces the offers, leaving out those with a size or region that is not in the tables.
    #[must_use]
    pub fn with_offers(mut self, mut offers: Vec<Offer>) -> Self {
        offers.retain(|offer| {
            offer.region.index() < self.regions.len()
                && self.machine(offer.size).is_some_and(|machine| belongs(machine, offer.service))
        });
        offers.sort_by_key(Offer::key);
        self.offers = offers;
        self
    }

    /// All offers: by service, size, priority and region.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// The name of a size or profile; empty for an id of another catalog.
    pub fn size_name(&self, size: SizeId) -> &str {
        self.machine(size).map_or("", |machine| machine.name.as_str())
    }

    /// The name of a region; empty for an id of another catalog.
    pub fn region_name(&self, region: RegionId) -> &str {
        self.regions.get(region.index()).map_or("", String::as_str)
    }

    pub fn source_name(&self, source: SourceId) -> Option<&str> {
        self.sources.get(source.index()).map(String::as_str)
    }

    /// The id of a size's GPU in the tables.
    pub fn gpu_of(&self, size: SizeId) -> Option<&str> {
        self.machine(size).and_then(|machine| machine.gpu.as_deref())
    }

    /// Finds a size or profile by name, ignoring case; `Standard_` is optional.
    pub fn size(&self, name: &str) -> Option<SizeId> {
        let wanted = bare(name);
        let index = self.machines.iter().position(|machine| bare(&machine.name).eq_ignore_ascii_case(wanted));
        index.and_then(|index| u16::try_from(index).ok()).map(SizeId)
    }

    pub fn region(&self, name: &str) -> Option<RegionId> {
        find(&self.regions, name).map(RegionId)
    }

    pub(crate) fn status(&self, region: RegionId) -> RegionStatus {
        self.statuses.get(region.index()).copied().unwrap_or(RegionStatus::Unknown)
    }

    pub fn sizes(&self) -> impl Iterator<Item = SizeId> + use<> {
        (0..u16::try_from(self.machines.len()).unwrap_or(u16::MAX)).map(SizeId)
    }

    pub fn regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..u16::try_from(self.regions.len()).unwrap_or(u16::MAX)).map(RegionId)
    }

    pub(crate) fn machine(&self, size: SizeId) -> Option<&MachineType> {
        self.machines.get(size.index())
    }

    pub(crate) fn offers_of(&self, service: AzureOffering, size: SizeId) -> &[Offer] {
        let wanted = (service.index(), size);
        let begin = self.offers.partition_point(|offer| (offer.service.index(), offer.size) < wanted);
        let rest = self.offers.part(begin..);
        let count = rest.partition_point(|offer| (offer.service.index(), offer.size) <= wanted);
        rest.part(..count)
    }
}

/// Whether a service runs on machines of this type.
pub(crate) fn belongs(machine: &MachineType, service: AzureOffering) -> bool {
    match machine.profile {
        Some(ProfilePlan::Consumption) => service == AzureOffering::ContainerApps,
        Some(ProfilePlan::Dedicated) => service == AzureOffering::ContainerAppsDedicated,
        None => service.uses_vm_sizes(),
    }
}

pub(crate) fn bare(name: &str) -> &str {
    match name.get(..9) {
        Some(prefix) if prefix.eq_ignore_ascii_case("standard_") => name.get(9..).unwrap_or(name),
        _ => name,
    }
}

/// The index of a name in a sorted list.
fn find(names: &[String], name: &str) -> Option<u16> {
    let index = names.binary_search_by(|known| known.as_str().cmp(name)).ok()?;
    u16::try_from(index).ok()
}
