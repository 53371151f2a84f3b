//! Any bytes at all.

use std::sync::LazyLock;

use cudock_facts::Facts;
use cudock_migrate::{MAX_CHOICES, decode, judge, read};
use proptest::prelude::*;

/// Decoding the tables takes longer than a case.
static FACTS: LazyLock<Facts> = LazyLock::new(Facts::embedded);

fn check(text: &str) {
    let reading = read(text);
    assert!(reading.choices.len() <= MAX_CHOICES);
    let mut last = 0;
    for choice in &reading.choices {
        let span = choice.span;
        assert!(span.start >= last && span.end >= span.start, "{span:?}");
        assert!(text.get(span.start..span.end).is_some(), "{span:?}");
        let before = &text[..span.start];
        assert_eq!(span.line, before.matches('\n').count() + 1);
        assert_eq!(span.column, before.rsplit('\n').next().unwrap().chars().count() + 1);
        last = span.start;
    }
}

/// Pieces that mean something, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "az vm create ",
        "az container create ",
        "az ml computetarget ",
        "--size ",
        "--size=",
        "-l ",
        "--gpu-count ",
        "Standard_NC6",
        "NC6",
        "\"",
        "'",
        "`",
        "```\n",
        "\\\n",
        "\\",
        "\r\n",
        "\n",
        "  ",
        "- ",
        "-",
        ": ",
        ":",
        "=",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        "#",
        "//",
        "/*",
        "*/",
        "$",
        "${",
        "$(",
        "${{ ",
        "}}",
        "{{",
        "gpu",
        "count",
        "sku",
        "requests",
        "size",
        "location",
        "accelerators",
        "K80:4",
        "<<EOF\n",
        "EOF\n",
        "|",
        ">",
        "&a ",
        "!t ",
        "export A=",
        "$A",
        "param x string = ",
        "variable \"x\" {",
        "default",
        "ü",
        "変",
        "\u{feff}",
        "---\n",
        "import x\n",
        "resource \"a\" \"b\" {\n",
        "name: y\n",
        "'''",
        "\"\"\"",
        "\t",
        "target_low_priority_nodes",
        "0",
        "5",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_sequence_of_pieces_is_read_with_the_right_spans(text in pieces()) {
        check(&text);
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,400}") {
        check(&text);
    }

    #[test]
    fn any_bytes_are_text_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(text) = decode(&bytes) {
            check(&text);
        }
    }

    #[test]
    fn any_choice_is_judged(text in pieces(), region in proptest::option::of("[a-z ]{0,12}")) {
        let reading = read(&text);
        let findings = judge(&FACTS, "2026-11-15".parse().unwrap(), region.as_deref(), &reading.choices);
        prop_assert!(findings.len() <= reading.choices.len());
        for finding in &findings {
            prop_assert!(!finding.message.is_empty());
            prop_assert!(serde_json::to_string(finding).is_ok());
        }
    }
}

#[test]
fn long_lines_and_deep_nests_are_read_in_one_pass() {
    let mib = 1 << 20;
    for text in [
        "Standard_NC6 ".repeat(mib / 13),
        "{\"size\":\"Standard_NC6\",".repeat(mib / 24),
        "az vm create --size ".repeat(mib / 20),
        "az vm ${{".repeat(mib / 9),
        "a=\"\\\"".repeat(mib / 5),
        "- ".repeat(mib / 2),
        "(".repeat(mib),
        "'".repeat(mib),
        " a:\n".repeat(mib / 4),
        "gpu: {sku: K80, count: 1}\n".repeat(mib / 26),
        "x=$x\n".repeat(mib / 5),
        "```\n".repeat(mib / 4),
        "az vm create --size $x\nx=$x\n".repeat(mib / 28),
        "a <<EOF\n".repeat(mib / 8),
    ] {
        let reading = read(&text);
        assert!(reading.choices.len() <= MAX_CHOICES);
    }
    let reading = read(&"Standard_NC6 ".repeat(MAX_CHOICES + 7));
    assert_eq!((reading.choices.len(), reading.left_out), (MAX_CHOICES, 7));
}

#[test]
fn values_that_end_beyond_their_line_are_read() {
    for text in ["az vm create <<EOF\nexport A='```\n'", "az vm create ```\nexport A=--size=\\\n- "] {
        check(text);
    }
}
