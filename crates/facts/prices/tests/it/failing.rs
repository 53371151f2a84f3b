//! A service that fails: the error, and that nothing is lost.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cudock_base::Report as _;
use cudock_facts::Facts;
use cudock_http::{HttpErrorKind, RetryPolicy};
use cudock_prices::{PricesError, refresh};

use crate::list::{Heard, QUICK, Query, Row, answer, names, price, request, run, service, well};
use cudock_testkit::http::{Reply, Request, Server, Then};

const T4: &str = "Standard_NC4as_T4_v3";

fn rows() -> Vec<Row> {
    vec![Row::new("westeurope", T4, "0.658")]
}

/// A service whose first answers are these, and which then does well.
fn failing_first(first: Vec<Reply>) -> (Server, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let count = Arc::clone(&count);
        move |request| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            first.get(number).cloned().unwrap_or_else(|| well(request, &rows()))
        }
    });
    (server, count)
}

/// How a service fails that always answers so.
fn failure(
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (String, HttpErrorKind, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(reply);
    let error = run(&request(directory.path(), &server, &["westeurope"])).unwrap_err();
    assert!(error.is_outside(), "{error}");
    assert_eq!(names(directory.path()), ["azure_prices.lock"], "nothing is written");
    let PricesError::Service { region, error: http, .. } = &error else { panic!("{error:?}") };
    assert_eq!(region, "westeurope");
    assert!(error.to_string().starts_with("prices of westeurope, page 1: 127.0.0.1:"), "{error}");
    (http.reason.clone(), http.kind, error.hints())
}

#[test]
fn too_many_requests_are_retried_after_a_wait() {
    let directory = tempfile::tempdir().unwrap();
    let too_often = || Reply::new(429, "slow down").with("Retry-After", "0");
    let (server, _) = failing_first(vec![too_often(), too_often()]);
    let heard = Heard::default();
    refresh(&request(directory.path(), &server, &["westeurope"]), &Facts::embedded(), &heard).unwrap();
    let lines = heard.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let prefix = "page 1 of westeurope on";
    assert!(
        lines[0].starts_with(prefix)
            && lines[0].ends_with("server returned 429 Too Many Requests: slow down"),
        "{lines:?}"
    );
    assert_eq!(price(directory.path(), T4, "westeurope").0, "0.658 2026-11-15");
}

#[test]
fn retry_after_is_honored() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = failing_first(vec![Reply::new(429, "").with("Retry-After", "1")]);
    let mut request = request(directory.path(), &server, &["westeurope"]);
    request.connection.retries = RetryPolicy { max_delay: Duration::from_secs(5), ..QUICK };
    let begun = std::time::Instant::now();
    run(&request).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn transient_failures_are_retried() {
    for stumble in [
        Reply::new(500, ""),
        Reply::new(503, "").with("Retry-After", "0"),
        Reply::new(504, "<html>"),
        answer(&rows(), "null").cut_after(100),
        answer(&rows(), "null").chunked().cut_after(1000),
        // Cut by somebody on the way who says that it is whole.
        Reply::new(200, "{\"Items\":[{\"currencyCode\":\"US"),
        Reply::new(200, ""),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (server, count) = failing_first(vec![stumble.clone()]);
        run(&request(directory.path(), &server, &["westeurope"]))
            .unwrap_or_else(|error| panic!("{error} {stumble:?}"));
        assert_eq!(count.load(Ordering::SeqCst), 3, "{stumble:?}");
        assert_eq!(price(directory.path(), T4, "westeurope").0, "0.658 2026-11-15");
    }
}

#[test]
fn a_service_that_keeps_failing_is_given_up_with_a_hint() {
    let (reason, kind, hints) = failure(|_| Reply::new(429, "").with("Retry-After", "0"));
    assert_eq!(
        (reason.as_str(), kind),
        ("server returned 429 Too Many Requests", HttpErrorKind::Status(429))
    );
    assert_eq!(hints, ["try again in 0 s", "nothing was changed; re-run the same command to try again"]);
    let (reason, kind, _) = failure(|_| Reply::new(503, ""));
    assert_eq!(
        (reason.as_str(), kind),
        ("server returned 503 Service Unavailable", HttpErrorKind::Status(503))
    );
    let (reason, kind, _) = failure(|_| Reply::new(200, "{\"Items\":["));
    assert_eq!((reason.as_str(), kind), ("the response is truncated", HttpErrorKind::Transient));
    let (_, kind, hints) = failure(|_| answer(&rows(), "null").cut_after(50));
    assert_eq!(kind, HttpErrorKind::Transient);
    assert!(hints[0].contains("HTTPS_PROXY") && hints[0].contains("--endpoint"), "{hints:?}");
}

#[test]
fn an_unreachable_service_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request(directory.path(), &service(rows()), &["westeurope"]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    request.endpoint = format!("http://{gone}/api/retail/prices").parse().unwrap();
    let error = run(&request).unwrap_err();
    assert!(error.to_string().ends_with("connection refused"), "{error}");
    assert!(matches!(error, PricesError::Service { kept: 0, .. }), "{error:?}");
}

#[test]
fn a_silent_service_times_out() {
    let mut silent = answer(&rows(), "null").cut_after(10);
    silent.then = Then::Stall;
    let (reason, kind, _) = failure(move |_| silent.clone());
    assert_eq!((reason.as_str(), kind), ("timed out waiting for a response", HttpErrorKind::Transient));
}

#[test]
fn a_rejected_request_is_reported_with_the_message_of_the_service_and_not_retried() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(|_| {
        Reply::new(
            400,
            "{\"Error\":{\"Code\":\"BadRequest\",\"Message\":\"Invalid OData\\u001b[31m parameters supplied\"}}\x1b[31m",
        )
    });
    let error = run(&request(directory.path(), &server, &["westeurope"])).unwrap_err();
    assert!(error.to_string().contains("server returned 400 Bad Request: {\"Error\""), "{error}");
    assert!(!error.to_string().contains('\x1b'));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_response_that_is_not_a_price_list_is_rejected() {
    for (body, expected) in [
        ("[1, 2]", "not a price list"),
        ("{\"Items\": 7}", "not a price list"),
        ("{\"Items\":[], \"NextPageLink\": null} and more", "not a price list"),
        ("not json", "not a price list"),
        ("{\"BillingCurrency\":\"EUR\",\"Items\":[]}", "prices are in `EUR`, not in USD"),
    ] {
        let (reason, kind, hints) = failure(move |_| Reply::new(200, body));
        assert!(reason.starts_with(expected), "{body}: {reason}");
        assert_eq!(kind, HttpErrorKind::Malformed);
        assert!(hints[0].contains("--region"), "{hints:?}");
    }
    let (reason, ..) =
        failure(|_| Reply::new(200, "<html>sign in</html>").with("Content-Type", "text/html; charset=utf-8"));
    assert_eq!(reason, "got a web page, maybe from a proxy that requires a login");
}

#[test]
fn an_endless_response_is_rejected() {
    let mut body = b"{\"Items\":[".to_vec();
    body.resize(34 << 20, b' ');
    let reply = Reply::new(200, body);
    let (reason, ..) = failure(move |_| reply.clone());
    assert_eq!(reason, "the response is larger than 33554432 bytes");
}

#[test]
fn a_service_that_ignores_the_filter_is_noticed_on_the_first_page() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        let host = request.header("host").unwrap();
        answer(&[Row::new("eastus", T4, "0.526")], &format!("\"http://{host}/api/retail/prices?$skip=1000\""))
    });
    let error = run(&request(directory.path(), &server, &["westeurope"])).unwrap_err();
    assert!(error.to_string().contains("rows of `eastus` in the list of westeurope"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_invalid_price_ends_the_run_and_is_named() {
    let (reason, ..) = failure(|request| {
        let rows = [Row::new("westeurope", T4, "-1")];
        answer(if Query::of(request).machines { &rows } else { &[] }, "null")
    });
    assert_eq!(reason, "the retailPrice `-1` of `Standard_NC4as_T4_v3` is negative");
}

#[test]
fn a_redirect_to_another_host_is_rejected() {
    let elsewhere = service(rows());
    let location = format!("http://{}/api/retail/prices", elsewhere.host());
    let (reason, kind, _) = failure(move |request| {
        let query = request.path.split_once('?').unwrap().1;
        Reply::new(302, "").with("Location", format!("{location}?{query}"))
    });
    assert_eq!(
        (reason.as_str(), kind),
        ("refused a redirect to another host, `127.0.0.1`", HttpErrorKind::Refused)
    );
    let (reason, ..) = failure(|_| Reply::new(302, "").with("Location", "ftp://elsewhere.example/"));
    assert_eq!(reason, "refused a URL that is not http");
}

#[test]
fn a_next_page_on_another_host_is_not_requested() {
    let elsewhere = service(rows());
    let link = format!("\"http://{}/api/retail/prices?$skip=1000\"", elsewhere.host());
    let (reason, ..) = failure(move |_| answer(&rows(), &link));
    assert!(
        reason.starts_with("the next page `http://127.0.0.1:") && reason.contains("is not on 127.0.0.1:"),
        "{reason}"
    );
    assert!(elsewhere.requests().is_empty());
    for link in
        ["https://prices.azure.com:443/api/retail/prices?$skip=1000", "//elsewhere.example/x", "nonsense"]
    {
        let (reason, ..) = failure(move |_| answer(&rows(), &format!("\"{link}\"")));
        assert!(reason.starts_with("the next page"), "{reason}");
    }
}

#[test]
fn pages_that_form_a_cycle_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        let host = request.header("host").unwrap();
        let query = Query::of(request);
        let skip = if query.skip == 1000 { 2000 } else { 1000 };
        answer(&rows(), &format!("\"http://{host}/api/retail/prices?$filter={}&$skip={skip}\"", query.filter))
    });
    let error = run(&request(directory.path(), &server, &["westeurope"])).unwrap_err();
    assert!(
        error.to_string().contains("page 3") && error.to_string().contains("the pages form a cycle"),
        "{error}"
    );
}

#[test]
fn a_table_that_cannot_be_read_is_neither_used_nor_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("azure_prices.csv");
    fs::write(&path, "mine, and broken").unwrap();
    let server = service(rows());
    let error =
        refresh(&request(directory.path(), &server, &["westeurope"]), &Facts::embedded(), &()).unwrap_err();
    assert!(matches!(error, PricesError::Overlay { .. }) && !error.is_outside(), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine, and broken");
}

#[test]
fn invalid_names_are_rejected_before_any_request() {
    let directory = tempfile::tempdir().unwrap();
    let server = service(rows());
    let mut wrong = request(directory.path(), &server, &["x' or 1 eq 1"]);
    assert!(matches!(run(&wrong).unwrap_err(), PricesError::Region { .. }));
    wrong.regions = vec!["westeurope".to_owned()];
    wrong.sizes = vec!["Standard_NC4as_T4_v4".to_owned()];
    let error = run(&wrong).unwrap_err();
    assert!(error.hints()[0].contains("Standard_NC4as_T4_v3"), "{:?}", error.hints());
    assert!(server.requests().is_empty());
}
