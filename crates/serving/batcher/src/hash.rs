//! A fast hash map for integer keys that no client chooses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type U64Map<V> = HashMap<u64, V, BuildHasherDefault<U64Hasher>>;

/// A hasher of one multiplication: tickets are consecutive numbers and buckets are hashes already, so there is no
/// attacker to defend against, and the map is used for every request.
#[derive(Debug, Default)]
pub(crate) struct U64Hasher(u64);

impl Hasher for U64Hasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
