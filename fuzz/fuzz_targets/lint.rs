//! Any text as a Dockerfile: no panic; findings and edits lie in the text; a fix leaves a Dockerfile, and no fix leaves the
//! same bytes.
#![no_main]

use std::sync::LazyLock;

use cudock_base::Date;
use cudock_dockerfile::{Build, parse};
use cudock_facts::Facts;
use cudock_lint::{LintOptions, LintTarget, apply, fix_all, lint};
use cudock_target::Target;
use libfuzzer_sys::fuzz_target;

static FACTS: LazyLock<Facts> = LazyLock::new(Facts::embedded);
static TARGETS: LazyLock<Vec<LintTarget>> = LazyLock::new(|| {
    let today = Date::new(2026, 11, 16).expect("it is a day");
    let gpus = ["T4", "H100", "B200"].map(|name| Target::named(&FACTS, name, None, today).expect("it is a GPU"));
    gpus.into_iter().flatten().map(|gpu| LintTarget::Gpu(Box::new(gpu))).chain([LintTarget::Cpu]).collect()
});

fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let options = LintOptions { target: TARGETS.get(usize::from(choice % 5)), ..LintOptions::new(&FACTS) };
    let Ok(findings) = lint("Dockerfile", text, &options) else { return };
    assert_eq!(apply(text, &[]).text, text);
    for finding in &findings {
        let location = finding.location.as_ref().expect("a finding is somewhere in the file");
        assert!(text.get(location.region.span.bytes()).is_some(), "{finding:?}");
        let edits = finding.suggestions.iter().flat_map(|suggestion| &suggestion.edits);
        for edit in edits {
            assert!(text.get(edit.region.span.bytes()).is_some(), "{finding:?}");
        }
        let fixed = apply(text, std::slice::from_ref(finding));
        assert!(parse(&fixed.text).is_ok_and(|file| Build::read(&file).is_ok()), "{}: {:?}", finding.code, fixed.text);
    }
    let (fixed, remaining) = fix_all("Dockerfile", text, &options).expect("it was linted before");
    assert_eq!(lint("Dockerfile", &fixed.text, &options).as_ref(), Ok(&remaining));
});
