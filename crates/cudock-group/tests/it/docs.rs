//! The examples of the user's page are good groups.

use std::fs;
use std::path::Path;

use cudock_group::restart::{FIRST_DELAY, GroupState, LONGEST_DELAY, RestartPolicy, delay};
use cudock_group::{GPUS_ENDED, NEWEST, NoteKind, OLDEST, read};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/groups.md")).unwrap()
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
    assert_eq!(groups[0].notes_of(NoteKind::Unsupported).count(), 0);
    assert_eq!(groups[1].notes, []);
    assert_eq!(groups[1].group.restart_policy, RestartPolicy::OnFailure);
    assert_eq!(groups[2].group.missing_volumes(&[]).len(), 1);
}

#[test]
fn the_numbers_of_the_page_are_those_of_the_code() {
    let page = page();
    assert!(page.contains(&format!("Api-versions from {OLDEST} to {NEWEST}")));
    assert!(page.contains(&format!("ended on {GPUS_ENDED}")));
    let delays: Vec<String> = (1..6).map(|streak| format!("{} s", delay(streak).as_secs())).collect();
    let words = format!("wait {}, then {} s each", delays.join(", "), LONGEST_DELAY.as_secs());
    assert!(page.contains(&words), "{words}");
    assert_eq!(delay(1), FIRST_DELAY);
    for state in [GroupState::Succeeded, GroupState::Failed, GroupState::Stopped] {
        assert!(page.contains(&format!("`{state:?}`")));
    }
}
