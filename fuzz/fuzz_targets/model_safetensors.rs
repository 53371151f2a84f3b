//! Any bytes as a safetensors file: no panic, no memory for what is merely claimed, and no more counted than is there.
#![no_main]

use cudock_model::safetensors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(tally) = safetensors::read(bytes) else { return };
    assert!(tally.bytes() <= bytes.len() as u64);
    assert!(tally.largest.as_ref().is_none_or(|largest| largest.bytes <= tally.bytes()));
    let shares = tally.by_format.values();
    assert_eq!(shares.map(|share| share.bytes).sum::<u64>(), tally.bytes());
});
