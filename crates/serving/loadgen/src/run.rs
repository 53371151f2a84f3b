//! Runs a load on all threads and reports.

use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::results::counters::{LoadCounters, Window};
use crate::schedule::Schedule;
use crate::worker::{LoadSource, WorkerConfig, work};
use crate::{Load, LoadError, LoadReport, LoadRequest, LoadSettings};

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
        settings,
        requests,
        source: match settings.load {
            Load::Closed { clients } => LoadSource::Closed(part(clients, number, threads)),
            Load::Open { rate, arrivals } => LoadSource::Open(
                Schedule::new(rate, arrivals, (begin, window.end), (number, threads), settings.seed),
                part(settings.connections, number, threads).max(1),
            ),
        },
        window,
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
