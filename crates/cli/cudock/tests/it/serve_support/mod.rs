//! Support for the tests of `cudock serve`.

pub mod client;
pub mod made;
pub mod server;
pub mod tls;
pub mod values;

use std::thread;
use std::time::Duration;

use client::{Ask, Connection, Reply};
use server::{Server, eventually};

/// Sends each request on a connection of its own, in this order, and leaves them all waiting for their replies.
#[track_caller]
pub fn send_all(server: &Server, asks: &[Ask]) -> Vec<Connection> {
    asks.iter()
        .map(|ask| {
            let mut connection = server.connect();
            connection.send(ask).unwrap();
            connection
        })
        .collect()
}

/// The replies to requests sent before.
#[track_caller]
pub fn receive_all(connections: &mut [Connection]) -> Vec<Reply> {
    connections.iter_mut().map(|connection| connection.receive().unwrap()).collect()
}

/// Sends a request that an engine held still begins to run, so that those after it wait.
#[track_caller]
pub fn occupy(server: &Server, ask: &Ask) -> Connection {
    let mut connection = server.connect();
    connection.send(ask).unwrap();
    // Between its arrival and the queue a request looks as if it were with the engine; on a busy machine that lasts.
    eventually("the request is with the engine", || {
        (0..5).all(|_| {
            thread::sleep(Duration::from_millis(10));
            server.metric("cudock_held_bytes") > 0 && server.metric("cudock_queue_rows") == 0
        })
    });
    connection
}

/// Waits until this many requests wait for the first model.
#[track_caller]
pub fn until_queued(server: &Server, requests: usize) {
    eventually("the requests wait", || server.status()["queue"]["requests"] == requests);
}

/// Runs `work` on this many threads and returns their results.
pub fn on_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn({
                    let work = &work;
                    move || work(number)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
