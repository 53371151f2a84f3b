//! Messages of public issue threads: what people paste is recognized, and with the right cause.

use std::collections::BTreeSet;

use cudock_explain::Catalog;
use cudock_facts::Facts;
use serde::Deserialize;

#[derive(Deserialize)]
struct Threads {
    thread: Vec<Thread>,
}

/// A message as it was posted. `id` was decided from the thread before `explain` was run.
#[derive(Deserialize)]
struct Thread {
    url: String,
    text: String,
    id: String,
}

#[test]
fn messages_of_public_threads_are_recognized_with_the_right_cause() {
    let facts = Facts::embedded();
    let catalog = Catalog::new(facts.messages()).unwrap();
    let threads: Threads = toml::from_str(include_str!("../threads.toml")).unwrap();
    let (mut unknown, mut wrong) = (Vec::new(), Vec::new());
    for thread in &threads.thread {
        assert!(facts.messages().get(&thread.id).is_some(), "{}: no message {}", thread.url, thread.id);
        let report = catalog.explain(&thread.text);
        match report.hits.first() {
            None => unknown.push(format!("{} ({})", thread.url, thread.id)),
            Some(hit) if hit.message.id != thread.id => {
                wrong.push(format!("{}: expected {}, got {}", thread.url, thread.id, hit.message.id));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "wrong cause:\n{}", wrong.join("\n"));
    assert!(threads.thread.len() >= 120, "{} threads", threads.thread.len());
    assert!(unknown.len() * 20 <= threads.thread.len(), "not recognized:\n{}", unknown.join("\n"));
    let urls: BTreeSet<&str> = threads.thread.iter().map(|thread| thread.url.as_str()).collect();
    assert!(urls.len() * 10 >= threads.thread.len() * 9, "messages come from {} threads only", urls.len());
}
