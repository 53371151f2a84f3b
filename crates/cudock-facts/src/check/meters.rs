use std::collections::BTreeSet;

use super::TableChecker;
use crate::store::Facts;
use crate::tables::TableRow;

impl TableChecker {
    pub(super) fn meters(&mut self, facts: &Facts) {
        let meters = facts.meters();
        self.meter_names(facts);
        for row in meters.meter.iter().filter(|row| row.assumed && row.note.is_none()) {
            self.add("azure_meters", "meter", &row.key(), "is assumed and has no note that explains it");
        }
        for row in meters.billing.iter().filter(|row| row.unit_s == 0) {
            self.add("azure_meters", "billing", &row.key(), "has a unit of zero seconds");
        }
        for row in &meters.start {
            if row.pull_mb_per_s == 0 || row.unpack_mb_per_s == 0 {
                self.add("azure_meters", "start", &row.key(), "has a pull or unpack rate of zero");
            }
            if !row.assumed.is_empty() && row.note.is_none() {
                let message = "has assumed figures and no note that explains them";
                self.add("azure_meters", "start", &row.key(), message);
            }
        }
        for row in meters.bound.iter().filter(|row| row.unit != row.key.unit()) {
            let message = format!("has the unit `{}`, expected `{}`", row.unit, row.key.unit());
            self.add("azure_meters", "bound", &TableRow::key(row), message);
        }
        let mut seen = BTreeSet::new();
        for area in &meters.area {
            for region in area.regions.iter().filter(|region| !seen.insert(region.as_str())) {
                self.add("azure_meters", "area", &area.key(), format!("shares {region} with another"));
            }
        }
    }

    /// Checks that references of `azure_meters.toml` exist.
    fn meter_names(&mut self, facts: &Facts) {
        let meters = facts.meters();
        let services = &facts.services().service;
        // `ml-endpoint` is a part of `ml`.
        let is_service = |id: &str| {
            let part_of = |whole: &str| id.strip_prefix(whole).is_some_and(|part| part.starts_with('-'));
            services.iter().any(|service| service.id == id || part_of(&service.id))
        };
        let of_services = (meters.billing.iter().map(|row| ("billing", row.key(), &row.service)))
            .chain(meters.start.iter().map(|row| ("start", row.key(), &row.service)))
            .chain(meters.bound.iter().map(|row| ("bound", TableRow::key(row), &row.service)))
            .chain(meters.meter.iter().map(|row| ("meter", row.key(), &row.service)))
            .filter(|(list, _, service)| {
                !is_service(service) && (*list, service.as_str()) != ("meter", "network")
            });
        for (list, key, service) in of_services {
            self.add("azure_meters", list, &key, format!("is for `{service}`, which is not a service"));
        }
        let is_storage = |id: &str| facts.storage().storage.iter().any(|row| row.id == id);
        let of_storage = (meters.throughput.iter().map(|row| ("throughput", row.key(), &row.storage)))
            .chain(meters.disk_tier.iter().map(|row| ("disk_tier", row.key(), &row.storage)))
            .filter(|(_, _, storage)| !is_storage(storage));
        for (list, key, storage) in of_storage {
            self.add("azure_meters", list, &key, format!("is for `{storage}`, which is not a storage"));
        }
        for row in &meters.meter {
            let is_gpu = |id: &String| facts.gpus().gpu.iter().any(|gpu| gpu.id == *id);
            if let Some(gpu) = row.gpu.as_ref().filter(|gpu| !is_gpu(gpu)) {
                self.add(
                    "azure_meters",
                    "meter",
                    &row.key(),
                    format!("is for the GPU `{gpu}`, which is not in gpus.toml"),
                );
            }
            if row.area.as_ref().is_some_and(|id| !meters.area.iter().any(|area| area.id == *id)) {
                self.add("azure_meters", "meter", &row.key(), "is for an area that has no row");
            }
            if row.area.is_some() && !row.regions.is_empty() {
                let message = "has both an area and regions, expected one of them";
                self.add("azure_meters", "meter", &row.key(), message);
            }
        }
        for row in meters.endpoint_size.iter().filter(|row| facts.sizes().find(&row.size).one().is_none()) {
            self.add("azure_meters", "endpoint_size", &row.key(), "is not a size of azure_sizes.toml");
        }
    }
}
