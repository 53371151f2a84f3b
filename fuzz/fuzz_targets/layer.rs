//! Any bytes as layers, read and laid over each other: no panic, no memory for what is merely claimed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    cudock_image::fuzz(bytes);
});
