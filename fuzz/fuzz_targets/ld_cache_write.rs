//! Any bytes as the loader's cache: no panic, and what was read is written so that it reads the same.
#![no_main]

use cudock_host::ld_cache::Cache;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(cache) = Cache::parse(bytes) else { return };
    let count = cache.entries.len();
    let Some(written) = cache.to_bytes() else { return };
    let again = Cache::parse(&written).expect("what was written can be read");
    assert_eq!(again.entries.len(), count);
    assert_eq!(again.to_bytes(), Some(written), "written in order, it stays so");
});
