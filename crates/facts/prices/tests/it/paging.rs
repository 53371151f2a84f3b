//! Pages, doubles, and what is left out of them.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_prices::{SkipReason, refresh};

use crate::list::{Heard, PAGE, Query, Row, answer, facts, price, request, requested_regions, run, service};
use cudock_testkit::http::Server;

const T4: &str = "Standard_NC4as_T4_v3";
const H200: &str = "Standard_ND96isr_H200_v5";

#[test]
fn a_list_of_several_pages_is_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut rows: Vec<Row> =
        (0..2300).map(|number| Row::new("westeurope", &format!("Standard_D{number}s_v5"), "0.1")).collect();
    // One on the last page, one across the border of the first.
    rows.push(Row::new("westeurope", T4, "0.658"));
    rows.insert(PAGE, Row::new("westeurope", H200, "98.32"));
    rows.insert(PAGE - 1, Row::new("westeurope", H200, "41.5").spot());
    let server = service(rows);
    let report = run(&request(directory.path(), &server, &["westeurope"])).unwrap();
    assert_eq!(requested_regions(&server), ["westeurope", "westeurope+1000", "westeurope+2000"]);
    assert_eq!(report.regions[0].pages, 4, "and one of meters");
    assert_eq!(report.left_out, [(SkipReason::OtherSize, 2300)].into());
    assert_eq!(price(directory.path(), T4, "westeurope").0, "0.658 2026-11-15");
    assert_eq!(
        price(directory.path(), H200, "westeurope"),
        ("98.32 2026-11-15".to_owned(), "41.50 2026-11-15".to_owned())
    );
}

#[test]
fn the_query_names_region_service_and_kind_with_their_case() {
    let directory = tempfile::tempdir().unwrap();
    let server = service(vec![Row::new("westeurope", T4, "0.7")]);
    let mut request = request(directory.path(), &server, &["West Europe"]);
    request.sizes = vec!["nc4as_t4_v3".to_owned()];
    run(&request).unwrap();
    let query = Query::of(&server.requests()[0]);
    for part in [
        "serviceName eq 'Virtual Machines'",
        "priceType eq 'Consumption'",
        "armRegionName eq 'westeurope'",
        "contains(productName, 'Windows') eq false",
        "contains(productName, 'Dedicated') eq false",
        "contains(meterName, 'Low Priority') eq false",
        "(armSkuName eq 'Standard_NC4as_T4_v3')",
    ] {
        assert!(query.filter.contains(part), "{part} is not in {}", query.filter);
    }
    assert_eq!(server.requests().len(), 1, "who asks for a size does not ask for meters");
    assert!(server.requests()[0].path.contains("api-version=2023-01-01-preview"));
}

#[test]
fn a_list_that_changes_while_it_is_read_gives_each_price_once_and_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    // A price changes in mid-walk: its old row was on the first page, the new one comes on the second, and another row
    // slides over the border and comes twice.
    let server = Server::start(|request| {
        let query = Query::of(request);
        let host = request.header("host").unwrap();
        let twice = Row::new("westeurope", H200, "98.32");
        let old = Row::new("westeurope", T4, "0.658");
        let new = Row::new("westeurope", T4, "0.7").with("effectiveStartDate", "2026-11-01T00:00:00Z");
        match (query.machines, query.skip) {
            (false, _) => answer(&[], "null"),
            (true, 0) => answer(
                &[old, twice],
                &format!("\"http://{host}/api/retail/prices?$filter={}&$skip=2\"", query.filter),
            ),
            (true, _) => answer(&[twice, new], "null"),
        }
    });
    let report = run(&request(directory.path(), &server, &["westeurope"])).unwrap();
    assert_eq!(report.regions[0].sizes, 2);
    assert!(report.contested.is_empty());
    assert_eq!(price(directory.path(), T4, "westeurope").0, "0.70 2026-11-15");
    assert_eq!(price(directory.path(), H200, "westeurope").0, "98.32 2026-11-15");
}

