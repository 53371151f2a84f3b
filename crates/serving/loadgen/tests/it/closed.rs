//! The closed loop against servers with various behaviors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudock_loadgen::payload::BenchProtocol;
use cudock_loadgen::{
    HttpClient, Load, LoadError, LoadRequest, LoadSettings, RequestOptions, prepare, record_expected,
};
use cudock_testkit::http::{Reply, Then};

use crate::support::{reply, request, run, server, settings, target};

const CLOSED: Load = Load::Closed { clients: 4 };

#[test]
fn a_fixed_delay_is_what_the_histogram_shows() {
    let address = server(|_| reply(200, "{}").after(Duration::from_millis(20)));
    let report = run(&settings(address, CLOSED), &[request(address)]);
    assert!(report.latency.p50_ms >= 19.9, "{report:?}");
    assert!(report.latency.max_ms >= report.latency.p99_ms && report.latency.p99_ms >= report.latency.p50_ms);
    // Four clients that wait 20 ms each time cannot get more.
    assert!(report.goodput_per_second > 0.0 && report.goodput_per_second <= 205.0, "{report:?}");
    assert_eq!(report.connections, 4);
    assert_eq!(report.statuses.get(&200), Some(&report.latency.count));
}

#[test]
fn chunks_and_pieces_are_put_together() {
    let address = server(|_| Reply {
        then: Then::KeepAlive,
        pieces: ["HTTP/1.1 200 OK\r\nTransfer-", "Encoding: chunked\r\n\r\n5\r\nhel", "lo\r\n0\r", "\n\r\n"]
            .map(|piece| piece.as_bytes().to_vec())
            .to_vec(),
        ..Reply::default()
    });
    let report = run(&settings(address, CLOSED), &[request(address)]);
    assert!(report.latency.count > 0 && report.broken.is_empty(), "{report:?}");
}

#[test]
fn truncated_responses_count_as_broken_and_the_client_continues() {
    let address = server(|number| {
        let reply = reply(200, "0123456789");
        if number % 3 == 2 { reply.cut_after(7) } else { reply }
    });
    let report = run(&settings(address, CLOSED), &[request(address)]);
    assert!(report.latency.count > 0, "{report:?}");
    let cut = report.broken.get("the connection was closed before the response was complete");
    assert!(cut.is_some_and(|count| *count > 0), "{report:?}");
}

#[test]
fn rejections_are_counted_separately() {
    let address = server(|number| reply([200, 429, 503, 500][usize::try_from(number % 4).unwrap()], "{}"));
    let report = run(&settings(address, CLOSED), &[request(address)]);
    assert!(report.latency.count > 0 && report.refused.count > 0 && report.failed.count > 0, "{report:?}");
    assert_eq!(report.refused.count, report.statuses[&429] + report.statuses[&503]);
    assert_eq!(report.failed.count, report.statuses[&500]);
    assert!(report.goodput_per_second < report.offered_per_second / 2.0, "{report:?}");
}

#[test]
fn a_server_that_closes_connections_gets_new_ones() {
    let address = server(|_| Reply {
        pieces: vec![b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end".to_vec()],
        ..Reply::default()
    });
    let report = run(&settings(address, CLOSED), &[request(address)]);
    assert!(report.latency.count > 0 && report.broken.is_empty(), "{report:?}");
}

#[test]
fn bodies_larger_than_the_socket_buffer_arrive_completely() {
    let address = server(|_| reply(200, &"x".repeat(1 << 20)));
    let body = vec![b'1'; 3 << 20];
    let big = LoadRequest::post(&target(address), "/", &[], &body, 1);
    let load = Load::Closed { clients: 2 };
    let report = run(&settings(address, load), &[big]);
    assert!(report.latency.count > 0 && report.broken.is_empty(), "{report:?}");
}

#[test]
fn threads_share_the_clients() {
    let address = server(|_| reply(200, "{}"));
    let both = LoadSettings { threads: 2, ..settings(address, Load::Closed { clients: 5 }) };
    let report = run(&both, &[request(address)]);
    assert_eq!(report.connections, 5);
    assert!(report.latency.count > 0);
}

#[test]
fn an_unreachable_server_is_reported() {
    // The address of a listener that is gone.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = run(&settings(address, CLOSED), &[request(address)]);
    assert_eq!(report.latency.count, 0);
    assert!(report.broken.get("the connection was refused").is_some_and(|count| *count > 0), "{report:?}");
}

#[test]
fn responses_to_other_requests_are_detected() {
    static MIXED_UP: AtomicBool = AtomicBool::new(false);
    let address = server(|_| {
        let number = if MIXED_UP.load(Ordering::SeqCst) { 2 } else { 1 };
        reply(200, &format!("{{\"prediction\": [[{number}.0]], \"device\": \"cpu\"}}"))
    });
    let mut requests = vec![request(address)];
    let mut client = HttpClient::new(&target(address), address, Duration::from_secs(10));
    record_expected(&mut client, &mut requests, None).unwrap();
    let checking = LoadSettings { check_every: 3, ..settings(address, CLOSED) };
    let right = run(&checking, &requests);
    assert!(right.checked > 0 && right.wrong == 0, "{right:?}");
    MIXED_UP.store(true, Ordering::SeqCst);
    let mixed = run(&checking, &requests);
    assert!(mixed.wrong > 0 && mixed.wrong == mixed.checked, "{mixed:?}");
}

#[test]
fn a_rejected_first_request_shows_the_servers_message() {
    let address = server(|_| reply(422, r#"{"error": "input[0]: 3 numbers, not 4"}"#));
    let mut client = HttpClient::new(&target(address), address, Duration::from_secs(10));
    let fault = record_expected(&mut client, &mut [request(address)], None).unwrap_err();
    assert!(matches!(fault, LoadError::Refused { status: 422, .. }));
    assert_eq!(
        fault.to_string(),
        "the server rejected the request to /predict: 422 input[0]: 3 numbers, not 4"
    );
}

#[test]
fn nothing_to_send_is_an_error() {
    let address = server(|_| reply(200, "{}"));
    assert!(cudock_loadgen::run(&settings(address, CLOSED), &[]).is_err());
}

#[test]
fn raw_responses_of_an_undescribed_model_are_compared_as_numbers() {
    // As FP32: two neighbors near 3, and 12.
    for (other, is_wrong) in [("A@@@", false), ("@@@A", true)] {
        let address = server(move |number| reply(200, if number % 2 == 0 { "@@@@" } else { other }));
        let options = RequestOptions {
            protocol: BenchProtocol::Raw,
            model_name: None,
            shapes: &["1".parse().unwrap()],
            dtype: Some("FP32"),
            body: None,
            headers: &[],
            rows: &[1],
            bodies: 1,
            seed: 1,
        };
        let requests = prepare(&options, &target(address)).unwrap().requests;
        let report = run(&LoadSettings { check_every: 1, ..settings(address, CLOSED) }, &requests);
        assert!(report.checked > 0);
        assert_eq!(report.wrong > 0, is_wrong, "{report:?}");
    }
}
