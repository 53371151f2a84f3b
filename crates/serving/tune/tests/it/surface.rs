//! Servers of which every throughput and latency is known: a simple model of batches, lanes and clients with random
//! parameters.

use std::time::Duration;

use cudock_base::Rng;
use cudock_tune::search::{AxisShape, Config, Measurement, Record, Search, SearchSettings, Space, Trial};

pub struct Random(Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        let unit = f64::from(u32::try_from(self.0.next_u64() >> 32).unwrap()) / f64::from(u32::MAX);
        low + (high - low) * unit
    }

    /// One with a standard deviation.
    fn noise(&mut self, deviation: f64) -> f64 {
        // The sum of twelve is nearly normal.
        let sum: f64 = (0..12).map(|_| self.between(-0.5, 0.5)).sum();
        1.0 + sum.clamp(-3.0, 3.0) * deviation
    }
}

/// Times in milliseconds, and factors of settings.
#[derive(Clone, Debug)]
pub struct Surface {
    /// Of its parameters and of the noise.
    seed: u64,
    axes: Vec<(&'static str, Vec<f64>)>,
    launch: f64,
    row: f64,
    copy: f64,
    host: f64,
    factors: Vec<(&'static str, f64)>,
    graphs: f64,
    contention: f64,
    cores: f64,
    start: f64,
}

impl Surface {
    pub fn gpu(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let row = random.between(0.02, 0.5);
        Self {
            seed,
            axes: vec![
                // Any size, padded, graphs.
                ("preferred", vec![0.0, 1.0, 2.0]),
                ("precision", vec![0.0, 1.0]),
                ("nhwc", vec![0.0, 1.0]),
                ("lanes", vec![1.0, 2.0, 3.0, 4.0, 6.0, 8.0]),
                ("sessions", vec![1.0, 2.0]),
                ("max_batch", vec![16.0, 32.0, 64.0, 128.0, 256.0]),
            ],
            launch: random.between(0.3, 5.0),
            row,
            copy: row * random.between(0.1, 1.0),
            host: random.between(0.1, 3.0),
            factors: vec![
                ("precision", random.between(0.4, 1.1)),
                ("nhwc", random.between(0.75, 1.2)),
                ("sessions", random.between(0.85, 1.15)),
                ("preferred", random.between(0.93, 1.05)),
            ],
            graphs: random.between(0.1, 1.1),
            contention: random.between(0.0, 0.03),
            cores: f64::INFINITY,
            start: random.between(2.0, 8.0),
        }
    }

    pub fn cpu(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let cores = [2.0, 4.0, 8.0, 16.0][usize::try_from(seed % 4).unwrap()];
        let counts = || [1.0, 2.0, 4.0, 8.0, 16.0].into_iter().filter(|count| *count <= cores).collect();
        Self {
            seed,
            axes: vec![
                ("threads", counts()),
                ("lanes", counts()),
                ("max_batch", vec![8.0, 16.0, 32.0, 64.0, 128.0, 256.0]),
                ("sessions", vec![1.0, 2.0, 4.0]),
            ],
            launch: random.between(0.05, 2.0),
            row: random.between(0.02, 3.0),
            copy: random.between(0.0, 0.05),
            host: random.between(0.02, 0.3),
            factors: vec![("sessions", random.between(0.9, 1.1))],
            graphs: 1.0,
            contention: random.between(0.0, 0.1),
            cores,
            start: random.between(0.2, 1.0),
        }
    }

    /// Small models on two cores, the best settings of which are 5 to 9 % faster than the current ones.
    pub fn small_gains() -> impl Iterator<Item = Self> {
        let small = |seed| {
            let mut random = Random::new(seed);
            let (launch, row) = (random.between(0.05, 0.3), random.between(0.02, 0.1));
            Self { launch, row, ..Self::cpu(4 * seed) }
        };
        (0..).map(small).filter(|surface| {
            let gain = surface.highest(None) / surface.potential(&surface.space().current, None);
            (1.05..1.09).contains(&gain)
        })
    }

    /// A GPU on which no setting has an effect.
    pub fn flat(seed: u64) -> Self {
        let surface = Self::gpu(seed);
        Self {
            launch: 0.0,
            copy: 0.0,
            host: 0.0,
            factors: Vec::new(),
            graphs: 1.0,
            contention: 0.0,
            ..surface
        }
    }

    fn axis(&self, key: &str) -> Option<usize> {
        self.axes.iter().position(|(name, _)| *name == key)
    }

    fn value(&self, config: &Config, key: &str) -> f64 {
        self.axis(key).map_or(0.0, |axis| self.axes[axis].1[config.value(axis)])
    }

    fn is_valid(axes: &[(&'static str, Vec<f64>)], config: &Config) -> bool {
        let value = |key: &str| {
            let index = axes.iter().position(|(name, _)| *name == key)?;
            Some(axes[index].1[config.value(index)])
        };
        value("sessions") <= value("lanes")
    }

    /// The space with its first values as the current ones, and two lanes and batches of 32 rows.
    pub fn space(&self) -> Space {
        let config = |wanted: &[(&str, f64)]| {
            let value = |(key, values): &(&str, Vec<f64>)| {
                let wanted = wanted.iter().find(|(name, _)| name == key);
                let index = wanted
                    .and_then(|(_, value)| values.iter().position(|other| other.total_cmp(value).is_eq()));
                index.unwrap_or_default()
            };
            Config(self.axes.iter().map(value).collect())
        };
        let is_ordered = |key: &str| matches!(key, "lanes" | "max_batch" | "sessions" | "threads");
        let axes = self.axes.clone();
        Space {
            axes: self
                .axes
                .iter()
                .map(|(key, values)| AxisShape { values: values.len(), is_ordered: is_ordered(key) })
                .collect(),
            current: config(&[("lanes", 2.0), ("max_batch", 32.0), ("threads", self.cores)]),
            guesses: if self.cores.is_finite() {
                let split = |threads: &f64| {
                    config(&[("threads", *threads), ("lanes", self.cores / threads), ("max_batch", 32.0)])
                };
                self.axes[0].1.iter().map(split).collect()
            } else {
                let fast = [
                    ("preferred", 2.0),
                    ("precision", 1.0),
                    ("nhwc", 1.0),
                    ("lanes", 3.0),
                    ("max_batch", 128.0),
                ];
                vec![config(&fast)]
            },
            is_valid: Box::new(move |config| Self::is_valid(&axes, config)),
        }
    }

    /// Throughput and latency without noise.
    pub fn exact(&self, config: &Config, clients: f64) -> Measurement {
        let lanes = self.value(config, "lanes").max(1.0);
        let on = |key: &str| self.value(config, key) > if key == "sessions" { 1.0 } else { 0.0 };
        let factor: f64 = self.factors.iter().filter(|(key, _)| on(key)).map(|(_, factor)| factor).product();
        let rows = (clients / lanes).clamp(1.0, self.value(config, "max_batch"));
        let launch =
            if self.value(config, "preferred") > 1.0 { self.launch * self.graphs } else { self.launch };
        let mut compute = (launch + self.row * rows) * factor;
        // Threads share the cores; a batch on several of them loses a little to waiting.
        let mut parallel = 1.0;
        if self.cores.is_finite() {
            let threads = self.value(config, "threads");
            let busy = (threads * lanes).max(self.cores) / self.cores;
            compute = compute * (1.0 + self.contention * (threads - 1.0)) / threads * busy;
            parallel = lanes;
        } else {
            compute *= 1.0 + self.contention * (lanes - 3.0).max(0.0);
        }
        let whole = compute + self.copy * rows + self.host;
        let per_ms = (rows / (compute / parallel).max(whole / lanes)).min(clients / whole);
        Measurement {
            rows_per_second: per_ms * 1e3,
            p50_ms: clients / per_ms,
            p99_ms: clients / per_ms * 1.2,
            errors: 0.0,
        }
    }

    /// The highest throughput of a combination at any of the loads, within the target.
    pub fn potential(&self, config: &Config, target: Option<Duration>) -> f64 {
        let loads = (1..=1024).filter(|clients| *clients < 16 || clients % 32 == 0);
        let runs = loads.map(|clients| self.exact(config, f64::from(clients)));
        runs.filter(|run| run.is_within(target)).map(|run| run.rows_per_second).fold(0.0, f64::max)
    }

    /// The best of all combinations.
    pub fn highest(&self, target: Option<Duration>) -> f64 {
        let mut configs = vec![Vec::new()];
        for (_, values) in &self.axes {
            let longer = |config: &Vec<usize>| -> Vec<Vec<usize>> {
                (0..values.len()).map(|value| [config.as_slice(), &[value]].concat()).collect()
            };
            configs = configs.iter().flat_map(longer).collect();
        }
        let valid = configs.into_iter().map(Config).filter(|config| Self::is_valid(&self.axes, config));
        valid.map(|config| self.potential(&config, target)).fold(0.0, f64::max)
    }

    /// Runs a search with noise; returns it and the time it took.
    pub fn search(
        &self,
        settings: SearchSettings,
        noise: f64,
        fails: impl Fn(&Trial) -> bool,
    ) -> (Search, Duration) {
        let mut random = Random::new(self.seed ^ 0x5eed);
        let overhead = settings.overhead;
        let mut search = Search::new(self.space(), settings);
        // In a final, servers stay up.
        let (mut elapsed, mut running) = (Duration::ZERO, Vec::new());
        while let Some(trial) = search.next_trial() {
            assert!(search.records().len() < 3000, "a search ends");
            let start = (!running.contains(&trial.config)).then(|| Duration::from_secs_f64(self.start));
            elapsed += start.unwrap_or_default() + trial.duration + overhead;
            if !trial.is_final {
                running.clear();
            }
            running.push(trial.config.clone());
            let outcome = if fails(&trial) {
                Err("out of memory".to_owned())
            } else {
                let clients = f64::from(u32::try_from(trial.clients).unwrap());
                let exact = self.exact(&trial.config, clients);
                let (rate, latency) = (random.noise(noise), random.noise(noise));
                Ok(Measurement {
                    rows_per_second: exact.rows_per_second * rate,
                    p99_ms: exact.p99_ms / rate * latency,
                    ..exact
                })
            };
            search.record(Record { trial, outcome, start, elapsed });
        }
        (search, elapsed)
    }
}
