//! Any bytes as a log: no panic, and hits only where their text is.
#![no_main]

use std::sync::LazyLock;

use cudock_explain::Catalog;
use cudock_facts::Facts;
use libfuzzer_sys::fuzz_target;

static FACTS: LazyLock<Facts> = LazyLock::new(Facts::embedded);
static CATALOG: LazyLock<Catalog<'static>> = LazyLock::new(|| Catalog::new(FACTS.messages()).unwrap());

fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = CATALOG.scan(bytes, |_| ()) {
        assert_eq!(report.bytes, bytes.len() as u64);
        for hit in report.hits {
            assert!(hit.line >= 1 && hit.line <= report.lines.max(1) && hit.count >= 1);
        }
    }
});
