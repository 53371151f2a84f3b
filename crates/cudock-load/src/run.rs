//! A run: the load, over its threads, and its report.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::schedule::{Arrivals, Schedule};
use crate::tally::{Tally, Window};
use crate::worker::{Share, Source, work};
use crate::{LoadError, Report, Request};

/// What is put on the server.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Load {
    /// Clients that each send their next request when they have the answer to the last. A slow server is asked less.
    Closed {
        /// How many.
        clients: usize,
    },
    /// Requests that come at a rate, whatever the server does, as those of many people do. Latency counts from the
    /// time a request was meant to be sent.
    Open {
        /// Requests a second.
        rate: f64,
        /// How they follow each other.
        arrivals: Arrivals,
    },
}

/// How a run is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The server.
    pub address: SocketAddr,
    /// What is put on it.
    pub load: Load,
    /// Load before anything counts.
    pub warm_up: Duration,
    /// How long things count.
    pub duration: Duration,
    /// How long answers are waited for after that.
    pub grace: Duration,
    /// Threads of the generator.
    pub threads: usize,
    /// Most connections of an open loop.
    pub connections: usize,
    /// Compare every so many answers with the expected ones; none if zero.
    pub check_every: u64,
    /// Draws arrivals.
    pub seed: u64,
}

/// Puts the load on the server.
pub fn run(settings: &Settings, requests: &[Request]) -> Result<Report, LoadError> {
    if requests.is_empty() {
        return Err(LoadError::Payload("there is nothing to send".to_owned()));
    }
    if let Load::Open { rate, .. } = settings.load
        && !(rate > 0.0 && rate.is_finite())
    {
        return Err(LoadError::Payload(format!("{rate} requests a second are no load")));
    }
    allow_files(match settings.load {
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
    let share = |number: usize| Share {
        address: settings.address,
        requests,
        source: match settings.load {
            Load::Closed { clients } => Source::Closed(part(clients, number, threads)),
            Load::Open { rate, arrivals } => Source::Open(
                Schedule::new(rate, arrivals, (begin, window.end), (number, threads), settings.seed),
                part(settings.connections, number, threads).max(1),
            ),
        },
        window,
        grace: settings.grace,
        check_every: settings.check_every,
        first_request: requests.len() * number / threads,
    };
    let mut total = Tally::new(window);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(share(number)))).collect();
        for worker in workers {
            total.add(&worker.join().map_err(|_| LoadError::Thread)??);
        }
        Ok::<(), LoadError>(())
    })?;
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    let busy = matches!(settings.load, Load::Closed { .. }).then(|| total.busy / threads as f64);
    Ok(Report::new(settings, &total, busy))
}

/// Asks for as many open files as the connections take, as far as the system lets us. Where it does not, connections
/// that cannot be made are counted like all others.
fn allow_files(connections: usize) {
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
