//! One bad request never costs those it shares a batch with.

use crate::serve_support::client::Ask;
use crate::serve_support::made::{times, twice};
use crate::serve_support::server::Stage;
use crate::serve_support::{occupy, receive_all, send_all, until_queued};
use cudock_testkit::onnx;

#[test]
fn a_malformed_request_is_refused_at_once_and_its_mates_are_answered() {
    let Some(stage) = Stage::new() else { return };
    stage.write("double.onnx", &times(2.0));
    let server = stage.serve("double.onnx", &[]);
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[[1, 1, 1, 1]]"));
    let bad = [
        ("ragged", "[[1, 2, 3, 4], [1, 2, 3]]"),
        ("too short", "[[1, 2, 3]]"),
        ("too long", "[1, 2, 3, 4, 5]"),
        ("not a number", "[[1, 2, NaN, 4]]"),
        ("a word", "[[1, 2, \"three\", 4]]"),
        ("a number beyond its type", "[[1, 2, 3, 1e60]]"),
        ("no end", "[[1, 2, 3, 4]"),
        ("nothing", ""),
        ("no rows", "[]"),
        ("too deep", "[[[[1, 2, 3, 4]]]]"),
    ];
    let mut waiting = Vec::new();
    for (number, (what, input)) in bad.into_iter().enumerate() {
        let good: Vec<Ask> =
            (0..15).map(|mate| Ask::predict(&format!("[[{number}, {mate}, 0.5, -1]]"))).collect();
        let (before, after) = good.split_at(7);
        waiting.extend(send_all(&server, before));
        let reply = server.ask(&Ask::predict(input));
        assert!((400..500).contains(&reply.status), "{what}: {} {}", reply.status, reply.text());
        assert!(!reply.json()["error"].as_str().unwrap().is_empty(), "{what}");
        waiting.extend(send_all(&server, after));
    }
    drop(held);
    first.receive().unwrap().ok();
    for (place, reply) in receive_all(&mut waiting).into_iter().enumerate() {
        let (number, mate) = (place / 15, place % 15);
        let right = serde_json::json!([[twice(number), twice(mate), 1.0, -2.0]]);
        assert_eq!(reply.ok().json()["prediction"], right);
    }
}

#[test]
fn a_row_the_engine_fails_on_fails_alone() {
    let Some(stage) = Stage::new() else { return };
    stage.write("gather.onnx", &onnx::gather());
    let server = stage.serve("gather.onnx", &["--max-batch", "32"]);
    let table = server.ask(&Ask::predict("[0, 1, 2, 3, 4, 5, 6, 7]")).ok().json()["prediction"].clone();
    let engine = server.engine();
    let held = server.hold_engine();
    let mut first = occupy(&server, &Ask::predict("[0]"));
    let bad = 5;
    let asks: Vec<Ask> = (0..16)
        .map(|number| {
            Ask::predict(&if number == bad { "[99]".to_owned() } else { format!("[{}]", number % 8) })
        })
        .collect();
    let mut waiting = send_all(&server, &asks);
    until_queued(&server, 16);
    drop(held);
    first.receive().unwrap().ok();
    for (number, reply) in receive_all(&mut waiting).into_iter().enumerate() {
        if number == bad {
            assert_eq!(reply.status, 500, "{}", reply.text());
            assert!(
                reply.json()["error"].as_str().unwrap().contains("out of data bounds"),
                "{}",
                reply.text()
            );
        } else {
            assert_eq!(reply.ok().json()["prediction"][0], table[number % 8]);
        }
    }
    assert_eq!(server.metric("cudock_failed_total"), 1);
    assert_eq!(server.engine(), engine, "an engine that refuses a batch is fit for the next");
    let (status, health) = server.health();
    assert_eq!((status, health["status"].as_str()), (200, Some("healthy")));
}
