//! What `--help` promises.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures for people, and made-up bytes"
)]

mod support;

use support::{code, run, shown};

#[test]
fn help_of_every_verb_has_examples() {
    for verb in ["check", "facts", "explain", "doctor", "inspect", "slim", "serve", "bench", "runtime"] {
        let output = run(&[verb, "--help"]);
        assert_eq!(code(&output), 0);
        assert!(shown(&output).contains("Examples:"), "{verb}");
    }
}

#[test]
fn help_names_the_verbs_and_the_exit_codes() {
    insta::assert_snapshot!(shown(&run(&["--help"])));
}

#[test]
fn no_verb_is_a_bad_call() {
    assert_eq!(code(&run(&[])), 2);
}

#[test]
fn a_verb_that_does_not_exist_is_a_bad_call_with_a_suggestion() {
    let output = run(&["docter"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("doctor"), "{}", shown(&output));
}
