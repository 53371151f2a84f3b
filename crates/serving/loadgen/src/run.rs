//! Runs a load on all threads and reports.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::results::counters::{LoadCounters, Window};
use crate::schedule::{Arrivals, Schedule};
use crate::worker::{LoadSource, WorkerConfig, work};
use crate::{LoadError, LoadReport, LoadRequest};

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Load {
    /// Clients that send their next request after the response to the last one. A slow server gets fewer requests.
    Closed { clients: usize },
    /// Requests at a fixed rate, whatever the server does, like those of many independent users. Latency is measured
    /// from the intended send time.
    Open {
        /// Requests per second.
        rate: f64,
        arrivals: Arrivals,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    pub address: SocketAddr,
    pub load: Load,
    /// Warm-up that is not measured.
    pub warm_up: Duration,
    pub duration: Duration,
    /// How long to wait for responses after that.
    pub grace: Duration,
    pub threads: usize,
    /// Limit the connections of an open loop.
    pub connections: usize,
    /// Verify every n-th response; 0 for none.
    pub check_every: u64,
    pub seed: u64,
}

pub fn run(settings: &LoadSettings, requests: &[LoadRequest]) -> Result<LoadReport, LoadError> {
    if requests.is_empty() {
        return Err(LoadError::Payload("no requests to send".to_owned()));
    }
    if let Load::Open { rate, .. } = settings.load
        && !(rate > 0.0 && rate.is_finite())
    {
        return Err(LoadError::Payload(format!("invalid rate: {rate} requests per second")));
    }
    raise_file_limit(match settings.load {
        Load::Closed { clients } => clients,
        Load::Open { .. } => settings.connections,
    });
    let begin = Instant::now();
    let start = begin + settings.warm_up;
    let window = Window { start, end: start + settings.duration };
    let threads = match settings.load {
        Load::Closed { clients } => settings.threads.min(clients).max(1),
        Load::Open { .. } => settings.threads.max(1),
    };
    let config = |number: usize| WorkerConfig {
        address: settings.address,
        requests,
        source: match settings.load {
            Load::Closed { clients } => LoadSource::Closed(part(clients, number, threads)),
            Load::Open { rate, arrivals } => LoadSource::Open(
                Schedule::new(rate, arrivals, (begin, window.end), (number, threads), settings.seed),
                part(settings.connections, number, threads).max(1),
            ),
        },
        window,
        grace: settings.grace,
        check_every: settings.check_every,
        first_request: requests.len() * number / threads,
    };
    let mut total = LoadCounters::new(window);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(config(number)))).collect();
        for worker in workers {
            total.add(&worker.join().map_err(|_| LoadError::Thread)??);
        }
        Ok::<(), LoadError>(())
    })?;
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    let busy = matches!(settings.load, Load::Closed { .. }).then(|| total.busy / threads as f64);
    Ok(LoadReport::new(settings, &total, busy))
}

/// Raises the limit of open files as far as permitted. Connections that fail nevertheless are counted like all
/// failures.
fn raise_file_limit(connections: usize) {
    let needed = connections as u64 + 128;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |most| most.min(needed));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}

/// The share of worker `number` of `workers`.
fn part(whole: usize, number: usize, workers: usize) -> usize {
    whole * (number + 1) / workers - whole * number / workers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (whole, workers) in [(1, 1), (7, 3), (128, 5), (3, 3)] {
            let parts: Vec<usize> = (0..workers).map(|number| part(whole, number, workers)).collect();
            assert_eq!(parts.iter().sum::<usize>(), whole);
            assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
        }
    }
}
