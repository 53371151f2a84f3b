//! Queries in the filter language of the service.

use std::fmt::Write as _;

use crate::rules::{Sizes, VIRTUAL_MACHINES};

/// The most sizes to request by name. More make the URL too long, and the whole region is requested.
const MAX_NAMES: usize = 12;

/// The Linux virtual machines of a region. Values are case-sensitive. The region has to be in the filter: as a parameter
/// it is ignored.
pub(crate) fn machines(region: &str, sizes: &Sizes) -> String {
    let mut filter = format!(
        "serviceName eq '{VIRTUAL_MACHINES}' and priceType eq 'Consumption' and armRegionName eq '{region}' \
         and contains(productName, 'Windows') eq false and contains(productName, 'Dedicated') eq false \
         and contains(meterName, 'Low Priority') eq false"
    );
    let names: Vec<String> = sizes.names().map(|name| format!("armSkuName eq '{name}'")).collect();
    if !sizes.all && (1..=MAX_NAMES).contains(&names.len()) {
        // Writing to a String cannot fail.
        let _ = write!(filter, " and ({})", names.join(" or "));
    }
    filter
}

/// The meters of other services in a region.
pub(crate) fn meters(region: &str, services: &[&str]) -> String {
    let services: Vec<String> = services.iter().map(|name| format!("serviceName eq '{name}'")).collect();
    format!("armRegionName eq '{region}' and priceType eq 'Consumption' and ({})", services.join(" or "))
}

/// Whether a text can be the name of a region, and is safe in a filter.
pub(crate) fn is_region(name: &str) -> bool {
    (2..=40).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_sizes_are_requested_by_name_and_many_by_region() {
        let names = |count: usize| (0..count).map(|number| format!("Standard_N{number}"));
        let few = machines("westeurope", &Sizes::new(names(2), false));
        assert!(few.contains("armRegionName eq 'westeurope'"), "{few}");
        assert!(few.ends_with(" and (armSkuName eq 'Standard_N0' or armSkuName eq 'Standard_N1')"), "{few}");
        assert!(!machines("westeurope", &Sizes::new(names(13), false)).contains("armSkuName"));
        assert!(!machines("westeurope", &Sizes::new(names(2), true)).contains("armSkuName"));
    }

    #[test]
    fn nothing_that_could_change_a_filter_is_a_region() {
        assert!(is_region("westeurope") && is_region("eastus2"));
        for wrong in ["", "x", "West Europe", "west-europe", "x' or 1 eq 1 or 'x", "2east", "é"] {
            assert!(!is_region(wrong), "{wrong}");
        }
    }
}
