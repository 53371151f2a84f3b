//! `cudock prices` as a user types it, against a stand-in for the price service.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use cudock_testkit::http::{Reply, Request, Server};

use crate::support::{self, code, json, schema, shown};

const T4: &str = "Standard_NC4as_T4_v3";

/// A price service on this machine. It is gone when dropped.
struct Service {
    server: Server,
}

impl Service {
    /// The reply depends on the region, and on whether its machines are requested.
    fn start(answer: impl Fn(&str, bool) -> Reply + Send + Sync + 'static) -> Self {
        let server = Server::start(move |request| {
            let (region, machines) = question(request);
            answer(&region, machines)
        });
        Self { server }
    }

    fn endpoint(&self) -> String {
        format!("http://{}/api/retail/prices", self.server.host())
    }

    /// The regions whose machines were requested, in order.
    fn requests(&self) -> Vec<String> {
        let questions = self.server.requests().iter().map(question).collect::<Vec<_>>();
        questions.into_iter().filter_map(|(region, machines)| machines.then_some(region)).collect()
    }
}

/// The region of a request, and whether it is for machines.
fn question(request: &Request) -> (String, bool) {
    let path = request.path.replace("%20", " ").replace("%27", "'");
    let region = path.split("armRegionName eq '").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    (region, path.contains("serviceName eq 'Virtual Machines'"))
}

/// A page with T4's price and Spot price in a region.
fn page(region: &str, price: &str, spot: &str) -> Reply {
    let row = |price: &str, name: &str| {
        format!(
            r#"{{"currencyCode":"USD","tierMinimumUnits":0.0,"retailPrice":{price},"unitPrice":{price},"armRegionName":"{region}","location":"EU West","effectiveStartDate":"2021-04-01T00:00:00Z","meterId":"cfd5e14f-6efd-5839-aac9-a94673bfdb8c","meterName":"{name}","productId":"DZH318Z0DF49","skuId":"DZH318Z0DF49/002Z","availabilityId":null,"productName":"Virtual Machines NCasT4 v3 Series","skuName":"{name}","serviceName":"Virtual Machines","serviceId":"DZH313Z7MMC8","serviceFamily":"Compute","unitOfMeasure":"1 Hour","type":"Consumption","isPrimaryMeterRegion":true,"armSkuName":"{T4}","savingsPlan":[{{"term":"1 Year","unitPrice":0.4819192,"retailPrice":0.4819192}}]}}"#
        )
    };
    list(&[row(price, "NC4as T4 v3"), row(spot, "NC4as T4 v3 Spot")])
}

fn list(rows: &[String]) -> Reply {
    let body = format!(
        r#"{{"BillingCurrency":"USD","CustomerEntityId":"Default","CustomerEntityType":"Retail","Items":[{}],"NextPageLink":null,"Count":{}}}"#,
        rows.join(","),
        rows.len()
    );
    Reply::new(200, body).with("Content-Type", "application/json; charset=utf-8")
}

/// A service that has T4's prices in every region, and no meters.
fn well() -> Service {
    Service::start(|region, machines| if machines { page(region, "0.7777", "0.1111") } else { list(&[]) })
}

/// The command, with a configuration of its own.
fn cudock(config: &Path, args: &[&str]) -> Command {
    let mut command = support::cudock(args);
    command.env("XDG_CONFIG_HOME", config).env_remove("CUDOCK_PRICES_URL");
    command
}

fn run(config: &Path, args: &[&str]) -> Output {
    schema::output(&mut cudock(config, args))
}

fn refresh(config: &Path, service: &Service, args: &[&str]) -> Output {
    let endpoint = service.endpoint();
    run(config, &[&["prices", "refresh", "--endpoint", &endpoint], args].concat())
}

/// Price and date of T4 in a region, as `facts size` has them.
fn fact(config: &Path, region: &str) -> (f64, String) {
    let output = run(config, &["facts", "size", T4, "--region", region, "--format", "json"]);
    let row = &json(&output)["rows"][0]["prices"][0];
    (row["price"].as_f64().unwrap(), row["price_date"].as_str().unwrap().to_owned())
}

