//! The promises of `--help`.

use crate::support::{code, run, shown};

#[test]
fn help_of_every_verb_has_examples() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The purpose of a verb may take several lines, which are indented further.
    let named = verbs.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.contains(&"plan") && verbs.contains(&"inspect-container"), "{verbs:?}");
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
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
