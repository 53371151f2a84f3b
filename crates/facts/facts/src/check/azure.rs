use std::collections::BTreeSet;

use super::{TableChecker, Violation, is_gpu, is_service, is_storage};
use crate::lookup::bare_family;
use crate::store::Facts;
use crate::tables::Prices;

impl TableChecker {
    /// Checks sizes, prices, services and storage. Series are left to a test of the embedded tables: an overlay may have
    /// fewer sizes.
    pub(super) fn azure(&mut self, facts: &Facts) {
        self.each("azure_sizes", "size", &facts.sizes().size, |size, check| {
            if let Some(gpu) = &size.gpu {
                let message = || format!("has the GPU `{gpu}`, which is not in gpus.toml");
                check.require(is_gpu(facts, gpu), message);
            }
            let complete = !size.documented || (size.gpu.is_some() && size.gpu_count.is_some());
            check.require(complete, || "is documented and has no GPU");
            let connected = size.nvlink_gpus.is_none_or(|connected| {
                let fewer = size.gpu_count.is_some_and(|count| f64::from(connected) < count);
                size.nvlink.is_some() && connected > 1 && fewer
            });
            check.require(connected, || "connects GPUs by NVLink that it does not have");
        });
        self.prices(facts);
        let services = facts.services();
        self.each("azure_services", "profile", &services.profile, |profile, check| {
            check.require(is_gpu(facts, &profile.gpu), || format!("has the GPU `{}`", profile.gpu));
        });
        self.each("azure_services", "limit", &services.limit, |limit, check| {
            let known = services.service.iter().any(|service| service.id == limit.service);
            check.require(known, || format!("limits `{}`, which is not a service", limit.service));
        });
        self.each("azure_services", "support", &services.support, |row, check| {
            check.require(is_service(facts, &row.service), || "is for a service that has no row");
        });
        self.each("azure_services", "series_region", &services.series_region, |row, check| {
            for region in &row.regions {
                let message = || format!("has the region `{region}`, which has no row");
                check.require(services.region(region).is_some(), message);
            }
        });
        self.each("azure_storage", "price", &facts.storage().price, |price, check| {
            let message = || format!("prices `{}`, which is not a storage", price.storage);
            check.require(is_storage(facts, &price.storage), message);
        });
        self.each("azure_quotas", "alias", &facts.quotas().alias, |row, check| {
            check.require(is_service(facts, &row.service), || "is for a service that has no row");
            let of_size =
                facts.sizes().size.iter().any(|size| size.quota_family.as_ref() == Some(&row.family));
            let of_profile = services.profile.iter().any(|profile| profile.name == row.family);
            check.require(of_size || of_profile, || "is for a family that no size and no profile has");
            let differs = bare_family(&row.family) != bare_family(&row.name);
            check.require(differs, || "is an alias of the same name");
        });
    }

    fn prices(&mut self, facts: &Facts) {
        let prices = facts.prices();
        let mut wrong = |size: &str, message: String| {
            let (table, key) = (Prices::NAME, size.to_owned());
            self.violations.push(Violation { table, list: "price", key, message });
        };
        let mut seen = BTreeSet::new();
        for row in prices.rows() {
            if facts.sizes().find(row.size).one().is_none() {
                wrong(row.size, "has a price, but is not a size of azure_sizes.toml".to_owned());
            }
            if row.price.is_none() && row.spot.is_none() {
                wrong(row.size, format!("has no price in {}", row.region));
            }
            if !seen.insert((row.size, row.region)) {
                wrong(row.size, format!("is duplicated for {}", row.region));
            }
            // Price lists have confused a size with its promotional offer, which costs about half.
            if let Some(size) = row.size.strip_suffix("_Promo").filter(|_| row.price.is_some()) {
                let mut same = prices.of_size(size).filter(|other| other.region == row.region);
                if same.any(|other| other.price == row.price) {
                    wrong(size, format!("has the price of {} in {}", row.size, row.region));
                }
            }
        }
    }
}
