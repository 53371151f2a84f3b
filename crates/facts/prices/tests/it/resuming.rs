//! Runs that end early, and runs that meet.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

use cudock_base::Report as _;
use cudock_facts::Facts;
use cudock_prices::{PricesError, refresh, unfinished};

use crate::list::{Heard, Query, Row, TODAY, names, price, request, requested_regions, run, service, well};
use cudock_testkit::http::{Reply, Server};

const T4: &str = "Standard_NC4as_T4_v3";
const REGIONS: [&str; 3] = ["eastus", "northeurope", "westeurope"];

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = REGIONS.iter().map(|region| Row::new(region, T4, "0.777")).collect();
    // Enough that the middle region has a second page.
    rows.extend((0..1200).map(|number| Row::new("northeurope", &format!("Standard_D{number}"), "0.1")));
    rows
}

/// A service whose middle region has a broken second page until it is healed.
fn failing_region() -> (Server, Arc<AtomicBool>) {
    let healed = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let healed = Arc::clone(&healed);
        move |request| {
            let query = Query::of(request);
            if query.region == "northeurope" && query.skip > 0 && !healed.load(Ordering::SeqCst) {
                return Reply::new(200, "{\"Items\": oops}");
            }
            well(request, &rows())
        }
    });
    (server, healed)
}

#[test]
fn a_broken_page_names_region_and_page_and_the_next_run_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let (server, healed) = failing_region();
    let request = request(directory.path(), &server, &REGIONS);
    let error = run(&request).unwrap_err();
    assert!(error.to_string().starts_with("prices of northeurope, page 2: "), "{error}");
    assert_eq!(error.hints()[1], "1 region was read and kept; re-run the same command to resume");
    assert_eq!(names(directory.path()), ["azure_prices.lock", "azure_prices.unfinished"]);
    let left = unfinished(directory.path(), TODAY.parse().unwrap()).unwrap().unwrap();
    assert_eq!((left.regions.as_slice(), left.usable), (["eastus".to_owned()].as_slice(), true));
    assert_eq!(requested_regions(&server), ["eastus", "northeurope", "northeurope+1000"]);

    healed.store(true, Ordering::SeqCst);
    let heard = Heard::default();
    let report = refresh(&request, &Facts::embedded(), &heard).unwrap();
    assert_eq!(
        requested_regions(&server)[3..],
        ["northeurope", "northeurope+1000", "westeurope"],
        "what was read is not requested again"
    );
    assert_eq!(heard.lines()[0], "resumed 1 of 3");
    let resumed: Vec<bool> = report.regions.iter().map(|line| line.resumed).collect();
    assert_eq!(resumed, [true, false, false]);
    for region in REGIONS {
        assert_eq!(price(directory.path(), T4, region).0, format!("0.777 {TODAY}"));
    }
    assert_eq!(names(directory.path()), ["azure_prices.csv", "azure_prices.lock"]);
}

#[test]
fn a_region_that_fails_can_be_left_out_and_what_was_read_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = failing_region();
    run(&request(directory.path(), &server, &REGIONS)).unwrap_err();
    run(&request(directory.path(), &server, &["westeurope"])).unwrap();
    assert_eq!(requested_regions(&server).iter().filter(|region| *region == "eastus").count(), 1);
    for region in ["eastus", "westeurope"] {
        assert_eq!(price(directory.path(), T4, region).0, format!("0.777 {TODAY}"));
    }
}

#[test]
fn a_failure_leaves_the_table_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let good = service(vec![Row::new("northeurope", T4, "0.5")]);
    run(&request(directory.path(), &good, &["northeurope"])).unwrap();
    let before = fs::read(directory.path().join("azure_prices.csv")).unwrap();
    let (server, _) = failing_region();
    run(&request(directory.path(), &server, &REGIONS)).unwrap_err();
    assert_eq!(fs::read(directory.path().join("azure_prices.csv")).unwrap(), before);
}

#[test]
fn an_unfinished_run_is_resumed_until_the_next_day() {
    for (today, again) in
        [("2026-11-15", false), ("2026-11-16", false), ("2026-11-17", true), ("2026-11-14", true)]
    {
        let directory = tempfile::tempdir().unwrap();
        let (server, healed) = failing_region();
        let mut request = request(directory.path(), &server, &REGIONS);
        run(&request).unwrap_err();
        healed.store(true, Ordering::SeqCst);
        request.today = today.parse().unwrap();
        run(&request).unwrap();
        assert_eq!(requested_regions(&server)[3..].contains(&"eastus".to_owned()), again, "{today}");
        // Each price has the day it was read.
        let expected = if again { today } else { TODAY };
        assert_eq!(price(directory.path(), T4, "eastus").0, format!("0.777 {expected}"));
    }
}

#[test]
fn an_unreadable_unfinished_run_is_restarted() {
    for text in ["", "{", "{\"form\":99}", "\u{0}\u{0}\u{0}"] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("azure_prices.unfinished"), text).unwrap();
        let server = service(rows());
        run(&request(directory.path(), &server, &["eastus"])).unwrap();
        assert_eq!(names(directory.path()), ["azure_prices.csv", "azure_prices.lock"], "{text:?}");
    }
}

#[test]
fn an_unfinished_run_that_requested_something_else_is_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = failing_region();
    run(&request(directory.path(), &server, &REGIONS)).unwrap_err();
    let mut other = request(directory.path(), &server, &["westeurope"]);
    other.sizes = vec![T4.to_owned()];
    run(&other).unwrap();
    for region in ["eastus", "westeurope"] {
        assert_eq!(price(directory.path(), T4, region).0, format!("0.777 {TODAY}"), "{region}");
    }
}

#[test]
fn two_runs_in_one_directory_are_serialized() {
    let directory = tempfile::tempdir().unwrap();
    let (arrived, first_is_in) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (arrived, may_go_on) = (Mutex::new(Some(arrived)), Mutex::new(may_go_on));
    let server = Server::start(move |request| {
        if let Some(arrived) = arrived.lock().unwrap().take() {
            arrived.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
        }
        well(request, &rows())
    });
    let mut patient = request(directory.path(), &server, &["eastus"]);
    patient.connection.timeout = std::time::Duration::from_secs(60);
    let (first, second) = (patient.clone(), patient);
    let heard = Arc::new(Heard::default());
    let one = thread::spawn(move || run(&first).map(|_| ()));
    first_is_in.recv().unwrap();
    let two = thread::spawn({
        let heard = Arc::clone(&heard);
        move || refresh(&second, &Facts::embedded(), &*heard).map(|_| ())
    });
    while heard.lines().is_empty() {
        thread::yield_now();
    }
    assert_eq!(heard.lines(), ["waiting"]);
    go_on.send(()).unwrap();
    one.join().unwrap().unwrap();
    two.join().unwrap().unwrap();
    assert_eq!(price(directory.path(), T4, "eastus").0, format!("0.777 {TODAY}"));
}

#[test]
fn a_read_only_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let server = service(rows());
    let error =
        refresh(&request(&file.join("below"), &server, &["eastus"]), &Facts::embedded(), &()).unwrap_err();
    assert!(matches!(error, PricesError::File(_)) && error.to_string().contains("below"), "{error}");
    assert!(server.requests().is_empty());
}
