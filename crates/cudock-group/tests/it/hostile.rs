//! Text that wants to do harm, and text that is anything at all.

use cudock_group::{GroupError, LARGEST, read};
use proptest::prelude::*;

const GOOD: &str = include_str!("../files/everything.yaml");

fn only_id(text: &str) -> &'static str {
    let error = read(text).unwrap_err();
    assert_eq!(error.faults().len(), 1, "{error}");
    error.faults()[0].problem.id()
}

#[test]
fn aliases_that_multiply_are_refused() {
    let first = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    let others = ('b'..='j').zip('a'..).map(|(level, above)| {
        let many = vec![format!("*{above}"); 9].join(", ");
        format!("{level}: &{level} [{many}]\n")
    });
    let text: String = std::iter::once(first).chain(others).collect();
    assert_eq!(only_id(&text), "aliases-repeat");
    let quadratic = format!("a: &a {}\nb: [{}]\n", "x".repeat(20_000), vec!["*a"; 20_000].join(", "));
    assert_eq!(only_id(&quadratic), "aliases-repeat");
}

#[test]
fn an_alias_within_itself_is_refused() {
    assert_eq!(only_id("a: &a [*a]\n"), "syntax");
    assert_eq!(only_id("&a {<<: *a}\n"), "syntax");
    assert_eq!(only_id("a: *nobody\n"), "syntax");
}

#[test]
fn depth_is_limited_however_it_is_written() {
    assert_eq!(only_id(&"[".repeat(100_000)), "too-deep");
    assert_eq!(only_id(&"{a: ".repeat(100_000)), "too-deep");
    assert_eq!(only_id(&"- ".repeat(10_000)), "too-deep");
    let steps: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(only_id(&steps), "too-deep");
    let anchors: String = (0..60).map(|level| format!("{}- &a{level}\n", " ".repeat(level))).collect();
    assert_ne!(only_id(&anchors), "too-deep");
}

#[test]
fn a_file_too_large_is_not_even_parsed() {
    assert_eq!(only_id(&" ".repeat(LARGEST + 1)), "too-large");
}

#[test]
fn a_million_bytes_of_one_line_are_read() {
    let members = vec!["{name: a, value: \"1\"}"; 40_000].join(", ");
    let text = format!(
        "{{name: g, properties: {{containers: [{{name: c, properties: {{image: i, environmentVariables: [{members}]}}}}]}}}}"
    );
    let error = read(&text).unwrap_err();
    assert_eq!(error.faults().len(), 39_999, "each but the first is a second `a`");
}

/// Every place lies in the text, and nothing is said twice.
fn check(text: &str) {
    let places = match read(text) {
        Ok(reading) => reading.notes.iter().map(|note| note.span).collect::<Vec<_>>(),
        Err(error) => {
            assert!(!error.faults().is_empty());
            let GroupError::Faulty { notes, .. } = &error;
            let printable = error.printable(text);
            assert_eq!(printable.len(), text.len());
            assert_eq!(printable.lines().count(), text.lines().count());
            let faults = error.faults().iter().map(|fault| fault.span);
            faults.chain(notes.iter().map(|note| note.span)).collect()
        }
    };
    let lines = text.split(['\n', '\r']).count();
    for span in places {
        assert!((1..=lines).contains(&span.line), "{span:?} of {lines} lines");
        assert!(span.column >= 1 && span.start <= span.end && span.end <= text.len(), "{span:?}");
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{span:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_yaml_like_text_is_read_or_refused(text in "([a-z]{1,3}|[:?,&*!|>%@#'\"{}\\[\\]<-]|é|: |- |\n *|\r\n|\t|~|[0-9.]){0,60}") {
        check(&text);
    }

    #[test]
    fn a_good_file_with_a_slip_is_read_or_refused(
        at in 0..GOOD.len(), gone in 0_usize..12, put in "([a-z:\\[\\]{}\"'&*é😀 \n-]|null){0,6}",
    ) {
        let mut text: Vec<char> = GOOD.chars().collect();
        let at = at.min(text.len());
        let end = (at + gone).min(text.len());
        text.splice(at..end, put.chars());
        check(&text.into_iter().collect::<String>());
    }
}
