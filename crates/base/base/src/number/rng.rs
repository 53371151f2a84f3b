//! Pseudorandom numbers that a seed determines.

/// A small generator (splitmix64): good enough for request bodies, arrival times and parameters of trials. Its sequence is
/// the same on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for one of many independent streams of a seed.
    #[must_use]
    pub fn stream(seed: u64, numbers: &[u64]) -> Self {
        numbers.iter().fold(Self(seed), |mut rng, number| {
            Self(rng.next_u64() ^ number.wrapping_mul(0xD134_2543_DE82_EF95))
        })
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias of the remainder does not matter here.
        self.next_u64() % end.max(1)
    }

    /// Uniform in (0, 1].
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A sample from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A sample from the exponential distribution with mean one.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let mut rng = Rng::new(7);
        let n = 200_000;
        let normal: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(n);
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        let exponential = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        assert!((exponential - 1.0).abs() < 0.02, "{exponential}");
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| (0..8).map(|_| Rng::new(seed).next_u64()).collect::<Vec<_>>();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn streams_of_a_seed_differ() {
        let mut first: Vec<u64> = Vec::new();
        for (trial, parameter) in (0..50).flat_map(|trial| (0..50).map(move |parameter| (trial, parameter))) {
            first.push(Rng::stream(7, &[trial, parameter]).next_u64());
        }
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 2500);
    }
}
