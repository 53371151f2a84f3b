//! The watchdog as a deployment runs it, with a server in place of Azure.

use std::time::Duration;

use cudock_base::{Environment, Usd};
use cudock_project::TimeSpan;
use cudock_testkit::http::{Reply, Server};
use cudock_watchdog::{WatchError, WatchdogOptions, run};

/// A deployment whose budget is used up, in an Azure that answers like this.
fn delete(reaper: u16, group: u16) -> (Result<(), WatchError>, Vec<String>, Vec<String>) {
    let server = Server::start(move |request| {
        let status = match request.path.as_str() {
            path if path.starts_with("/identity") => {
                let token = "x".repeat(20);
                let body = format!(
                    r#"{{"access_token": "{token}", "expires_on": "4102444800", "token_type": "Bearer"}}"#
                );
                return Reply::new(200, body).with("Content-Type", "application/json");
            }
            path if path.contains("/triggers/") => reaper,
            _ => group,
        };
        Reply::new(status, "")
    });
    let base = format!("http://{}", server.host());
    let environment = Environment::of(
        "/nowhere",
        [
            ("CUDOCK_AZURE_RESOURCE_MANAGER", base.clone()),
            ("IDENTITY_ENDPOINT", format!("{base}/identity")),
            ("IDENTITY_HEADER", "x".repeat(10)),
        ],
    );
    let options = WatchdogOptions {
        subscription: "s".into(),
        run: "0123456789ab".into(),
        vm: None,
        idle: None,
        warm_up: TimeSpan(Duration::from_secs(600)),
        threshold: 5,
        budget: Some(Usd::default()),
        price: "3.67".parse().ok(),
        billed_since: None,
        port: None,
        output: None,
        interval: TimeSpan(Duration::from_secs(10)),
    };
    let mut log = Vec::new();
    let result = run(&options, &environment, |line| log.push(line.to_owned()));
    let requests = server.requests().into_iter().filter(|request| !request.path.starts_with("/identity"));
    (result, requests.map(|request| format!("{} {}", request.method, request.path)).collect(), log)
}

#[test]
fn the_identity_of_the_deployment_deletes_its_group() {
    let (result, requests, log) = delete(403, 202);
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert!(
        requests[0].starts_with("POST /subscriptions/s/resourceGroups/cudock-0123456789ab-reaper/"),
        "{requests:?}"
    );
    assert!(
        requests[1].starts_with("DELETE /subscriptions/s/resourceGroups/cudock-0123456789ab?"),
        "{requests:?}"
    );
    assert_eq!(log[0], "deleting the deployment: budget used up: $0.00 spent");
    assert!(!log.concat().contains("xxxxx"), "no token in the log: {log:?}");
}
