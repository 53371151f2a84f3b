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
fn a_retired_size_names_the_regions_where_it_ends_later() {
    let facts = Facts::embedded();
    let v100 = size(&facts, "Standard_NC6s_v3");
    assert_eq!(v100.lifecycle, Lifecycle::Retired);
    assert_eq!(v100.retired_on, Some(day("2025-09-30")));
    assert_eq!(v100.retired_on_by_region["jioindiawest"], day("2027-06-30"));
    assert!(!v100.is_on_sale(day("2026-11-15")), "without a region the table's general word holds");
}

#[test]
fn a_size_on_sale_ends_nowhere_unless_a_day_is_named() {
    let facts = Facts::embedded();
    let t4 = size(&facts, "Standard_NC4as_T4_v3");
    assert!(t4.is_on_sale(day("2030-01-01")));
    let ending = Size { retires_on: Some(day("2028-01-01")), ..t4.clone() };
    assert!(ending.is_on_sale(day("2027-12-31")));
    assert!(!ending.is_on_sale(day("2028-01-01")), "on the day itself it is gone");
}

#[test]
fn a_size_that_only_has_a_price_is_not_on_sale() {
    let facts = Facts::embedded();
    let unknown = facts.sizes().size.iter().find(|size| size.lifecycle == Lifecycle::Unknown).unwrap();
    assert!(!unknown.is_on_sale(day("2026-11-15")));
    let ended = Size { lifecycle: Lifecycle::Retired, retired_on: None, ..unknown.clone() };
    assert!(!ended.is_on_sale(day("2026-11-15")), "retired without a day is retired");
}

/// What the pages of each series say about NVLink ("Interconnect: Supported" or not), read again for this test; for bridges,
/// how many cards one connects.
const LINKED: [(&str, Option<u32>); 17] = [
    ("NC", None),
    ("NCv2", None),
    ("NCv3", None),
    ("NCasT4_v3", None),
    ("NC_A100_v4", Some(2)),
    ("NCads_H100_v5", Some(2)),
    ("NC_RTXPRO6000BSE_v6", None),
    ("ND", None),
    ("NDv2", Some(8)),
    ("ND_A100_v4", Some(8)),
    ("NDm_A100_v4", Some(8)),
    ("ND_H100_v5", Some(8)),
    ("ND_H200_v5", Some(8)),
    ("ND_MI300X_v5", None),
    ("ND_GB200_v6", Some(4)),
    ("ND_GB300_v6", Some(4)),
    ("NVadsA10_v5", None),
];

#[test]
fn every_size_with_several_gpus_has_the_links_that_its_page_states() {
    let facts = Facts::embedded();
    let several = |size: &&Size| size.documented && size.gpu_count.is_some_and(|count| count > 1.0);
    for size in facts.sizes().size.iter().filter(several) {
        let series = size.series.as_deref().unwrap();
        // Visualization series of old have none.
        let stated = LINKED.iter().find(|(name, _)| *name == series).map(|(_, linked)| *linked);
        let stated = stated.or((["NV", "NVv3"].contains(&series)).then_some(None));
        let stated = stated.unwrap_or_else(|| panic!("{}: what does its page say about NVLink?", size.name));
        let has = size.nvlink.as_ref().and(size.nvlink_gpus.map(f64::from).or(size.gpu_count));
        assert_eq!(has, stated.map(f64::from), "{}", size.name);
    }
}

/// What Azure's retirement notices and migration guides recommend for a series, read again for this test.
const RECOMMENDED: [(&str, &[&str]); 7] = [
    ("NC", &["NCasT4_v3"]),
    ("NCv2", &["NC_A100_v4"]),
    ("NCv3", &["NC_A100_v4", "NCads_H100_v5", "NVadsA10_v5", "NCasT4_v3"]),
    ("ND", &["NCasT4_v3"]),
    ("NV", &["NVadsA10_v5"]),
    ("NVv3", &["NVadsA10_v5", "NCasT4_v3", "NC_RTXPRO6000BSE_v6"]),
    ("NVv4", &["NVads_V710_v5", "NVadsA10_v5", "NG_V620_v1"]),
];

#[test]
fn a_retired_size_is_replaced_by_every_series_that_azure_recommends() {
    let facts = Facts::embedded();
    for size in facts.sizes().size.iter().filter(|size| size.documented && size.retired_on.is_some()) {
        let series = size.series.as_deref().unwrap();
        let (_, recommended) = RECOMMENDED.iter().find(|(name, _)| *name == series).expect(series);
        let replacement = size.replacement.as_deref().unwrap_or_default();
        for wanted in *recommended {
            let names = |name: &str| {
                let size = facts.sizes().find(name).one();
                name == *wanted || size.is_some_and(|size| size.series.as_deref() == Some(*wanted))
            };
            let is_offered = replacement.split([' ', ',']).any(names);
            assert!(is_offered, "{}: {wanted} is not in {replacement:?}", size.name);
        }
    }
}

