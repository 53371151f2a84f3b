//! Any bytes as a file with old choices: no panic, and every place lies in the text.
#![no_main]

use std::sync::LazyLock;

use cudock_facts::Facts;
use cudock_migrate::{MAX_CHOICES, decode, judge, read};
use libfuzzer_sys::fuzz_target;

static FACTS: LazyLock<Facts> = LazyLock::new(Facts::embedded);

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode(bytes) else { return };
    let reading = read(&text);
    assert!(reading.choices.len() <= MAX_CHOICES);
    for choice in &reading.choices {
        let span = choice.span;
        assert!(text.get(span.start..span.end).is_some(), "{span:?}");
        let before = &text[..span.start];
        assert_eq!(span.line, before.matches('\n').count() + 1, "{span:?}");
        assert_eq!(
            span.column,
            before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
            "{span:?}"
        );
    }
    let day = "2026-11-15".parse().expect("it is a day");
    let findings = judge(&FACTS, day, None, &reading.choices);
    assert!(findings.len() <= reading.choices.len());
});
