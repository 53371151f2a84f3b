//! How long preflight takes, with a server that takes 200 ms for each call and with one that
//! responds at once.
#![allow(clippy::unwrap_used, reason = "a measurement that fails panics")]

use cudock_facts::services::AzureService;
use std::time::{Duration, Instant};

use cudock_azure::preflight::{Candidate, PreflightRequest, gather, judge, queries};
use cudock_azure::{Call, ExistingResources};
use cudock_base::Date;
use cudock_facts::Facts;
use cudock_http::{Client, ClientOptions, Request};
use cudock_testkit::http::{Reply, Server};
use serde_json::Value;

const CALL: Duration = Duration::from_millis(200);
const PROMISED: Duration = Duration::from_secs(3);
/// Without waits for the network.
const PROMISED_ALONE: Duration = Duration::from_millis(100);
/// Maximum size of a response.
const MAX_RESPONSE: u64 = 1 << 20;

fn main() {
    let facts = Facts::embedded();
    let placements = [
        (AzureService::Vm, "Standard_NC4as_T4_v3"),
        (AzureService::Batch, "Standard_NC4as_T4_v3"),
        (AzureService::Ml, "Standard_NC4as_T4_v3"),
        (AzureService::ContainerApps, "Consumption-GPU-NC8as-T4"),
    ];
    for (what, targets, regions) in [
        ("virtual machines in 52 regions", &placements[..1], 52),
        ("all services in 52 regions", &placements[..], 52),
        ("all services in one region", &placements[..], 1),
    ] {
        let regions: Vec<String> = (0..regions).map(|index| format!("region{index:02}")).collect();
        let candidates = regions
            .iter()
            .flat_map(|region| targets.iter().map(|(service, size)| candidate(*service, size, region)));
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
        measure(what, &request, &facts, CALL, PROMISED);
        measure(what, &request, &facts, Duration::ZERO, PROMISED_ALONE);
    }
}

fn candidate(service: AzureService, size: &str, region: &str) -> Candidate {
    Candidate {
        service,
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

fn measure(what: &str, request: &PreflightRequest, facts: &Facts, call: Duration, promised: Duration) {
    let server = Server::start(move |_| Reply::new(200, r#"{"value": []}"#).keep_alive().after(call));
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
        response.json::<Value>(MAX_RESPONSE).map(|body| (status, Some(body)))
    };
    let started = Instant::now();
    let results = gather(request, facts, send);
    let queried = started.elapsed();
    let judging = Instant::now();
    let report = judge(request, &results, facts);
    let judged = judging.elapsed();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{what}: {} calls of {} ms in {:.0} ms, {} placements judged in {:.1} ms (limit {:.0} ms)",
        queries(request, facts).len(),
        call.as_millis(),
        millis(queried),
        report.candidates.len(),
        millis(judged),
        millis(promised)
    );
}
