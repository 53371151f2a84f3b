//! Text that wants to do harm, and text that is anything at all.

use cudock_group::{LARGEST, read};
use proptest::prelude::*;

const GOOD: &str = include_str!("../files/everything.yaml");

fn only_message(text: &str) -> String {
    let error = read(text).unwrap_err();
    assert_eq!(error.faults.len(), 1, "{error}");
    error.faults[0].message.clone()
}

const ALIASES: &str = "expanded aliases exceed the size of the file";
const DEEP: &str = "lists and maps are nested too deeply";

#[test]
fn aliases_that_multiply_are_refused() {
    let first = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    let others = ('b'..='j').zip('a'..).map(|(level, above)| {
        let many = vec![format!("*{above}"); 9].join(", ");
        format!("{level}: &{level} [{many}]\n")
    });
    let text: String = std::iter::once(first).chain(others).collect();
    assert_eq!(only_message(&text), ALIASES);
    let quadratic = format!("a: &a {}\nb: [{}]\n", "x".repeat(20_000), vec!["*a"; 20_000].join(", "));
    assert_eq!(only_message(&quadratic), ALIASES);
}

#[test]
fn an_alias_within_itself_is_refused() {
    for text in ["a: &a [*a]\n", "&a {<<: *a}\n", "a: *nobody\n"] {
        assert!(only_message(text).starts_with("not YAML: "), "{text}");
    }
}

#[test]
fn depth_is_limited_however_it_is_written() {
    assert_eq!(only_message(&"[".repeat(100_000)), DEEP);
    assert_eq!(only_message(&"{a: ".repeat(100_000)), DEEP);
    assert_eq!(only_message(&"- ".repeat(10_000)), DEEP);
    let steps: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(only_message(&steps), DEEP);
    let anchors: String = (0..60).map(|level| format!("{}- &a{level}\n", " ".repeat(level))).collect();
    assert_ne!(only_message(&anchors), DEEP);
}

#[test]
fn a_file_too_large_is_not_even_parsed() {
    assert_eq!(only_message(&" ".repeat(LARGEST + 1)), "larger than 1024 KiB");
}

#[test]
fn a_million_bytes_of_one_line_are_read() {
    let members = vec!["{name: a, value: \"1\"}"; 40_000].join(", ");
    let text = format!(
        "{{name: g, properties: {{containers: [{{name: c, properties: {{image: i, environmentVariables: [{members}]}}}}]}}}}"
    );
    let error = read(&text).unwrap_err();
    assert_eq!(error.faults.len(), 39_999, "each but the first is a second `a`");
}

/// Every place lies in the text, and nothing is reported twice.
fn check(text: &str) {
    let places = match read(text) {
        Ok(reading) => reading.notes.iter().map(|note| note.span).collect::<Vec<_>>(),
        Err(error) => {
            assert!(!error.faults.is_empty());
            error.faults.iter().map(|fault| fault.span).collect()
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
