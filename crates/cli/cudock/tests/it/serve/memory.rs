//! Memory does not grow with the number of requests.

use crate::serve_support::client::Ask;
use crate::serve_support::made::Random;
use crate::serve_support::on_threads;
use crate::serve_support::server::{Stage, resident};
use cudock_testkit::onnx;

const CONNECTIONS: usize = 8;
/// Requests that are under way on one connection at once.
const AHEAD: usize = 10;

#[test]
fn memory_is_flat_over_all_requests() {
    let Some(stage) = Stage::alone() else { return };
    let long = !cfg!(debug_assertions) || std::env::var_os("CUDOCK_LONG_TESTS").is_some();
    let requests: usize = if long { 200_000 } else { 20_000 };
    stage.write("tiny.onnx", &onnx::tiny());
    let server = stage.serve("tiny.onnx", &["--queue-time", "60s"]);
    let engine = server.engine();
    // Requests of one to eight rows, one in thirty of them wrong.
    let mut random = Random::new(9);
    let row = |random: &mut Random| {
        let numbers: Vec<String> = (0..64).map(|_| random.unit().to_string()).collect();
        format!("[{}]", numbers.join(","))
    };
    let asks: Vec<(u16, Ask)> = (0..60)
        .map(|number| {
            if number % 30 == 29 {
                return (400, Ask::predict("[[1, 2], [3]]"));
            }
            let rows: Vec<String> = (0..=number % 8).map(|_| row(&mut random)).collect();
            (200, Ask::predict(&format!("[{}]", rows.join(","))))
        })
        .collect();
    let quarter = |_| {
        on_threads(CONNECTIONS, |number| {
            let mut connection = server.connect();
            for turn in 0..requests / 4 / CONNECTIONS / AHEAD {
                let pick = |place: usize| &asks[(number * 7 + turn * AHEAD + place) % asks.len()];
                (0..AHEAD).for_each(|place| connection.send(&pick(place).1).unwrap());
                for place in 0..AHEAD {
                    assert_eq!(connection.receive().unwrap().status, pick(place).0);
                }
            }
        });
        (resident(server.pid()), resident(engine))
    };
    let sizes: Vec<(u64, u64)> = (0..4).map(quarter).collect();
    eprintln!("bytes of server and engine after each quarter of {requests} requests: {sizes:?}");
    assert_eq!(server.engine(), engine);
    for (what, first, last) in [("server", sizes[0].0, sizes[3].0), ("engine", sizes[0].1, sizes[3].1)] {
        assert!(last * 5 < first * 6, "the {what} grew from {first} to {last} bytes");
    }
    assert_eq!(server.metric("cudock_held_bytes"), 0);
}
