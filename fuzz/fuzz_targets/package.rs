//! Any bytes as a Debian package and as a wheel: no panic, and no path or link that leaves the image.
#![no_main]

use cudock_build::unpack::{Discard, Limits, PackageKind, check_path, read_package};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for kind in [PackageKind::Deb, PackageKind::Wheel] {
        let mut contents = Discard::new(Limits { entries: 1000, bytes: 16 << 20 });
        if let Ok(list) = read_package(kind, "pkg-1.0-py3-none-any.whl", bytes, &mut contents) {
            assert!(
                list.entries.iter().all(|entry| check_path(&entry.path).is_ok() && entry.mode & 0o6000 == 0)
            );
        }
    }
});
