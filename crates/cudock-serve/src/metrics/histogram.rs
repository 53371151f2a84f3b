//! Times in classes that grow with them: eight to the octave, so a percentile is right to about a tenth.

use std::time::Duration;

/// Classes to the octave, as a power of two.
const FINE: u32 = 3;
/// Octaves of microseconds: up to 134 s.
const OCTAVES: u32 = 27;
const CLASSES: usize = ((OCTAVES - FINE + 1) << FINE) as usize;

/// How many times fell into each class.
#[derive(Clone)]
pub(crate) struct Histogram {
    classes: Box<[u64; CLASSES]>,
    count: u64,
    sum: Duration,
}

/// Percentiles in milliseconds; zero where nothing was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: Box::new([0; CLASSES]), count: 0, sum: Duration::ZERO }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, time: Duration) {
        if let Some(class) = self.classes.get_mut(class_of(time)) {
            *class += 1;
        }
        self.count += 1;
        self.sum += time;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.classes.iter_mut().zip(other.classes.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    /// How many were at most `2^octave` microseconds, give or take the last class.
    pub(crate) fn at_most_octave(&self, octave: u32) -> u64 {
        let end = class_of(Duration::from_micros(1 << octave));
        self.classes.iter().take(end).sum()
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        Percentiles { p50: self.percentile(50), p90: self.percentile(90), p99: self.percentile(99) }
    }

    fn percentile(&self, percent: u64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(class) / 1000.0;
            }
        }
        middle_of(CLASSES - 1) / 1000.0
    }
}

/// The class of a time: below eight microseconds each has its own, above that each octave has eight.
fn class_of(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min((1 << OCTAVES) - 1);
    let Some(octave) = micros.checked_ilog2().filter(|&octave| octave >= FINE) else {
        return usize::try_from(micros).unwrap_or(0);
    };
    let within = (micros >> (octave - FINE)) & ((1 << FINE) - 1);
    usize::try_from((u64::from(octave - FINE + 1) << FINE) + within).unwrap_or(CLASSES - 1)
}

/// Microseconds in the middle of a class.
fn middle_of(class: usize) -> f64 {
    let class = u32::try_from(class).unwrap_or(0);
    if class < 1 << FINE {
        return f64::from(class) + 0.5;
    }
    let octave = (class >> FINE) + FINE - 1;
    let within = class & ((1 << FINE) - 1);
    let width = f64::from(1_u32 << (octave - FINE));
    f64::from(1_u32 << octave) + (f64::from(within) + 0.5) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_right_to_a_tenth() {
        for micros in [1_u64, 7, 8, 9, 63, 100, 777, 12_345, 999_999, 60_000_000] {
            let mut histogram = Histogram::default();
            histogram.record(Duration::from_micros(micros));
            let (found, right) =
                (histogram.percentiles().p99 * 1000.0, Duration::from_micros(micros).as_secs_f64() * 1e6);
            assert!((found - right).abs() <= right * 0.1 + 0.5, "{found} for {right}");
        }
    }

    #[test]
    fn percentiles_stand_where_they_should() {
        let mut histogram = Histogram::default();
        for milliseconds in 1..=100 {
            histogram.record(Duration::from_millis(milliseconds));
        }
        let percentiles = histogram.percentiles();
        assert!((percentiles.p50 - 50.0).abs() < 5.0, "{}", percentiles.p50);
        assert!((percentiles.p99 - 99.0).abs() < 9.0, "{}", percentiles.p99);
    }

    #[test]
    fn a_time_beyond_all_classes_is_counted_in_the_last() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_secs(100_000));
        assert_eq!(histogram.count(), 1);
        assert!(histogram.percentiles().p50 > 100_000.0);
    }
}
