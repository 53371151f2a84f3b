//! Pages of any content: what is read of them holds, whatever they say.

use cudock_prices::read_page;
use proptest::prelude::*;

const T4: &str = "Standard_NC4as_T4_v3";

fn sizes() -> Vec<String> {
    vec![T4.to_owned(), "Standard_ND96isr_H200_v5".to_owned()]
}

/// A value that a field may have, sensible or not.
fn value(sensible: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(sensible).prop_map(str::to_owned),
        1 => proptest::sample::select(&["null", "true", "[]", "{}", "-1", "1e400", "\"\"", "\"\\u0000\"", "0.1"][..])
            .prop_map(str::to_owned),
        1 => "[a-zA-Z0-9 _.:-]{0,20}".prop_map(|text| format!("\"{text}\"")),
    ]
}

prop_compose! {
    fn row()(
        price in value(&["0.658", "6.58E-1", "0", "0.0000004", "98.32", "1234567.8901234"]),
        tier in value(&["0.0", "0", "100.0"]),
        region in value(&["\"westeurope\""]),
        start in value(&["\"2021-04-01T00:00:00Z\"", "\"2026-11-01\"", "\"2030-01-01T00:00:00Z\""]),
        end in value(&["null", "\"2020-01-01T00:00:00Z\""]),
        meter in value(&["\"NC4as T4 v3\"", "\"NC4as T4 v3 Spot\"", "\"Standard Data Transfer Out\"", "\"X Low Priority\""]),
        product in value(&["\"Virtual Machines NCasT4 v3 Series\"", "\"X Windows\"", "\"Rtn Preference: MGN\""]),
        service in value(&["\"Virtual Machines\"", "\"Bandwidth\""]),
        unit in value(&["\"1 Hour\"", "\"1 GB\""]),
        kind in value(&["\"Consumption\"", "\"Reservation\""]),
        primary in value(&["true", "false"]),
        size in value(&["\"Standard_NC4as_T4_v3\"", "\"standard_nd96isr_h200_v5\"", "\"Standard_NX\"", "\"Standard_D2\""]),
    ) -> String {
        format!(
            r#"{{"currencyCode":"USD","tierMinimumUnits":{tier},"retailPrice":{price},"armRegionName":{region},"effectiveStartDate":{start},"effectiveEndDate":{end},"meterName":{meter},"productName":{product},"skuName":{meter},"serviceName":{service},"unitOfMeasure":{unit},"type":{kind},"isPrimaryMeterRegion":{primary},"armSkuName":{size}}}"#
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_read_is_what_was_requested_and_above_zero(rows in proptest::collection::vec(row(), 0..6), cut in 0_usize..4000) {
        let page = format!("{{\"Items\":[{}],\"NextPageLink\":null}}", rows.join(","));
        let today = "2026-11-15".parse().unwrap();
        if let Ok((read, goes_on)) = read_page(page.as_bytes(), "westeurope", &sizes(), today) {
            prop_assert!(!goes_on);
            for row in &read.sizes {
                prop_assert!(sizes().contains(&row.size));
                let prices: Vec<u64> = [row.price, row.spot].into_iter().flatten().collect();
                prop_assert!(!prices.is_empty() && prices.iter().all(|micros| *micros > 0));
            }
            prop_assert!(read.unknown.iter().all(|name| name.starts_with("Standard_N") && !sizes().contains(name)));
            prop_assert!(read.meters.iter().all(|meter| meter.nanos > 0));
        }
        // A page that breaks off is never taken for a shorter one.
        if let Some(part) = page.as_bytes().get(..cut).filter(|part| part.len() < page.len()) {
            prop_assert!(read_page(part, "westeurope", &sizes(), today).is_err());
        }
    }
}
