//! When a size ends, region by region.

use cudock_facts::Facts;
use cudock_facts::tables::{Lifecycle, Size};
use cudock_facts::version::Date;

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn size<'a>(facts: &'a Facts, name: &str) -> &'a Size {
    facts.sizes().find(name).one().unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn a_retired_size_is_still_sold_where_it_ends_later() {
    let facts = Facts::embedded();
    let v100 = size(&facts, "Standard_NC6s_v3");
    assert_eq!(v100.lifecycle, Lifecycle::Retired);
    assert_eq!(v100.ends_on("westeurope"), Some(day("2025-09-30")));
    assert_eq!(v100.ends_on("jioindiawest"), Some(day("2027-06-30")));
    let today = day("2026-11-15");
    assert!(!v100.is_on_sale_in("westeurope", today));
    assert!(v100.is_on_sale_in("jioindiawest", today));
    assert!(v100.is_on_sale_in("jioindiawest", day("2027-06-29")));
    assert!(!v100.is_on_sale_in("jioindiawest", day("2027-06-30")), "on the day itself it is gone");
    assert!(!v100.is_on_sale(today), "without a region the table's general word holds");
}

#[test]
fn a_size_on_sale_ends_nowhere_unless_a_day_is_named() {
    let facts = Facts::embedded();
    let t4 = size(&facts, "Standard_NC4as_T4_v3");
    assert_eq!(t4.ends_on("eastus"), None);
    assert!(t4.is_on_sale_in("eastus", day("2030-01-01")));
    let ending = Size { retires_on: Some(day("2028-01-01")), ..t4.clone() };
    assert_eq!(ending.ends_on("eastus"), Some(day("2028-01-01")));
    assert!(
        ending.is_on_sale_in("eastus", day("2027-12-31"))
            && !ending.is_on_sale_in("eastus", day("2028-01-01"))
    );
}

#[test]
fn a_size_that_only_has_a_price_is_not_on_sale() {
    let facts = Facts::embedded();
    let unknown = facts.sizes().size.iter().find(|size| size.lifecycle == Lifecycle::Unknown).unwrap();
    assert!(!unknown.is_on_sale_in("eastus", day("2026-11-15")));
    let ended = Size { lifecycle: Lifecycle::Retired, retired_on: None, ..unknown.clone() };
    assert!(!ended.is_on_sale_in("eastus", day("2026-11-15")), "retired without a day is retired");
}
