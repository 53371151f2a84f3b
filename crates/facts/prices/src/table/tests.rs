use super::*;
use crate::region::{RegionPrices, SizePrice};

const HEAD: &str = "# as_of: 2026-11-14\n# source old = https://example.org/old\n# source azure-retail-prices = https://mirror.example/prices\n\
                    size,region,price,spot,price_source,price_date,spot_source,spot_date\n";

fn table(rows: &str) -> Prices {
    Prices::parse(&format!("{HEAD}{rows}")).unwrap()
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

/// A run that read these (size, price, spot) in a region.
fn run(region: &str, rows: &[(&str, Option<u64>, Option<u64>)], requested: &[&str]) -> Run {
    let sizes =
        rows.iter().map(|(size, price, spot)| SizePrice { size: (*size).into(), price: *price, spot: *spot });
    let region = RegionPrices {
        region: region.into(),
        day: day("2026-11-15"),
        sizes: sizes.collect(),
        meters: Vec::new(),
        pages: 1,
        rows: 1,
        left_out: BTreeMap::new(),
        rounded: BTreeSet::new(),
        contested: BTreeSet::new(),
        unknown: BTreeSet::new(),
    };
    let mut run: Run = serde_json::from_str(
        r#"{"form":1,"day":"2026-11-15","endpoint":"https://prices.azure.com/api/retail/prices","sizes":[],"regions":[]}"#,
    )
    .unwrap();
    run.regions.push(region);
    run.sizes = requested.iter().map(|size| (*size).to_owned()).collect();
    run
}

/// The table after a run, read back.
fn after(tables: &[&Prices], run: &Run) -> (Prices, Changes) {
    let mut table = PriceTable::of(tables.iter().copied()).unwrap();
    table.apply(run, day("2026-11-15"));
    table.count_kept();
    let text = table.text();
    table.check(&text, |_| true).unwrap();
    (Prices::parse(&text).unwrap(), table.changes)
}

fn shown(prices: &Prices) -> Vec<String> {
    let cell = |usd: Option<Usd>, date: Option<Date>, source: Option<&str>| match (usd, date, source) {
        (Some(usd), Some(date), Some(source)) => format!("{usd}@{date}/{source}"),
        _ => "-".to_owned(),
    };
    prices
        .rows()
        .map(|row| {
            let price = cell(row.price, row.price_date, row.price_source);
            let spot = cell(row.spot, row.spot_date, row.spot_source);
            format!("{} {} {price} {spot}", row.size, row.region)
        })
        .collect()
}

const OLD: &str = "A,eastus,1.5,0.5,old,2026-08-01,old,2026-08-01\n\
                   A,westeurope,2,0.7,old,2026-08-01,old,2026-08-01\n\
                   B,westeurope,3,,old,2026-08-01,,\n\
                   C,westeurope,9,,old,2025-01-01,,\n";

#[test]
fn regions_that_were_not_requested_keep_their_rows() {
    let (new, changes) =
        after(&[&table(OLD)], &run("westeurope", &[("A", Some(2_100_000), Some(700_000))], &[]));
    assert_eq!(
        shown(&new),
        [
            "A eastus 1.50@2026-08-01/old 0.50@2026-08-01/old",
            "A westeurope 2.10@2026-11-15/azure-retail-prices 0.70@2026-11-15/azure-retail-prices",
            "B westeurope 3.00@2026-08-01/old -",
        ],
        "a price that the list left out stays until it is too old"
    );
    assert_eq!(changes, Changes { read: 2, new: 0, changed: 1, kept: 3, gone: 1 });
    assert_eq!(new.as_of, day("2026-11-14"), "the other region was not held against the list");
}

#[test]
fn a_table_of_which_every_region_was_read_is_of_today() {
    let old = table("A,westeurope,2,0.7,old,2026-08-01,old,2026-08-01\n");
    let (new, _) = after(&[&old], &run("westeurope", &[("A", Some(1), None)], &[]));
    assert_eq!(new.as_of, day("2026-11-15"));
    let (new, _) = after(&[&old], &run("westeurope", &[("A", Some(1), None)], &["A"]));
    assert_eq!(new.as_of, day("2026-11-14"), "other sizes were not requested");
}

#[test]
fn sizes_that_were_not_requested_keep_their_rows_however_old() {
    let (new, changes) = after(&[&table(OLD)], &run("westeurope", &[("A", Some(2_100_000), None)], &["A"]));
    assert!(
        shown(&new).iter().any(|row| row.starts_with("C westeurope 9.00@2025-01-01")),
        "{:?}",
        shown(&new)
    );
    assert_eq!(changes.gone, 0);
}

#[test]
fn a_region_without_any_price_changes_nothing() {
    let old = table(OLD);
    let (new, changes) = after(&[&old], &run("westeurope", &[], &[]));
    assert_eq!(shown(&new), shown(&old));
    assert_eq!((changes.read, changes.gone), (0, 0));
}

#[test]
fn new_sizes_and_regions_are_added() {
    let (new, changes) = after(&[&table(OLD)], &run("mars", &[("Z", None, Some(5))], &[]));
    assert!(
        shown(&new).contains(&"Z mars - 0.000005@2026-11-15/azure-retail-prices".to_owned()),
        "{:?}",
        shown(&new)
    );
    assert_eq!((changes.new, changes.read), (1, 1));
}

#[test]
fn of_two_tables_the_newer_price_counts() {
    let embedded = table("A,eastus,1,,old,2026-08-01,,\nB,eastus,1,,old,2026-08-01,,\n");
    let overlay = table("A,eastus,2,,old,2026-09-01,,\nB,eastus,2,,old,2026-07-01,,\n");
    let (new, _) = after(&[&embedded, &overlay], &run("mars", &[("Z", Some(1), None)], &[]));
    assert_eq!(
        shown(&new)[..2],
        ["A eastus 2.00@2026-09-01/old -".to_owned(), "B eastus 1.00@2026-08-01/old -".to_owned()]
    );
}

#[test]
fn sources_of_one_name_and_two_addresses_stay_apart() {
    let old = table("A,eastus,1,,azure-retail-prices,2026-08-01,,\n");
    let (new, _) = after(&[&old], &run("westeurope", &[("A", Some(1), None)], &[]));
    let mut sources: Vec<(&str, &str)> =
        new.sources.iter().map(|source| (source.name.as_str(), source.address.as_str())).collect();
    sources.sort_unstable();
    assert_eq!(
        sources,
        [
            ("azure-retail-prices", "https://mirror.example/prices"),
            ("azure-retail-prices-2", "https://prices.azure.com/api/retail/prices"),
        ]
    );
}

#[test]
fn a_leftover_run_does_not_overwrite_newer_prices() {
    let newer = table("A,westeurope,2,,old,2026-11-20,,\n");
    let (new, _) = after(&[&newer], &run("westeurope", &[("A", Some(9), None)], &[]));
    assert_eq!(shown(&new), ["A westeurope 2.00@2026-11-20/old -"]);
}

#[test]
fn a_text_that_does_not_read_back_is_rejected() {
    let mut made = PriceTable::of([&table(OLD)]).unwrap();
    made.apply(&run("westeurope", &[("A", Some(5), None)], &[]), day("2026-11-15"));
    let text = made.text();
    assert!(made.check(&text, |_| true).is_ok());
    assert!(made.check(&text, |size| size != "A").unwrap_err().contains("A is not in azure_sizes"));
    assert!(
        made.check(&text.replace("0.000005", "0.000006"), |_| true)
            .unwrap_err()
            .contains("does not read back correctly")
    );
    let shorter: Vec<&str> = text.lines().filter(|line| !line.starts_with("B,")).collect();
    assert!(
        made.check(&shorter.join("\n"), |_| true).unwrap_err().contains("B in westeurope does not read back")
    );
    assert!(made.check(&text.replace("1.50", "1,50"), |_| true).is_err());
}
