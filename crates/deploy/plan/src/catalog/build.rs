//! Builds the catalog from the tables.

use cudock_facts::Facts;

use super::{Catalog, find, offers};
use crate::catalog::availability::RegionStatus;
use crate::catalog::machine::MachineType;
use crate::catalog::offer::RegionId;

impl Catalog {
    /// Builds the catalog from the tables. A size without a price stays in it, so that its rejection has a reason.
    pub fn of(facts: &Facts) -> Self {
        let regions = region_names(facts);
        let mut catalog = Self {
            machines: Vec::new(),
            statuses: regions.iter().map(|name| RegionStatus::of(facts, name)).collect(),
            regions,
            sources: Vec::new(),
            offers: Vec::new(),
        };
        let region = |name: &str| find(&catalog.regions, name).map(RegionId);
        let sizes = facts.sizes().size.iter().map(|size| MachineType::of_size(facts, size, region));
        let mut machines: Vec<MachineType> = sizes.collect();
        let profiles = facts.services().profile.iter().map(|profile| {
            let mut profile = MachineType::of_profile(facts, profile, region);
            profile.network =
                machines.iter().find(|size| profile.is_twin(size)).and_then(|size| size.network);
            profile.network_assumed = profile.network.is_some();
            profile
        });
        let profiles: Vec<MachineType> = profiles.collect();
        machines.extend(profiles);
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        machines.dedup_by(|later, earlier| later.name == earlier.name);
        machines.truncate(usize::from(u16::MAX));
        catalog.machines = machines;
        let (offers, sources) = offers::all(&catalog, facts);
        catalog.sources = sources;
        catalog.with_offers(offers)
    }
}

fn region_names(facts: &Facts) -> Vec<String> {
    let priced = facts.prices().regions();
    let profiles =
        facts.services().profile.iter().flat_map(|profile| profile.regions.iter().map(String::as_str));
    let areas = facts.meters().area.iter().flat_map(|area| area.regions.iter().map(String::as_str));
    let mut names: Vec<String> = priced.chain(profiles).chain(areas).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(usize::from(u16::MAX));
    names
}
