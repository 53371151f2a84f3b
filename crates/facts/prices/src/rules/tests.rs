use super::*;
use crate::api::page::Page;

/// A row as the service writes it, with some fields changed.
fn row_with(changes: &[(&str, &str)]) -> String {
    let mut fields: BTreeMap<&str, &str> = BTreeMap::from([
        ("currencyCode", "\"USD\""),
        ("tierMinimumUnits", "0.0"),
        ("retailPrice", "0.658"),
        ("unitPrice", "0.658"),
        ("armRegionName", "\"westeurope\""),
        ("location", "\"EU West\""),
        ("effectiveStartDate", "\"2021-04-01T00:00:00Z\""),
        ("meterName", "\"NC4as T4 v3\""),
        ("productName", "\"Virtual Machines NCasT4 v3 Series\""),
        ("skuName", "\"NC4as T4 v3\""),
        ("serviceName", "\"Virtual Machines\""),
        ("unitOfMeasure", "\"1 Hour\""),
        ("type", "\"Consumption\""),
        ("isPrimaryMeterRegion", "true"),
        ("armSkuName", "\"Standard_NC4as_T4_v3\""),
    ]);
    fields.extend(changes.iter().copied());
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{\"Items\":[{{{}}}]}}", fields.join(","))
}

fn judged(changes: &[(&str, &str)]) -> Result<String, String> {
    let page = row_with(changes);
    let page = Page::parse(page.as_bytes()).unwrap();
    let names = ["Standard_NC4as_T4_v3", "Standard_ND96isr_H200_v5"].map(str::to_owned);
    let sizes = Sizes::new(names, true);
    judge(&page.rows()[0], "westeurope", &sizes, "2026-11-15".parse().unwrap()).map(|verdict| match verdict {
        RowVerdict::Price(price) => {
            format!("{} {}{}", price.size, price.usd.nanos() / 1000, if price.spot { " spot" } else { "" })
        }
        RowVerdict::Unknown(name) => format!("unknown {name}"),
        RowVerdict::Skipped(reason) => format!("{reason:?}"),
    })
}

#[track_caller]
fn assert_judged(changes: &[(&str, &str)], expected: &str) {
    assert_eq!(judged(changes).as_deref(), Ok(expected), "{changes:?}");
}

#[test]
fn a_linux_row_by_the_hour_is_the_price_of_its_size() {
    assert_judged(&[], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("retailPrice", "6.58E-1")], "Standard_NC4as_T4_v3 658000");
    // Newer series carry the word Linux, and no series' name decides anything.
    assert_judged(&[("productName", "\"NCads A100 v4 Series Linux\"")], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("productName", "null"), ("skuName", "null")], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("tierMinimumUnits", "0")], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("effectiveEndDate", "\"2026-12-31T23:59:59Z\"")], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("effectiveStartDate", "\"2026-11-15T00:00:00Z\"")], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("effectiveStartDate", "null")], "Standard_NC4as_T4_v3 658000");
}

#[test]
fn rows_are_joined_on_the_size_s_own_name_whatever_the_sku_is_called() {
    for sku in ["\"Standard_NC4as_T4_v3\"", "\"NC4asT4v3\"", "\"\"", "\"NC36dsxlRTX6kv6\""] {
        assert_judged(&[("skuName", sku), ("meterName", sku)], "Standard_NC4as_T4_v3 658000");
    }
    assert_judged(&[("armSkuName", "\"standard_nc4as_t4_v3\"")], "Standard_NC4as_T4_v3 658000");
    assert_judged(&[("armSkuName", "\"\"")], "OtherSize");
    assert_judged(&[("armSkuName", "null")], "OtherSize");
    assert_judged(&[("armSkuName", "\"Standard_D4s_v5\"")], "OtherSize");
}

#[test]
fn an_unknown_gpu_size_is_reported_and_not_priced() {
    assert_judged(&[("armSkuName", "\"Standard_ND128isr_Rubin_v7\"")], "unknown Standard_ND128isr_Rubin_v7");
    assert_judged(&[("armSkuName", "\"Standard_NX\\u001b[31m\"")], "OtherSize");
    let windows = ("productName", "\"Virtual Machines NX Series Windows\"");
    assert_judged(&[("armSkuName", "\"Standard_NX1\""), windows], "Windows");
}

