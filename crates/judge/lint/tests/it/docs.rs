//! `docs/lints.md`, which is generated from the table of rules and the pages of their codes.

use std::fmt::Write as _;
use std::path::Path;

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_lint::{RULES, Rule};

/// Writes the file anew if it is set.
const UPDATE: &str = "CUDOCK_TEST_UPDATE_DOCS";

#[test]
fn the_list_of_rules_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/lints.md");
    let expected = document();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let actual = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "docs/lints.md is stale: run `{UPDATE}=1 cargo test -p cudock-lint docs`");
}

fn document() -> String {
    let facts = Facts::embedded();
    let mut rules: Vec<&Rule> = RULES.iter().flat_map(|group| group.iter()).collect();
    rules.sort_by_key(|rule| rule.code);
    let mut text = format!(
        "# Rules of `cudock lint`\n\n\
         Generated from the table of rules; do not edit. How to use them: [lint.md](lint.md).\n\n\
         {} rules. A rule with a fix is fixed by `cudock lint --fix`. Comments that switch off the rules of hadolint and \
         BuildKit in the last column count here, too.\n\n\
         | code | name | severity | fix | finds | like |\n|---|---|---|---|---|---|\n",
        rules.len()
    );
    for rule in &rules {
        let page = facts.findings().get(rule.code).unwrap();
        let fix = if rule.is_fixable { "yes" } else { "" };
        let also = rule.also.join(", ");
        let (code, name, title) = (rule.code, rule.name, &page.title);
        let severity = rule.severity.name();
        writeln!(text, "| [{code}](#{}) | `{name}` | {severity} | {fix} | {title} | {also} |", anchor(rule))
            .unwrap();
    }
    for rule in rules {
        section(&mut text, &facts, rule);
    }
    text
}

fn anchor(rule: &Rule) -> String {
    format!("{}-{}", rule.code.to_ascii_lowercase(), rule.name)
}

fn section(text: &mut String, facts: &Facts, rule: &Rule) {
    let page = facts.findings().get(rule.code).unwrap();
    let severity = match rule.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Note => "Note",
    };
    let fix = if rule.is_fixable { ", with a fix" } else { "" };
    write!(text, "\n## {} {}\n\n{severity}{fix}: {}. {}\n\n", rule.code, rule.name, page.title, page.why)
        .unwrap();
    for fix in &page.fix {
        writeln!(text, "- {fix}").unwrap();
    }
    text.push_str("\nSources:\n\n");
    for source in facts.findings().table.resolve(&page.source) {
        let is_url = source.starts_with("https://");
        writeln!(text, "- {}", if is_url { format!("<{source}>") } else { source.to_owned() }).unwrap();
    }
    for (label, example) in [("Found", rule.bad), ("Not found", rule.good)] {
        write!(text, "\n{label}:\n\n```dockerfile\n{}\n```\n", example.trim_end()).unwrap();
    }
}
