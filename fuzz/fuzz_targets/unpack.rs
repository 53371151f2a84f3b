//! Any bytes as layers, unpacked over each other: no panic, and nothing outside of their folders changes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    cudock_image::unpack::fuzz(bytes);
});
