//! Hashing of numbers that nobody outside chooses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from the caller's own numbers.
pub(crate) type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// One multiplication: tickets are counted by the caller and buckets are hashes already, so there is nothing to defend
/// against, and the map is asked for every request.
#[derive(Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
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
