//! What becomes of the tables that are there.

use std::fs;

use cudock_facts::Facts;
use cudock_facts::tables::{Meter, MeterKind};

use crate::list::{Row, TODAY, facts, names, price, request, run, service};

const T4: &str = "Standard_NC4as_T4_v3";

#[test]
fn regions_that_were_not_requested_keep_the_embedded_prices() {
    let directory = tempfile::tempdir().unwrap();
    let embedded = Facts::embedded();
    let before: Vec<_> = embedded.prices().rows().filter(|row| row.region != "westeurope").collect();
    let server = service(vec![Row::new("westeurope", T4, "0.999")]);
    let report = run(&request(directory.path(), &server, &["westeurope"])).unwrap();
    let after = facts(directory.path());
    let kept: Vec<_> = after.prices().rows().filter(|row| row.region != "westeurope").collect();
    let mut before = before;
    before.sort_by(|one, other| (one.size, one.region).cmp(&(other.size, other.region)));
    assert_eq!(kept, before);
    assert_eq!(price(directory.path(), T4, "westeurope").0, format!("0.999 {TODAY}"));
    assert_eq!(report.changes.read, 1);
    assert_eq!(after.prices().as_of, embedded.prices().as_of, "one region does not make the table new");
    assert_eq!(report.rows, after.prices().rows().count());
}

#[test]
fn regions_of_an_earlier_run_stay_when_another_is_requested() {
    let directory = tempfile::tempdir().unwrap();
    let server = service(vec![Row::new("westeurope", T4, "0.999"), Row::new("eastus", T4, "0.888")]);
    let mut request = request(directory.path(), &server, &["westeurope"]);
    run(&request).unwrap();
    request.today = "2026-12-24".parse().unwrap();
    request.regions = vec!["eastus".to_owned()];
    run(&request).unwrap();
    assert_eq!(price(directory.path(), T4, "westeurope").0, format!("0.999 {TODAY}"));
    assert_eq!(price(directory.path(), T4, "eastus").0, "0.888 2026-12-24");
}

#[test]
fn a_region_that_has_no_price_at_all_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = service(Vec::new());
    let report = run(&request(directory.path(), &server, &["atlantis"])).unwrap();
    assert!(report.table.is_none());
    assert_eq!((report.regions[0].sizes, report.changes.read), (0, 0));
    assert_eq!(names(directory.path()), ["azure_prices.lock"]);
}

#[test]
fn a_missing_directory_is_created() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("config/cudock/facts");
    let server = service(vec![Row::new("westeurope", T4, "0.999")]);
    let report = run(&request(&below, &server, &["westeurope"])).unwrap();
    assert_eq!(report.table.unwrap(), below.join("azure_prices.csv"));
}

const APPS: &str = "Azure Container Apps";

fn meters(region: &str, cluster_hour: &str) -> Vec<Row> {
    let egress = |tier: &str, price: &str| {
        Row::meter(region, "Bandwidth", "Rtn Preference: MGN", "Standard Data Transfer Out", "1 GB", price)
            .raw("tierMinimumUnits", tier)
    };
    let aks = "Azure Kubernetes Service";
    vec![
        Row::new(region, T4, "0.5"),
        Row::meter(region, APPS, APPS, "Standard NC T4 v3 GPU Usage", "1 Second", "9.1E-05"),
        Row::meter(region, APPS, APPS, "Standard vCPU Idle Usage", "1 Second", "4E-06"),
        Row::meter(region, aks, aks, "Standard Uptime SLA", "1 Hour", cluster_hour),
        egress("0.0", "0.0"),
        egress("100.0", "0.0871234567891"),
        egress("10240.0", "0.05"),
    ]
}

