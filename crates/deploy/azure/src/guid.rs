//! Random identifiers of requests and assertions.

use cudock_base::bug::Parts;
use std::hash::{BuildHasher, RandomState};

/// A new GUID. It is unique, not secret: a new `RandomState` has a new seed.
pub(crate) fn random() -> String {
    let half = || RandomState::new().hash_one(0_u8);
    let bits = (u128::from(half()) << 64) | u128::from(half());
    // Version 4, variant 1 (RFC 9562, section 5.4).
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.part(from..to);
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_differ_and_have_their_form() {
        let (first, second) = (random(), random());
        assert_ne!(first, second);
        for guid in [first, second] {
            let lengths: Vec<usize> = guid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12]);
            assert_eq!(guid.as_bytes()[14], b'4');
            assert!(b"89ab".contains(&guid.as_bytes()[19]), "{guid}");
        }
    }
}
