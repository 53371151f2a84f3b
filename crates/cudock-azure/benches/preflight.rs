//! How long preflight takes for all services of all regions, with a server that takes 200 ms for each call.
#![allow(clippy::unwrap_used, reason = "a measurement that fails panics")]

use std::time::{Duration, Instant};

use cudock_azure::preflight::{Candidate, PreflightRequest, gather, judge, queries};
use cudock_azure::{Call, ExistingResources, Target};
use cudock_base::Date;
use cudock_facts::Facts;
use cudock_http::{Client, ClientOptions, Request};
use cudock_testkit::http::{Reply, Server};
use serde_json::Value;

const CALL: Duration = Duration::from_millis(200);
const PROMISED: Duration = Duration::from_secs(3);
/// Bytes of an answer, at most.
const MAX_ANSWER: u64 = 1 << 20;

fn main() {
    let facts = Facts::embedded();
    let regions: Vec<String> = (0..52).map(|index| format!("region{index:02}")).collect();
    let placements = [
        (Target::Vm, "Standard_NC4as_T4_v3"),
        (Target::Batch, "Standard_NC4as_T4_v3"),
        (Target::Ml, "Standard_NC4as_T4_v3"),
        (Target::ContainerApps, "Consumption-GPU-NC8as-T4"),
    ];
    for (what, targets) in [("virtual machines", &placements[..1]), ("all services", &placements[..])] {
        let candidates = regions
            .iter()
            .flat_map(|region| targets.iter().map(|(target, size)| candidate(*target, size, region)));
        let request = PreflightRequest {
            subscription: "s".to_owned(),
            signed_in_as: "az".to_owned(),
            today: Date::today(),
            expires: Date::today(),
            existing: ExistingResources::default(),
            pull_identity: None,
            pull: None,
            candidates: candidates.collect(),
        };
        measure(what, &request, &facts);
    }
}

fn candidate(target: Target, size: &str, region: &str) -> Candidate {
    Candidate {
        target,
        size: Some(size.to_owned()),
        region: region.to_owned(),
        zone: None,
        instances: 1,
        cpus: 4.0,
        is_spot: false,
        serves: false,
        price: None,
        image: None,
    }
}

fn measure(what: &str, request: &PreflightRequest, facts: &Facts) {
    let server = Server::start(|_| Reply::new(200, r#"{"value": []}"#).keep_alive().after(CALL));
    let client = Client::new(&ClientOptions::default()).unwrap();
    let base = format!("http://{}", server.host());
    let send = |call: &Call| {
        let request = Request::new(call.method.clone(), format!("{base}{}", call.path));
        let request = match &call.body {
            Some(body) => request.json(&body.expose())?,
            None => request,
        };
        let mut response = client.send(&request)?;
        let status = response.status();
        response.json::<Value>(MAX_ANSWER).map(|body| (status, Some(body)))
    };
    let started = Instant::now();
    let answers = gather(request, facts, send);
    let asked = started.elapsed();
    let judging = Instant::now();
    let report = judge(request, &answers, facts);
    let judged = judging.elapsed();
    println!(
        "{what} in 52 regions: {} calls of {} ms in {:.2} s (limit {} s); {} placements judged in {:.1} ms",
        queries(request, facts).len(),
        CALL.as_millis(),
        asked.as_secs_f64(),
        PROMISED.as_secs(),
        report.candidates.len(),
        judged.as_secs_f64() * 1000.0
    );
}