#[test]
fn spot_is_known_by_the_end_of_the_meter_s_or_the_sku_s_name() {
    assert_judged(&[("meterName", "\"NC4as T4 v3 Spot\"")], "Standard_NC4as_T4_v3 658000 spot");
    assert_judged(&[("skuName", "\"NC4as T4 v3 Spot\"")], "Standard_NC4as_T4_v3 658000 spot");
    assert_judged(&[("skuName", "\"Spotless NC4as\"")], "Standard_NC4as_T4_v3 658000");
}

#[test]
fn rows_that_are_not_hourly_prices_of_linux_machines_are_skipped() {
    for (field, value, expected) in [
        ("productName", "\"Virtual Machines NCasT4 v3 Series Windows\"", "Windows"),
        ("productName", "\"NCasT4 v3 Series Dedicated Host\"", "Dedicated"),
        ("productName", "\"NCasT4 v3 Series CloudServices\"", "CloudServices"),
        ("productName", "\"NCasT4 v3 Series Cloud Services\"", "CloudServices"),
        ("meterName", "\"NC4as T4 v3 Low Priority\"", "LowPriority"),
        ("skuName", "\"NC4as T4 v3 Low Priority\"", "LowPriority"),
        ("serviceName", "\"Azure Machine Learning\"", "Other"),
        // Reservations, and prices for tests.
        ("type", "\"DevTestConsumption\"", "NotConsumption"),
        ("reservationTerm", "\"3 Years\"", "NotConsumption"),
        ("type", "null", "NotConsumption"),
        // Only primary meters of the first tier count.
        ("isPrimaryMeterRegion", "false", "NotPrimary"),
        ("isPrimaryMeterRegion", "null", "NotPrimary"),
        ("tierMinimumUnits", "100.0", "Tier"),
        ("tierMinimumUnits", "0.5", "Tier"),
        ("tierMinimumUnits", "1e3", "Tier"),
        ("tierMinimumUnits", "\"0\"", "Tier"),
        ("unitOfMeasure", "\"100 Hours\"", "Unit"),
        ("unitOfMeasure", "\"1/Month\"", "Unit"),
        ("unitOfMeasure", "\"1 GB\"", "Unit"),
        ("unitOfMeasure", "null", "Unit"),
        ("retailPrice", "0", "Zero"),
        ("retailPrice", "0.0", "Zero"),
        ("retailPrice", "0E0", "Zero"),
        ("retailPrice", "0.0000004", "Zero"),
        // A price counts from its beginning to its end.
        ("effectiveEndDate", "\"2026-11-14T23:59:59Z\"", "Ended"),
        ("effectiveStartDate", "\"2026-12-01T00:00:00Z\"", "NotYet"),
    ] {
        assert_judged(&[(field, value)], expected);
    }
    let reservation =
        [("type", "\"Reservation\""), ("reservationTerm", "\"1 Year\""), ("retailPrice", "3504.0")];
    assert_judged(&reservation, "NotConsumption");
}

#[test]
fn a_response_that_ignores_the_filter_is_an_error() {
    let error = judged(&[("armRegionName", "\"eastus\"")]).unwrap_err();
    assert_eq!(error, "rows of `eastus` in the list of westeurope");
    assert!(judged(&[("armRegionName", "null")]).unwrap_err().contains("no region"));
    assert_eq!(judged(&[("currencyCode", "\"EUR\"")]).unwrap_err(), "prices are in `EUR`, not in USD");
    assert_judged(&[("armRegionName", "\"WestEurope\"")], "Standard_NC4as_T4_v3 658000");
}

#[test]
fn an_invalid_price_is_an_error_that_names_it() {
    for (price, expected) in [
        ("-0.1", "`-0.1` of `Standard_NC4as_T4_v3` is negative"),
        ("\"0.658\"", "is not a number"),
        ("{}", "is not a number"),
        ("1e12", "is larger than any price"),
        ("1e300", "is larger than any price"),
        ("null", "has no retailPrice"),
    ] {
        let error = judged(&[("retailPrice", price)]).unwrap_err();
        assert!(error.contains(expected), "{price}: {error}");
    }
    // Of a row that does not count it does not matter.
    assert_judged(&[("retailPrice", "null"), ("armSkuName", "\"Standard_D2\"")], "OtherSize");
}
