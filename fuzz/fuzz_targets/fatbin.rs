//! Any bytes as a file with GPU code: no panic, nothing outside the file, payloads open or refuse.
#![no_main]

use cudock_fatbin::{Cubin, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    Cubin::parse(bytes);
    let Ok(binary) = read(bytes) else { return };
    binary.lines();
    binary.unknown();
    binary.linkage.glibc();
    for cubin in &binary.bare_cubins {
        assert!(cubin.offset + cubin.stored <= bytes.len() as u64);
    }
    for module in &binary.modules {
        assert!(module.offset + module.size <= bytes.len() as u64);
        module.has_kernels(bytes);
        for entry in &module.entries {
            assert!(entry.offset + entry.size() <= bytes.len() as u64);
            entry.payload(bytes).ok();
        }
    }
});
