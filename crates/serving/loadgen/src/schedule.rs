//! Intended send times.

use std::time::{Duration, Instant};

use cudock_base::Rng;

/// The distribution of arrivals in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    Constant,
    /// Exponentially distributed intervals, as with independent clients.
    Poisson,
}

/// The intended send times of an open loop.
///
/// They are generated lazily: a request that cannot be sent yet is the next one of the schedule, and those after it do
/// not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    start: Instant,
    /// Mean interval in seconds.
    distance: f64,
    arrivals: Arrivals,
    rng: Rng,
    /// Seconds from the start to the next request.
    next: f64,
    /// Seconds from the start to the first request, and the number of requests so far: intervals are not accumulated,
    /// to avoid rounding errors.
    first: f64,
    passed: f64,
    end: f64,
}

impl Schedule {
    /// The schedule of one of `workers` that config a rate between them.
    pub(crate) fn new(
        rate: f64,
        arrivals: Arrivals,
        span: (Instant, Instant),
        worker: (usize, usize),
        seed: u64,
    ) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "workers are few")]
        let (number, workers) = (worker.0 as f64, worker.1.max(1) as f64);
        let distance = workers / rate;
        let mut rng = Rng::new(seed.wrapping_add(0x5851_F42D).wrapping_mul(2 * worker.0 as u64 + 1));
        let next = match arrivals {
            Arrivals::Constant => distance * number / workers,
            Arrivals::Poisson => distance * rng.exponential(),
        };
        let end = span.1.saturating_duration_since(span.0).as_secs_f64();
        Self { start: span.0, distance, arrivals, rng, next, first: next, passed: 0.0, end }
    }

    /// The intended time of the next request; `None` at the end of the schedule.
    pub(crate) fn peek(&self) -> Option<Instant> {
        (self.next < self.end).then(|| self.start + Duration::from_secs_f64(self.next))
    }

    pub(crate) fn advance(&mut self) {
        self.passed += 1.0;
        self.next = match self.arrivals {
            Arrivals::Constant => self.first + self.passed * self.distance,
            Arrivals::Poisson => self.next + self.distance * self.rng.exponential(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rate: f64, arrivals: Arrivals, worker: (usize, usize)) -> Vec<f64> {
        let start = Instant::now();
        let mut schedule = Schedule::new(rate, arrivals, (start, start + Duration::from_secs(10)), worker, 1);
        std::iter::from_fn(|| {
            let next = schedule.peek()?;
            schedule.advance();
            Some((next - start).as_secs_f64())
        })
        .collect()
    }

    #[test]
    fn workers_interleave_a_constant_rate() {
        let mut all: Vec<f64> =
            (0..4).flat_map(|worker| times(100.0, Arrivals::Constant, (worker, 4))).collect();
        all.sort_by(f64::total_cmp);
        assert_eq!(all.len(), 1000);
        assert!(all.windows(2).all(|pair| (pair[1] - pair[0] - 0.01).abs() < 1e-6));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread() {
        let all = times(1000.0, Arrivals::Poisson, (0, 1));
        assert!((9600..10400).contains(&all.len()), "{}", all.len());
        let distances: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let short = distances.iter().filter(|distance| **distance < 0.001).count();
        // Of exponential distances 63 % are shorter than the mean.
        assert!((5800..6800).contains(&short), "{short}");
    }

    #[test]
    fn workers_draw_different_arrivals() {
        assert_ne!(times(50.0, Arrivals::Poisson, (0, 2)), times(50.0, Arrivals::Poisson, (1, 2)));
    }
}
