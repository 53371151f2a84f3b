//! The questions, in the service's filter language.

use std::fmt::Write as _;

use crate::rules::{Sizes, VIRTUAL_MACHINES};

/// So many sizes are asked for by name. More make the address too long, and whole regions are asked for instead.
const MOST_NAMES: usize = 12;

/// The Linux virtual machines of a region. Values compare with case; the region must stand in the filter, since as a
/// parameter it is ignored and a million rows come.
pub(crate) fn machines(region: &str, sizes: &Sizes) -> String {
    let mut filter = format!(
        "serviceName eq '{VIRTUAL_MACHINES}' and priceType eq 'Consumption' and armRegionName eq '{region}' \
         and contains(productName, 'Windows') eq false and contains(productName, 'Dedicated') eq false \
         and contains(meterName, 'Low Priority') eq false"
    );
    let names: Vec<String> = sizes.names().map(|name| format!("armSkuName eq '{name}'")).collect();
    if !sizes.all && (1..=MOST_NAMES).contains(&names.len()) {
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

/// Whether a text can be the name of a region, and so stand in a filter.
pub(crate) fn is_region(name: &str) -> bool {
    (2..=40).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_sizes_are_asked_for_by_name_and_many_by_region() {
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
