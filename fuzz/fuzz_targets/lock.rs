//! Any bytes as a control file, a relation, a wheel's name and a Debian package: no panic.
#![no_main]

use std::io::Read as _;

use cudock_base::Arch;
use cudock_lock::debian::control::{DebPackage, relations, stanzas};
use cudock_lock::debian::version::DebVersion;
use cudock_lock::tags::{PythonPlatform, WheelName};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        stanzas(text, |fields| {
            DebPackage::read(fields, Arch::X86_64);
        });
        relations(text, Arch::Aarch64);
        if let Some((one, two)) = text.split_once('\n') {
            let (one, two) = (DebVersion::new(one), DebVersion::new(two));
            assert_eq!(one.cmp(&two), two.cmp(&one).reverse());
        }
        if let Some(wheel) = WheelName::parse(text) {
            let _ = wheel.rank(PythonPlatform { python: 12, glibc: 36, arch: Arch::X86_64 });
        }
    }
    if let Ok(data) = cudock_lock::deb::open(bytes) {
        let _ = std::io::copy(&mut data.take(1 << 20), &mut std::io::sink());
    }
});
