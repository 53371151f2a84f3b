use super::TableChecker;
use crate::store::Facts;
use crate::tables::TableRow;

impl TableChecker {
    /// Checks that services and regions in support rows exist. Series are left to a test of the embedded tables: an
    /// overlay may have fewer sizes.
    pub(super) fn support(&mut self, facts: &Facts) {
        const TABLE: &str = "azure_services";
        let services = facts.services();
        let is_service = |id: &str| {
            let part_of = |whole: &str| id.strip_prefix(whole).is_some_and(|part| part.starts_with('-'));
            services.service.iter().any(|service| service.id == id || part_of(&service.id))
        };
        for row in services.support.iter().filter(|row| !is_service(&row.service)) {
            self.add(TABLE, "support", &TableRow::key(row), "is for a service that has no row");
        }
        for row in &services.series_region {
            for region in row.regions.iter().filter(|region| services.region(region).is_none()) {
                let message = format!("has the region `{region}`, which has no row");
                self.add(TABLE, "series_region", &TableRow::key(row), message);
            }
        }
        // Price lists have confused a size with its promotional offer, which costs about half.
        let prices = facts.prices();
        for promo in prices.rows().filter(|row| row.size.ends_with("_Promo") && row.price.is_some()) {
            let size = promo.size.trim_end_matches("_Promo");
            let mut same = prices.of_size(size).filter(|row| row.region == promo.region);
            if same.any(|row| row.price == promo.price) {
                let message = format!("has the price of {} in {}", promo.size, promo.region);
                self.add(crate::tables::Prices::NAME, "price", &size, message);
            }
        }
    }
}
