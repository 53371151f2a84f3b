//! The watchdog as a deployment runs it, with a server in place of Azure.

use clap::{Args, Command, FromArgMatches};
use cudock_base::Environment;
use cudock_testkit::http::{Reply, Server};
use cudock_watchdog::{WatchError, WatchdogArgs, run};

/// The flags as they are typed.
fn parse(flags: &[&str]) -> Result<WatchdogArgs, clap::Error> {
    let command = WatchdogArgs::augment_args(Command::new("watchdog").no_binary_name(true));
    WatchdogArgs::from_arg_matches(&command.try_get_matches_from(flags)?)
}

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
    let args =
        parse(&["--subscription", "s", "--run", "0123456789ab", "--budget", "0", "--price", "3.67"]).unwrap();
    let mut log = Vec::new();
    let result = run(&args, &environment, |line| log.push(line.to_owned()));
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

#[test]
fn flags_set_the_limits() {
    let args = parse(&["--subscription", "s", "--run", "r", "--idle", "15m"]).unwrap();
    assert_eq!(args.idle.unwrap().0.as_secs(), 900);
    assert_eq!((args.threshold, args.interval.0.as_secs(), args.warm_up.0.as_secs()), (5, 10, 600));
    for wrong in [
        &["--subscription", "s", "--run", "r"][..],
        &["--subscription", "s", "--run", "r", "--budget", "5"],
        &["--subscription", "s", "--run", "r", "--idle", "15"],
        &["--subscription", "s", "--run", "r", "--idle", "1m", "--billed-since", "yesterday"],
        &["--run", "r", "--idle", "1m"],
    ] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}