#[test]
fn known_meters_are_refreshed_region_by_region() {
    let directory = tempfile::tempdir().unwrap();
    let server = service([meters("eastus", "0.11"), meters("westeurope", "0.12")].concat());
    let mut request = request(directory.path(), &server, &["eastus"]);
    let report = run(&request).unwrap();
    let done = report.meters.unwrap();
    assert_eq!((done.read, done.file.is_some()), (4, true), "{:?}", done.left);
    request.regions = vec!["westeurope".to_owned()];
    request.today = "2026-12-01".parse().unwrap();
    run(&request).unwrap();

    let facts = facts(directory.path());
    let price = |service: &str, meter, gpu: Option<&str>, region: &str| {
        let row = facts.meters().price(service, meter, gpu, region).unwrap();
        (row.usd.to_string(), row.as_of.to_string())
    };
    let cluster = |region| price("aks", MeterKind::ClusterHour, None, region);
    assert_eq!(cluster("eastus"), ("0.11".to_owned(), TODAY.to_owned()));
    assert_eq!(cluster("westeurope"), ("0.12".to_owned(), "2026-12-01".to_owned()));
    assert_eq!(price("container-apps", MeterKind::GpuSecond, Some("T4"), "eastus").0, "0.000091");
    let sources = &facts.meters().table.sources;
    assert_eq!(sources["azure-retail-prices"], request.endpoint.to_string());
    let embedded = Facts::embedded();
    let untouched = embedded.meters().price("aks", MeterKind::ClusterHour, None, "northeurope").unwrap();
    assert_eq!(cluster("northeurope"), (untouched.usd.to_string(), untouched.as_of.to_string()));
    let tiers: Vec<(u64, Option<u64>, String)> = facts
        .meters()
        .tiers("network", MeterKind::EgressGb, None, "eastus")
        .iter()
        .map(|row| (row.above, row.free_per_month, row.usd.to_string()))
        .collect();
    assert_eq!(tiers, [(0, Some(100), "0.087123457".to_owned()), (10240, None, "0.05".to_owned())]);
}

#[test]
fn a_free_grant_that_the_list_lacks_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let name = "Standard Requests";
    let rows = vec![Row::new("eastus", T4, "0.5"), Row::meter("eastus", APPS, APPS, name, "1M", "0.41")];
    run(&request(directory.path(), &service(rows), &["eastus"])).unwrap();
    let facts = facts(directory.path());
    let row = facts.meters().price("container-apps", MeterKind::RequestsMillion, None, "eastus").unwrap();
    let embedded = Facts::embedded();
    let before =
        embedded.meters().price("container-apps", MeterKind::RequestsMillion, None, "eastus").unwrap();
    assert_eq!((row.usd.to_string().as_str(), row.free_per_month), ("0.41", before.free_per_month));
    assert!(before.free_per_month.is_some());
}

#[test]
fn a_meter_of_several_regions_is_refreshed_for_one() {
    let directory = tempfile::tempdir().unwrap();
    let embedded = Facts::embedded();
    let price = |facts: &Facts, region: &str| {
        let row = facts.meters().price("container-apps", MeterKind::VcpuSecond, None, region).unwrap();
        (row.usd.to_string(), row.regions.len(), row.free_per_month)
    };
    let is_vcpu = |row: &&Meter| row.service == "container-apps" && row.meter == MeterKind::VcpuSecond;
    let shared = embedded.meters().meter.iter().filter(is_vcpu).find(|row| row.regions.len() > 1).unwrap();
    let [one, other, ..] = shared.regions.as_slice() else { panic!("a row for several regions") };
    let (before, count, free) = price(&embedded, other);
    assert!(free.is_some());
    let name = "Standard vCPU Active Usage";
    let rows = vec![Row::new(one, T4, "0.5"), Row::meter(one, APPS, APPS, name, "1 Second", "2.9E-05")];
    run(&request(directory.path(), &service(rows), &[one])).unwrap();
    let facts = facts(directory.path());
    assert_eq!(price(&facts, one), ("0.000029".to_owned(), 1, free));
    assert_eq!(price(&facts, other), (before, count, free), "its neighbor in that row stays");
}

#[test]
fn a_file_of_meters_that_a_user_wrote_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("azure_meters.toml");
    let mine = "[table]\nas_of = \"2026-11-01\"\n";
    fs::write(&path, mine).unwrap();
    let report = run(&request(directory.path(), &service(meters("eastus", "0.11")), &["eastus"])).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), mine);
    let done = report.meters.unwrap();
    assert!(done.file.is_none() && done.left.unwrap().contains("was not written by cudock"));
    assert_eq!(
        price(directory.path(), T4, "eastus").0,
        format!("0.50 {TODAY}"),
        "the sizes are renewed all the same"
    );
}

#[test]
fn meters_of_two_mirrors_keep_their_sources_apart() {
    let directory = tempfile::tempdir().unwrap();
    let servers = [service(meters("eastus", "0.11")), service(meters("westeurope", "0.12"))];
    for (server, region) in servers.iter().zip(["eastus", "westeurope"]) {
        run(&request(directory.path(), server, &[region])).unwrap();
    }
    let facts = facts(directory.path());
    for (server, region) in servers.iter().zip(["eastus", "westeurope"]) {
        let row = facts.meters().price("aks", MeterKind::ClusterHour, None, region).unwrap();
        let addresses: Vec<&str> = facts.meters().table.resolve(&row.source).collect();
        assert_eq!(addresses, [format!("http://{}/api/retail/prices", server.host())]);
    }
}
