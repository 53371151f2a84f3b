//! Seeds and numbers of cases for tests with random input.
//!
//! CI runs few cases. The scripts that run all of them set [`CASES`]; [`SEED`] repeats an earlier run.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that sets how many cases a test runs.
pub const CASES: &str = "CUDOCK_TEST_CASES";
/// The variable that repeats the random choices of an earlier run.
pub const SEED: &str = "CUDOCK_TEST_SEED";

/// The number of cases to run: [`CASES`], or as many as CI runs.
pub fn cases(in_ci: u32) -> u32 {
    number(CASES).map_or(in_ci, |cases| u32::try_from(cases).unwrap())
}

/// [`SEED`], or a new one. It is printed.
pub fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into();
    let seed = number(SEED).unwrap_or_else(now);
    eprintln!("{SEED}={seed}");
    seed
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// Pseudorandom numbers (xorshift64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    #[allow(clippy::should_implement_trait, reason = "an iterator would return an option")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % limit.max(1)
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number between 0 and 1.
    pub fn fraction(&mut self) -> f64 {
        f64::from(u16::try_from(self.next() >> 48).unwrap()) / f64::from(u16::MAX)
    }

    /// A random element of a slice.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_which_cover_their_range() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..1000).map(|_| random.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(3), numbers(3));
        assert_ne!(numbers(3), numbers(4));
        for n in 0..7 {
            assert!(numbers(3).iter().filter(|found| **found == n).count() > 100);
        }
        let mut random = Random::new(5);
        assert!((0..1000).all(|_| (0.0..=1.0).contains(&random.fraction())));
    }
}