#[test]
fn rows_that_are_not_hourly_linux_prices_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let row = || Row::new("westeurope", T4, "9.99");
    let rows = vec![
        Row::new("westeurope", T4, "0.658"),
        row().with("productName", "Virtual Machines NCasT4 v3 Series Windows"),
        row().with("productName", "NCasT4 v3 Series Dedicated Host"),
        row().with("productName", "NCasT4 v3 Series CloudServices"),
        row().with("meterName", "NC4as T4 v3 Low Priority"),
        row().with("type", "Reservation").with("reservationTerm", "1 Year"),
        row().with("type", "DevTestConsumption"),
        row().raw("isPrimaryMeterRegion", "false"),
        row().raw("tierMinimumUnits", "100.0"),
        row().with("unitOfMeasure", "1/Month"),
        row()
            .with("effectiveStartDate", "2022-01-01T00:00:00Z")
            .with("effectiveEndDate", "2023-01-01T00:00:00Z"),
        row().with("effectiveStartDate", "2027-01-01T00:00:00Z"),
        row().raw("retailPrice", "0.0").with("effectiveStartDate", "2026-01-01T00:00:00Z"),
        row().with("armSkuName", ""),
    ];
    let server = service(rows);
    let report = run(&request(directory.path(), &server, &["westeurope"])).unwrap();
    assert_eq!(price(directory.path(), T4, "westeurope").0, "0.658 2026-11-15");
    let reasons: BTreeSet<SkipReason> = report.left_out.keys().copied().collect();
    let expected = [
        SkipReason::OtherSize,
        SkipReason::NotConsumption,
        SkipReason::Windows,
        SkipReason::Dedicated,
        SkipReason::CloudServices,
        SkipReason::LowPriority,
        SkipReason::NotPrimary,
        SkipReason::Tier,
        SkipReason::Unit,
        SkipReason::Zero,
        SkipReason::Ended,
        SkipReason::NotYet,
    ];
    assert_eq!(reasons, expected.into());
    assert_eq!(report.left_out[&SkipReason::NotConsumption], 2);
    assert!(report.contested.is_empty() && report.rounded.is_empty());
}

#[test]
fn the_report_contains_notes_about_the_prices() {
    let directory = tempfile::tempdir().unwrap();
    let server = service(vec![
        Row::new("westeurope", T4, "0.12345650").spot(),
        Row::new("westeurope", H200, "98.32"),
        Row::new("westeurope", H200, "99"),
        Row::new("westeurope", "Standard_ND999_Rubin_v9", "500"),
    ]);
    let listener = Heard::default();
    let report =
        refresh(&request(directory.path(), &server, &["westeurope"]), &Facts::embedded(), &listener).unwrap();
    assert_eq!(report.rounded, [T4.to_owned()].into());
    assert_eq!(report.contested, [H200.to_owned()].into());
    assert_eq!(report.unknown_sizes, ["Standard_ND999_Rubin_v9".to_owned()].into());
    assert_eq!(price(directory.path(), T4, "westeurope").1, "0.123457 2026-11-15");
    assert_eq!(price(directory.path(), H200, "westeurope").0, "99.00 2026-11-15");
    assert_eq!(listener.lines(), ["1 of 1: westeurope, 2 sizes"]);
}

#[test]
fn all_regions_of_the_tables_are_requested_if_none_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let embedded = Facts::embedded();
    let regions: BTreeSet<&str> = embedded.prices().regions().collect();
    let server = service(regions.iter().map(|region| Row::new(region, T4, "0.5")).collect());
    let report = run(&request(directory.path(), &server, &[])).unwrap();
    assert_eq!(requested_regions(&server), regions.into_iter().collect::<Vec<_>>());
    assert_eq!(report.changes.read, report.regions.len());
    assert_eq!(
        facts(directory.path()).prices().as_of.to_string(),
        "2026-11-15",
        "the whole table is of today"
    );
}