#[test]
fn after_a_refresh_every_verb_has_the_new_price_with_its_date() {
    let config = tempfile::tempdir().unwrap();
    let service = well();
    let before = fact(config.path(), "westeurope");
    let output = refresh(config.path(), &service, &["--region", "westeurope"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("2 prices of 1 region read from http://127.0.0.1:"), "{text}");
    assert!(text.contains("region 1 of 1: westeurope, 1 size, 2 rows read"), "{text}");
    assert!(config.path().join("cudock/facts/azure_prices.csv").is_file());
    assert_eq!(fact(config.path(), "westeurope"), (0.7777, "2026-11-15".to_owned()));
    assert_ne!(fact(config.path(), "westeurope"), before);
    let sheet = shown(&run(config.path(), &["facts", "size", T4, "--region", "westeurope"]));
    assert!(sheet.contains("westeurope $0.7777, Spot $0.1111 (2026-11-15)"), "{sheet}");
    let other = fact(config.path(), "eastus");
    assert!(other.1.as_str() < "2026-11-15", "a region that was not requested keeps its price: {other:?}");
}

#[test]
fn the_new_table_goes_into_the_facts_directory() {
    let (config, facts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = facts.path().join("made");
    let service = well();
    let args = ["--facts", directory.to_str().unwrap(), "prices", "refresh", "--region", "eastus"];
    let output = cudock(config.path(), &args).env("CUDOCK_PRICES_URL", service.endpoint()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(directory.join("azure_prices.csv").is_file() && !config.path().join("cudock").exists());
    assert!(
        (fact(config.path(), "eastus").0 - 0.526).abs() < 1e-9,
        "without --facts the embedded one counts"
    );
    let args = ["--facts", directory.to_str().unwrap(), "facts", "size", T4, "--region", "eastus"];
    assert!(shown(&run(config.path(), &args)).contains("$0.7777"));
}

#[test]
fn the_json_report_is_one_object() {
    let config = tempfile::tempdir().unwrap();
    let service = well();
    let args = ["--region", "eastus", "--region", "westeurope", "--size", T4, "--format", "json"];
    let output = refresh(config.path(), &service, &args);
    let report = json(&output);
    assert_eq!((report["schema"].as_u64(), report["day"].as_str()), (Some(1), Some("2026-11-15")));
    assert_eq!(report["changes"]["read"], 4);
    assert_eq!(report["regions"][1]["region"], "westeurope");
    assert_eq!(report["regions"][1]["resumed"], false);
    assert!(report["table"].as_str().unwrap().ends_with("azure_prices.csv"));
}

#[test]
fn the_status_shows_the_age_of_the_table_and_of_the_overlay() {
    let config = tempfile::tempdir().unwrap();
    let status = shown(&run(config.path(), &["prices"]));
    assert!(status.contains("overlay   none; `cudock prices refresh` creates one in "), "{status}");
    assert!(status.contains("prices from karpenter-provider-azure, 2026-06-18"), "{status}");
    assert!(status.contains("westeurope"), "{status}");
    let service = well();
    assert_eq!(code(&refresh(config.path(), &service, &["--region", "eastus"])), 0);
    let report = json(&run(config.path(), &["prices", "--format", "json"]));
    let source = report["table"]["sources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|source| source["name"] == "azure-retail-prices");
    let source = source.unwrap();
    assert_eq!((&source["prices"], &source["newest"]), (&2.into(), &"2026-11-15".into()));
    assert_eq!(source["address"], service.endpoint());
    assert!(report["overlay"]["path"].as_str().unwrap().ends_with("azure_prices.csv"));
    assert_eq!(report["overlay"]["rows"], report["table"]["rows"]);
    assert_eq!(report["unfinished"], serde_json::Value::Null);
}

#[test]
fn too_many_requests_are_reported_and_retried() {
    let config = tempfile::tempdir().unwrap();
    let first = Mutex::new(true);
    let service = Service::start(move |region, machines| {
        if std::mem::take(&mut *first.lock().unwrap()) {
            return Reply::new(429, "").with("Retry-After", "0");
        }
        if machines { page(region, "0.7777", "0.1111") } else { list(&[]) }
    });
    let output = refresh(config.path(), &service, &["--region", "eastus"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(
        shown(&output).contains("server returned 429 Too Many Requests; retrying in 0.0 s"),
        "{}",
        shown(&output)
    );
}

#[test]
fn a_broken_region_exits_with_3_and_the_same_command_resumes() {
    let config = tempfile::tempdir().unwrap();
    let broken = Arc::new(AtomicBool::new(true));
    let service = Service::start({
        let broken = Arc::clone(&broken);
        move |region, machines| match (region, machines) {
            ("northeurope", true) if broken.load(Ordering::SeqCst) => Reply::new(200, "{\"Items\": ?}"),
            (_, true) => page(region, "0.7777", "0.1111"),
            (_, false) => list(&[]),
        }
    });
    let args = ["--region", "eastus", "--region", "northeurope", "--region", "westeurope"];
    let output = refresh(config.path(), &service, &args);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("error: prices of northeurope, page 1: 127.0.0.1:"), "{text}");
    assert!(text.contains("not a price list"), "{text}");
    assert!(text.contains("hint: 1 region was read and kept; re-run the same command to resume"), "{text}");
    let status = shown(&run(config.path(), &["prices"]));
    assert!(status.contains("unfinished  a run of 2026-11-15 that read 1 region;"), "{status}");
    broken.store(false, Ordering::SeqCst);
    let output = refresh(config.path(), &service, &args);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(
        shown(&output).contains("resuming an earlier run that read 1 of 3 regions"),
        "{}",
        shown(&output)
    );
    assert_eq!(service.requests(), ["eastus", "northeurope", "northeurope", "westeurope"]);
}

#[test]
fn a_run_that_is_killed_between_regions_is_resumed() {
    let config = tempfile::tempdir().unwrap();
    let (reached, second_region) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let gates = Mutex::new(VecDeque::from([(reached, released)]));
    let service = Service::start(move |region, machines| {
        if region == "northeurope" && machines {
            // The first to come here waits until its client is dead.
            if let Some((reached, released)) = gates.lock().unwrap().pop_front() {
                reached.send(()).unwrap();
                let _ = released.recv();
            }
        }
        if machines { page(region, "0.7777", "0.1111") } else { list(&[]) }
    });
    let endpoint = service.endpoint();
    let args = [
        "prices",
        "refresh",
        "--endpoint",
        &endpoint,
        "--region",
        "eastus",
        "--region",
        "northeurope",
        "--region",
        "westeurope",
    ];
    let mut child = cudock(config.path(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    second_region.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(release);
    let directory = config.path().join("cudock/facts");
    assert!(!directory.join("azure_prices.csv").exists(), "the table is written at the end");
    let output = run(config.path(), &args);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let requests = service.requests();
    assert_eq!(requests, ["eastus", "northeurope", "northeurope", "westeurope"], "eastus is requested once");
    for region in ["eastus", "northeurope", "westeurope"] {
        assert_eq!(fact(config.path(), region), (0.7777, "2026-11-15".to_owned()));
    }
    let mut left: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["azure_prices.csv", "azure_prices.lock"]);
}

#[test]
fn a_misspelled_region_is_reported_and_nothing_is_written() {
    let config = tempfile::tempdir().unwrap();
    let service = Service::start(|_, _| list(&[]));
    let output = refresh(config.path(), &service, &["--region", "westeurop"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("note: the list has no price for westeurop"), "{text}");
    assert!(text.contains("did you mean westeurope"), "{text}");
    assert!(!config.path().join("cudock/facts/azure_prices.csv").exists());
}

#[test]
fn invalid_arguments_are_rejected() {
    let config = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["--region", "x' or 1 eq 1"][..], "is not the name of a region, such as westeurope"),
        (&["--size", "Standard_NC4as_T4_v4"][..], "did you mean `Standard_NC4as_T4_v3`"),
        (&["--currency", "EUR"][..], "possible values: USD"),
        (&["--endpoint", "http://prices.azure.com/x"][..], "uses plain http, which is not secure"),
        (&["--endpoint", "https://me:secret@mirror.example/"][..], "contains a user name"),
    ] {
        let output = run(config.path(), &[&["prices", "refresh"], args].concat());
        let text = shown(&output);
        assert_eq!(code(&output), 2, "{text}");
        assert!(text.contains(expected) && !text.contains("secret"), "{args:?}: {text}");
    }
}

#[test]
fn an_unreachable_list_exits_with_3_and_a_hint() {
    let config = tempfile::tempdir().unwrap();
    let service = Service::start(|_, _| Reply::new(404, "no such list"));
    let output = refresh(config.path(), &service, &["--region", "eastus"]);
    let text = shown(&output);
    assert_eq!(code(&output), 3, "{text}");
    assert!(text.contains("server returned 404 Not Found: no such list"), "{text}");
    assert!(text.contains("hint: check that 127.0.0.1:"), "{text}");
    assert!(text.contains("hint: nothing was changed; re-run the same command to try again"), "{text}");
}
