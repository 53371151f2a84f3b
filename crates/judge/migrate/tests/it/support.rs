//! Choices in one line each, so that a test is a table.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use cudock_migrate::{Choice, ChoiceFinding, ChoiceKind, judge, read};

/// `LINE:COLUMN WORDS | ROLE | SERVICE | REGION`, and ` low` for low priority.
pub(crate) fn shown(text: &str) -> Vec<String> {
    read(text).choices.iter().map(|choice| line(text, choice)).collect()
}

fn line(text: &str, choice: &Choice) -> String {
    let span = choice.span;
    assert!(text.get(span.start..span.end).is_some(), "{span:?}");
    // The position must be that of the text, counted in another way.
    let before = &text[..span.start];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    assert_eq!((span.line, span.column), (line, column));
    if let ChoiceKind::Size { name } = &choice.kind {
        assert_eq!(&text[span.start..span.end], name, "a size is at its span");
    }
    let service = choice.service.map_or("-", AzureService::id);
    let region = choice.region.as_deref().unwrap_or("-");
    let low = if choice.low_priority { " low" } else { "" };
    let by = if choice.role.is_empty() { "-" } else { &choice.role };
    format!("{line}:{column} {} | {by} | {service} | {region}{low}", choice.describe())
}

/// What the tables say to a text on the day the tests were written.
pub(crate) fn judged(text: &str) -> Vec<ChoiceFinding> {
    judged_on("2026-11-15", text)
}

pub(crate) fn judged_on(day: &str, text: &str) -> Vec<ChoiceFinding> {
    judge(&Facts::embedded(), day.parse().unwrap(), None, &read(text).choices)
}

/// The names of what replaces a choice.
pub(crate) fn instead(finding: &ChoiceFinding) -> Vec<&str> {
    finding.replacements.iter().map(|replacement| replacement.name.as_str()).collect()
}
