//! `cudock man`.

use std::fs;

use crate::support::{code, run, shown};

#[test]
fn every_verb_has_a_page_with_its_flags_and_examples() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["man", "--dir", dir.path().to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(page("cudock.1").contains("cudock\\-check(1)"), "{}", page("cudock.1"));
    let check = page("cudock-check.1");
    for part in [".TH cudock-check 1", "\\-\\-driver", "\\-\\-format", "cudock check build/app \\-\\-host"] {
        assert!(check.contains(part), "{part} is not in\n{check}");
    }
    assert!(dir.path().join("cudock-volume-create.1").is_file());
    assert!(!dir.path().join("cudock-monitor.1").exists());
    let printed = run(&["man", "check"]);
    assert_eq!(String::from_utf8(printed.stdout).unwrap().trim(), check.trim());
}

#[test]
fn an_unknown_verb_is_a_bad_call_with_a_suggestion() {
    let output = run(&["man", "chek"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("did you mean `check`"), "{}", shown(&output));
    assert_eq!(code(&run(&["man", "monitor"])), 2);
}
