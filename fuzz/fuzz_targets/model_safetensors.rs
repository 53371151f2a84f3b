//! Any bytes as a safetensors file: no panic, no memory for what is merely claimed, and no more counted than is there.
#![no_main]

use cudock_model::safetensors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(stats) = safetensors::read(bytes) else { return };
    assert!(stats.bytes() <= bytes.len() as u64);
    assert!(stats.largest.as_ref().is_none_or(|largest| largest.bytes <= stats.bytes()));
    let shares = stats.by_format.values();
    assert_eq!(shares.map(|share| share.bytes).sum::<u64>(), stats.bytes());
});
