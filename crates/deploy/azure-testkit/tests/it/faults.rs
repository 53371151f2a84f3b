//! Tokens and faults.

use std::process::Command;

use cudock_azure_testkit::{CloudSettings, Fault, Schedule, StandIn};
use cudock_base::Secret;
use cudock_http::Method;
use serde_json::json;

use crate::client::{Azure, prompt};

fn schedule(at: u64, fault: Fault) -> Schedule {
    Schedule { faults: vec![(at, fault)], comes_back: true }
}

#[test]
fn tokens_expire_and_are_for_one_api() {
    let Some(azure) = Azure::start(CloudSettings { token_lifetime: 3600, ..prompt() }) else { return };
    let group = azure.url("/resourceGroups/shared");
    assert_eq!(azure.send_with(&Method::GET, &group, None, &Secret::new("x")).unwrap().status, 401);
    let batch = azure.token_for("https://batch.core.windows.net/.default");
    let refused = azure.send_with(&Method::GET, &group, None, &batch).unwrap();
    assert_eq!(refused.code(), "InvalidAuthenticationTokenAudience");
    assert_eq!(azure.get("/resourceGroups/shared").status, 200);
    azure.pass(3600);
    assert_eq!(azure.get("/resourceGroups/shared").code(), "ExpiredAuthenticationToken");
}

#[test]
fn each_fault_does_what_it_says() {
    for (fault, first, exists) in [
        (Fault::ServerError { carried_out: false }, Some(500), false),
        (Fault::ServerError { carried_out: true }, Some(500), true),
        (Fault::DropAnswer, None, true),
        (Fault::CloseBefore, None, false),
        (Fault::Throttle { requests: 1 }, Some(429), false),
        (Fault::Conflict, Some(409), false),
        (Fault::ExpireTokens, Some(401), false),
        (Fault::Delay(100), Some(201), true),
    ] {
        let Some(azure) = Azure::start(prompt()) else { return };
        let before = azure.stand_in.now();
        azure.stand_in.set_schedule(schedule(0, fault));
        let sent =
            azure.send(&Method::PUT, &azure.url("/resourceGroups/g"), Some(&json!({"location": "eastus"})));
        assert_eq!(sent.ok().map(|answered| answered.status), first, "{fault:?}");
        assert_eq!(!azure.stand_in.leftovers().is_empty(), exists, "{fault:?}");
        let passed = azure.stand_in.now().millis().unwrap() - before.millis().unwrap();
        assert_eq!(passed, if fault == Fault::Delay(100) { 101_000 } else { 1000 }, "{fault:?}");
    }
}

#[test]
fn throttling_goes_on_for_some_requests() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.stand_in.set_schedule(schedule(1, Fault::Throttle { requests: 2 }));
    let statuses: Vec<u16> = (0..4).map(|_| azure.get("/resourceGroups/shared").status).collect();
    assert_eq!(statuses, [200, 429, 429, 200]);
}

#[test]
fn a_schedule_kills_the_client_before_or_after_its_request_is_carried_out() {
    let Some(_) = cudock_testkit::require_program("curl") else { return };
    for carried_out in [false, true] {
        let Some(stand_in) = StandIn::start(prompt()) else { return };
        stand_in.set_schedule(schedule(1, Fault::Kill { carried_out }));
        // The second of these requests is the one it dies of.
        let url = format!("{}/subscriptions", stand_in.plain_url());
        let run = stand_in.run(Command::new("curl").args(["-s", &url, &url, &url]));
        assert!(run.was_killed && run.output.status.code().is_none(), "{run:?}");
        assert_eq!(stand_in.requests().len(), 2);
    }
}