#[test]
fn rows_about_services_name_series_that_sizes_have() {
    let facts = Facts::embedded();
    let is_series = |name: &str| facts.sizes().size.iter().any(|size| size.series.as_deref() == Some(name));
    let services = facts.services();
    let support = services.support.iter().map(|row| &row.series);
    let regions = services.series_region.iter().map(|row| &row.series);
    let drivers = services.driver.iter().flat_map(|row| &row.series);
    let unknown: Vec<&String> =
        support.chain(regions).chain(drivers).filter(|name| !is_series(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_series_on_sale_has_a_row_for_every_service_that_places_sizes() {
    let facts = Facts::embedded();
    let day = "2026-11-16".parse().unwrap();
    let on_sale = |size: &&Size| size.lifecycle == Lifecycle::Available && facts.is_orderable(size, day);
    for size in facts.sizes().size.iter().filter(on_sale) {
        for service in ["vm", "aks", "batch", "ml-cluster", "ml-serverless", "ml-endpoint"] {
            let series = size.series.as_deref().unwrap();
            assert!(facts.services().support_of(service, series).is_some(), "{service} {series}");
        }
    }
}

#[test]
fn a_size_that_only_regions_outside_of_the_public_list_keep_cannot_be_ordered() {
    let facts = Facts::embedded();
    let day = "2026-11-16".parse().unwrap();
    let orderable = |name: &str| facts.is_orderable(facts.sizes().find(name).one().unwrap(), day);
    assert!(
        !orderable("Standard_NC6s_v3"),
        "jioindiawest, chinanorth3 and usgovvirginia are not public regions"
    );
    assert!(orderable("Standard_NC4as_T4_v3"));
    assert!(!orderable("Standard_ND96is_H100_v5"), "only a price is known of it");
}

#[test]
fn a_size_is_never_priced_as_its_promotional_offer_and_the_table_is_as_old_as_its_rows() {
    let facts = Facts::embedded();
    let price = |size: &str, region: &str| {
        facts.prices().of_size(size).find(|row| row.region == region).unwrap().price
    };
    assert_eq!(price("Standard_NC6", "westus2").unwrap().to_string(), "0.90");
    assert_eq!(price("Standard_NC6_Promo", "westus2").unwrap().to_string(), "0.396");
    let promo = cudock_facts::check::all(&facts);
    assert!(promo.iter().all(|violation| !violation.message.contains("Promo")), "{promo:?}");
    assert_eq!(facts.prices().newest().to_string(), "2026-08-22");
    assert_eq!(facts.table("azure_prices").unwrap().as_of, facts.prices().newest());
}

#[test]
fn a_quota_is_found_however_a_service_spells_its_family() {
    let facts = Facts::embedded();
    for (service, name, family, limits) in [
        ("vm", "StandardNCadsH100v5Family", "StandardNCadsH100v5Family", true),
        ("batch", "standardNCADSH100v5Family", "StandardNCadsH100v5Family", true),
        ("batch", "standardNDMI300Xv5IBFamily", "standardNDISv5MI300XFamily", true),
        ("vm", "standardNDMI300Xv5IBFamily", "standardNDISv5MI300XFamily", false),
        ("ml", "Standard NCASv3_T4 Family", "Standard NCASv3_T4 Family", true),
        ("ml", "Standard NCv3 Family", "standardNCSv3Family", true),
        ("batch", "standardNCCadsH100v5Family", "StandardNCadsH100v5Family", false),
        ("container-apps", "ManagedEnvironmentConsumptionT4Gpus", "Consumption-GPU-NC8as-T4", true),
        ("container-apps", "ManagedEnvironmentConsumptionT4Gpus", "Consumption-GPU-NC24-A100", false),
        ("vm", "", "StandardNCadsH100v5Family", false),
    ] {
        assert_eq!(facts.quotas().limits(service, name, family), limits, "{service} {name} {family}");
    }
}

#[test]
fn a_driver_is_found_for_the_series_first_and_then_for_all() {
    let facts = Facts::embedded();
    let driver = |service: &str, size: &str| {
        let size = facts.sizes().find(size).one().unwrap();
        facts
            .services()
            .driver_on(service, size)
            .and_then(|row| row.release(&facts))
            .map(|driver| driver.to_string())
    };
    let release = |driver: &str| Some(driver.to_owned());
    assert_eq!(driver("vm", "Standard_ND96isr_H100_v5"), release("580.126.16"));
    assert_eq!(driver("vm", "Standard_NC4as_T4_v3"), release("580.126.16"));
    assert_eq!(driver("vm", "Standard_NV36ads_A10_v5"), release("570.211.01"));
    assert_eq!(driver("vm", "Standard_NC72ds_xl_RTXPRO6000BSE_v6"), release("595.58.03"));
    assert_eq!(driver("vm", "Standard_ND128isr_NDR_GB200_v6"), release("580.126.20"));
    assert_eq!(driver("aks", "Standard_NC4as_T4_v3"), release("580.159.04"));
    assert_eq!(driver("batch", "Standard_NC4as_T4_v3"), release("580.126.16"));
    assert_eq!(driver("ml", "Standard_NC4as_T4_v3"), None, "no source gives it");
}
