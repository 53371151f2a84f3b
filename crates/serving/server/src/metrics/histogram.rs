//! A histogram of durations with buckets of growing width: eight per octave, so a percentile is accurate to about 10 %.

use std::time::Duration;

/// Buckets per octave, as a power of two.
const BUCKETS_LOG2: u32 = 3;
/// Octaves of microseconds: up to 134 s.
const OCTAVES: u32 = 27;
const BUCKETS: usize = ((OCTAVES - BUCKETS_LOG2 + 1) << BUCKETS_LOG2) as usize;

#[derive(Clone)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    sum: Duration,
}

/// Percentiles in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), count: 0, sum: Duration::ZERO }
    }
}

impl Histogram {
    pub fn record(&mut self, time: Duration) {
        if let Some(bucket) = self.buckets.get_mut(bucket_of(time)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += time;
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Number of durations of at most `2^octave` microseconds, up to the width of a bucket.
    pub fn at_most_octave(&self, octave: u32) -> u64 {
        let end = bucket_of(Duration::from_micros(1 << octave));
        self.buckets.iter().take(end).sum()
    }

    /// `None` if the histogram is empty.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let at = |percent| self.percentile(percent);
        (self.count > 0).then(|| Percentiles { p50: at(50), p90: at(90), p99: at(99) })
    }

    fn percentile(&self, percent: u64) -> f64 {
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(bucket) / 1000.0;
            }
        }
        middle_of(BUCKETS - 1) / 1000.0
    }
}

/// The bucket of a duration: below eight microseconds each has its own, above that each octave has eight.
fn bucket_of(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min((1 << OCTAVES) - 1);
    let Some(octave) = micros.checked_ilog2().filter(|&octave| octave >= BUCKETS_LOG2) else {
        return usize::try_from(micros).unwrap_or(0);
    };
    let within = (micros >> (octave - BUCKETS_LOG2)) & ((1 << BUCKETS_LOG2) - 1);
    usize::try_from((u64::from(octave - BUCKETS_LOG2 + 1) << BUCKETS_LOG2) + within).unwrap_or(BUCKETS - 1)
}

/// The middle of a bucket, in microseconds.
fn middle_of(bucket: usize) -> f64 {
    let bucket = u32::try_from(bucket).unwrap_or(0);
    if bucket < 1 << BUCKETS_LOG2 {
        return f64::from(bucket) + 0.5;
    }
    let octave = (bucket >> BUCKETS_LOG2) + BUCKETS_LOG2 - 1;
    let within = bucket & ((1 << BUCKETS_LOG2) - 1);
    let width = f64::from(1_u32 << (octave - BUCKETS_LOG2));
    f64::from(1_u32 << octave) + (f64::from(within) + 0.5) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_accurate_to_ten_percent() {
        for micros in [1_u64, 7, 8, 9, 63, 100, 777, 12_345, 999_999, 60_000_000] {
            let mut histogram = Histogram::default();
            histogram.record(Duration::from_micros(micros));
            let expected = Duration::from_micros(micros).as_secs_f64() * 1e6;
            let actual = histogram.percentiles().unwrap().p99 * 1000.0;
            assert!((actual - expected).abs() <= expected * 0.1 + 0.5, "{actual} for {expected}");
        }
    }

    #[test]
    fn percentiles_of_a_uniform_distribution_are_correct() {
        let mut histogram = Histogram::default();
        for milliseconds in 1..=100 {
            histogram.record(Duration::from_millis(milliseconds));
        }
        let percentiles = histogram.percentiles().unwrap();
        assert!((percentiles.p50 - 50.0).abs() < 5.0, "{}", percentiles.p50);
        assert!((percentiles.p99 - 99.0).abs() < 9.0, "{}", percentiles.p99);
    }

    #[test]
    fn a_duration_beyond_all_buckets_is_counted_in_the_last_one() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_secs(100_000));
        assert_eq!(histogram.count(), 1);
        assert!(histogram.percentiles().unwrap().p50 > 100_000.0);
    }
}
