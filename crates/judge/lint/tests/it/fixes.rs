//! Edits: applied as they are, and never harmful.

use cudock_base::LineIndex;
use cudock_dockerfile::{Build, parse};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity, TextEdit, TextRegion};
use cudock_lint::{LintOptions, RULES, apply, fix_all, lint};
use proptest::prelude::*;

/// A finding with an edit for each range.
fn finding(text: &str, edits: &[(std::ops::Range<usize>, &str)]) -> Finding {
    let lines = LineIndex::new(text);
    let edits = edits.iter().map(|(bytes, new)| TextEdit {
        region: TextRegion::new(&lines, bytes.clone()),
        text: (*new).to_owned(),
    });
    Finding::new("CD0702", Severity::Warning, "", "").suggest("", edits.collect())
}

#[test]
fn edits_are_applied_in_the_order_of_the_file_and_overlapping_ones_left_for_later() {
    let text = "FROM é:1\nRUN b\n";
    let one = |edits: &[(std::ops::Range<usize>, &str)]| finding(text, edits);
    for (findings, expected, applied) in [
        (vec![], text, 0),
        (vec![Finding::new("CD0702", Severity::Note, "", "")], text, 0),
        (vec![one(&[(14..15, "c")]), one(&[(5..7, "a")])], "FROM a:1\nRUN c\n", 2),
        (vec![one(&[(5..9, "x:2")]), one(&[(8..9, "3")])], "FROM x:2\nRUN b\n", 1),
        (vec![one(&[(10..10, "ENV x=1\n")]), one(&[(10..10, "ENV y=1\n")])], "FROM é:1\nENV x=1\nRUN b\n", 1),
        // All edits of a finding, or none.
        (vec![one(&[(14..15, "c")]), one(&[(5..7, "a"), (14..15, "d")])], "FROM é:1\nRUN c\n", 1),
    ] {
        let fixed = apply(text, &findings);
        assert_eq!((fixed.text.as_str(), fixed.applied), (expected, applied));
    }
}

/// Lines of all examples in any order: they touch every rule.
fn text() -> impl Strategy<Value = String> {
    let examples = RULES.iter().flat_map(|group| group.iter()).flat_map(|rule| [rule.bad, rule.good]);
    let mut lines: Vec<&str> = examples.flat_map(str::lines).collect();
    lines.extend([
        "RUN a \\",
        "  && b",
        "# c",
        "",
        "RUN <<E",
        "E",
        "COPY --from=b /é /",
        "ARG A=$B",
        "\tRUN x",
        "FROM a AS b",
    ]);
    lines.sort_unstable();
    lines.dedup();
    let line = (prop::sample::select(lines), prop::bool::weighted(0.1))
        .prop_map(|(line, is_windows)| format!("{line}{}", if is_windows { "\r\n" } else { "\n" }));
    prop::collection::vec(line, 0..20).prop_map(|lines| format!("FROM a:1\n{}", lines.concat()))
}

proptest! {
    #[test]
    fn fixes_keep_a_file_a_dockerfile_and_change_nothing_else(text in text()) {
        let facts = Facts::embedded();
        let options = LintOptions::new(&facts);
        let Ok(findings) = lint("Dockerfile", &text, &options) else { return Ok(()) };
        for finding in &findings {
            let region = finding.location.as_ref().unwrap().region;
            prop_assert!(text.get(region.span.bytes()).is_some());
            let one = apply(&text, std::slice::from_ref(finding));
            prop_assert_eq!(one.applied > 0, !finding.suggestions.is_empty());
            prop_assert!(parse(&one.text).is_ok_and(|file| Build::read(&file).is_ok()), "{}:\n{}", finding.code, one.text);
        }
        let without: Vec<Finding> =
            findings.iter().cloned().map(|finding| Finding { suggestions: Vec::new(), ..finding }).collect();
        prop_assert_eq!(&apply(&text, &without).text, &text);
        let (fixed, remaining) = fix_all("Dockerfile", &text, &options).unwrap();
        prop_assert_eq!(lint("Dockerfile", &fixed.text, &options).unwrap(), remaining);
        prop_assert_eq!(fixed.applied == 0, fixed.text == text);
    }
}
