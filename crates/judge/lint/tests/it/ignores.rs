//! Comments that switch findings off.

use cudock_facts::Facts;
use cudock_lint::{LintOptions, lint};

/// The lines with an image without a tag, as long as no comment switches that off.
fn lines(text: &str) -> Vec<usize> {
    let facts = Facts::embedded();
    let findings = lint("Dockerfile", text, &LintOptions::new(&facts)).unwrap();
    let found = findings.iter().filter(|finding| finding.code == "CD0702");
    found.map(|finding| finding.location.as_ref().unwrap().region.span.line).collect()
}

#[test]
fn a_comment_covers_the_next_instruction() {
    for comment in [
        "# cudock: ignore=CD0702",
        "#cudock:ignore=CD0702 (built every night)",
        "# cudock: ignore = cd0702 because it is built every night",
        "# cudock: ignore=CD0799, CD0702",
        "# cudock: ignore=CD0702(built every night)",
        "# cudock: ignore=missing-tag",
        "# hadolint ignore=DL3006",
        "# hadolint ignore=DL3008,DL3006",
        "  # cudock: ignore=CD0702",
    ] {
        let text = format!("{comment}\n# another comment\n\nFROM a/b\nFROM c/d\n");
        assert_eq!(lines(&text), [5], "{comment}");
    }
}

#[test]
fn other_comments_cover_nothing() {
    for comment in [
        "# cudock: ignore=CD0703",
        "# cudock: ignore CD0702",
        "# cudock ignore=CD0702",
        "# ignore=CD0702",
        "# cudock: ignore=CD0703 (not CD0702, which matters)",
        "# hadolint ignore=DL3007",
        "# check=skip=JSONArgsRecommended",
        "# check=error=true",
    ] {
        assert_eq!(lines(&format!("{comment}\nFROM a/b\n")), [2], "{comment}");
    }
}

#[test]
fn a_comment_covers_all_lines_of_its_instruction_and_no_more() {
    let text = "FROM a:1\n# cudock: ignore=CD0702\nRUN <<E\nFROM x\nE\nFROM a/b\n";
    assert_eq!(lines(text), [6]);
    let text = "# cudock: ignore=CD0702\nFROM \\\n  a/b\nFROM \\\n# cudock: ignore=CD0702\n  c/d\nFROM e/f\n";
    assert_eq!(lines(text), [7]);
    // A here-document has no comments of Dockerfiles.
    assert_eq!(lines("FROM a:1\nRUN <<E\n# cudock: ignore=CD0702\nE\nFROM a/b\n"), [5]);
}

#[test]
fn global_comments_cover_the_file() {
    for comment in ["# cudock: global ignore=CD0702", "# hadolint global ignore=DL3006,DL3008"] {
        assert_eq!(lines(&format!("FROM a/b\nFROM c/d\n{comment}\n")), [0; 0], "{comment}");
    }
}
