//! Secrets of a file are seen nowhere but by whoever asks for them.

use cudock_group::read;

/// Its secrets all hold this word, or its base64.
const EVERYTHING: &str = include_str!("../files/everything.yaml");
const WORDS: [&str; 3] = ["hunter2", "aHVudGVy", "Mi1jcnQ"];

#[track_caller]
fn clean(text: &str) {
    for word in WORDS {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn a_good_group_shows_no_secret() {
    assert!(EVERYTHING.matches("hunter2").count() >= 5, "the test needs secrets");
    let reading = read(EVERYTHING).unwrap();
    clean(&format!("{reading:?}"));
    clean(&format!("{reading:#?}"));
    for note in &reading.notes {
        clean(&note.to_string());
    }
}

#[test]
fn a_faulty_group_shows_no_secret() {
    let broken = EVERYTHING
        .replace("aHVudGVyMi1rZXk=", "aHVudGVyMi1rZXk")
        .replace("secureValue: hunter2-token", "secureValue: {hunter2: hunter2}")
        .replace("password: hunter2-password", "password: [hunter2-password]")
        .replace("workspaceKey: hunter2-workspace", "workspaceKey: {a: hunter2-workspace}")
        .replace(
            "storageAccountKey: hunter2-account",
            "storageAccountKey: 'hunter2-account'\n      storageAccountKey: hunter2",
        );
    let error = read(&broken).unwrap_err();
    assert_eq!(error.faults.len(), 5, "{error}");
    clean(&format!("{error} {error:?}"));
}

#[test]
fn a_file_that_is_no_yaml_shows_no_secret() {
    for slip in ["  - [\n", "\t: x\n", "}\n"] {
        let mut errors = 0;
        for (at, _) in EVERYTHING.match_indices('\n') {
            let mut text = EVERYTHING.to_owned();
            text.insert_str(at + 1, slip);
            let Err(error) = read(&text) else { continue };
            clean(&format!("{error} {error:?}"));
            errors += 1;
        }
        assert!(errors > 0, "{slip:?} is never wrong");
    }
}

#[test]
fn a_secret_behind_an_alias_is_not_shown() {
    let text = "name: demo\nx-shared: &s hunter2\nproperties:\n  containers:\n  - name: a\n    properties:\n      image: a\n      environmentVariables: [{name: A, secureValue: *s}]\n";
    let error = read(text).unwrap_err();
    clean(&format!("{error} {error:?}"));
}

#[test]
fn a_secret_given_twice_or_merged_away_is_not_shown() {
    let text = "name: demo\nproperties:\n  containers:\n  - name: a\n    properties:\n      imgae: a\n      environmentVariables:\n      - {name: A, secureValue: hunter2, secureValue: hunter2}\n      - {name: B, secureValue: b, <<: {secureValue: hunter2}}\n";
    let error = read(text).unwrap_err();
    clean(&format!("{error} {error:?}"));
}
