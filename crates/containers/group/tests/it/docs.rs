//! The examples of the user's page are good groups.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cudock_group::restart::{Backoff, GroupState, RestartPolicy};
use cudock_group::{GPUS_ENDED, NEWEST, NoteKind, OLDEST, read};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/groups.md")).unwrap()
}

fn examples(page: &str) -> Vec<&str> {
    page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_example_is_a_good_group() {
    let page = page();
    let examples = examples(&page);
    assert_eq!(examples.len(), 3);
    let groups: Vec<_> =
        examples.iter().map(|text| read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))).collect();
    assert_eq!(groups[0].group.containers.len(), 2);
    assert!(groups[0].notes.iter().all(|note| note.kind != NoteKind::Unsupported));
    assert_eq!(groups[1].notes, []);
    assert_eq!(groups[1].group.restart_policy, RestartPolicy::OnFailure);
    assert_eq!(groups[2].group.missing_volumes(&[]).len(), 1);
}

#[test]
fn the_numbers_of_the_page_are_those_of_the_code() {
    let page = page();
    assert!(page.contains(&format!("Api-versions from {OLDEST} to {NEWEST}")));
    assert!(page.contains(&format!("ended on {GPUS_ENDED}")));
    let mut backoff = Backoff::kubernetes();
    let delays: Vec<String> =
        (0..7).map(|_| format!("{} s", backoff.next_delay(Duration::ZERO).as_secs())).collect();
    let sentence = format!("wait {}, then {} each", delays[1..6].join(", "), delays[6]);
    assert!(page.contains(&sentence), "{sentence}");
    for state in [GroupState::Succeeded, GroupState::Failed, GroupState::Stopped] {
        assert!(page.contains(&format!("`{state:?}`")));
    }
}
