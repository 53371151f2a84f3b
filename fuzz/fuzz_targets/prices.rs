//! Any text as a price table: no panic, and what is read is whole.
#![no_main]

use cudock_facts::tables::Prices;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(prices) = Prices::parse(text) {
        assert!(prices.rows().all(|row| !row.size.is_empty() && !row.region.is_empty()));
    }
});
