use std::collections::BTreeSet;

use super::{RowCheck, TableChecker, is_gpu, is_service, is_storage};
use crate::store::Facts;
use crate::tables::written;

const TABLE: &str = "azure_meters";

impl TableChecker {
    pub(super) fn meters(&mut self, facts: &Facts) {
        let meters = facts.meters();
        let of_service = |service: &str, check: &mut RowCheck<'_>| {
            let message = || format!("is for `{service}`, which is not a service");
            check.require(is_service(facts, service), message);
        };
        let of_storage = |storage: &str, check: &mut RowCheck<'_>| {
            let message = || format!("is for `{storage}`, which is not a storage");
            check.require(is_storage(facts, storage), message);
        };
        self.each(TABLE, "billing", &meters.billing, |row, check| {
            of_service(&row.service, check);
            check.require(row.unit_s > 0, || "has a unit of zero seconds");
        });
        self.each(TABLE, "start", &meters.start, |row, check| {
            of_service(&row.service, check);
            let rates = [row.pull_mb_per_s, row.unpack_mb_per_s];
            let others = [row.unpack_zstd_mb_per_s, row.unpack_plain_mb_per_s];
            let zero = rates.contains(&0) || others.contains(&Some(0));
            check.require(!zero, || "has a pull or unpack rate of zero");
            let explained = row.assumed.is_empty() || row.note.is_some();
            check.require(explained, || "has assumed figures and no note that explains them");
        });
        self.each(TABLE, "bound", &meters.bound, |row, check| {
            of_service(&row.service, check);
            let unit = row.key.unit();
            check.require(row.unit == unit, || {
                format!("has the unit `{}`, expected `{}`", written(&row.unit), written(&unit))
            });
        });
        self.each(TABLE, "meter", &meters.meter, |row, check| {
            if row.service != "network" {
                of_service(&row.service, check);
            }
            if let Some(gpu) = &row.gpu {
                let message = || format!("is for the GPU `{gpu}`, which is not in gpus.toml");
                check.require(is_gpu(facts, gpu), message);
            }
            if let Some(id) = &row.area {
                let known = meters.area.iter().any(|area| area.id == *id);
                check.require(known, || "is for an area that has no row");
                let message = || "has both an area and regions, expected one of them";
                check.require(row.regions.is_empty(), message);
            }
            let explained = !row.assumed || row.note.is_some();
            check.require(explained, || "is assumed and has no note that explains it");
        });
        self.each(TABLE, "throughput", &meters.throughput, |row, check| of_storage(&row.storage, check));
        self.each(TABLE, "disk_tier", &meters.disk_tier, |row, check| of_storage(&row.storage, check));
        self.each(TABLE, "endpoint_size", &meters.endpoint_size, |row, check| {
            let known = facts.sizes().find(&row.size).one().is_some();
            check.require(known, || "is not a size of azure_sizes.toml");
        });
        let mut seen = BTreeSet::new();
        self.each(TABLE, "area", &meters.area, |area, check| {
            for region in &area.regions {
                check.require(seen.insert(region), || format!("shares {region} with another"));
            }
        });
    }
}
