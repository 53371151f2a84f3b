//! Any bytes as the loader's cache: no panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    cudock_host::ld_cache::Cache::parse(bytes);
});
