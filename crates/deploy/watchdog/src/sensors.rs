//! Reads what the workload does: GPUs, requests, output.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cudock_base::lock;
use cudock_host::nvml::{GpuMonitor, GpuUsage};
use cudock_http::{Client, Request};

use crate::activity::{ActivitySample, GpuLoad, GpuReading, OutputState};

/// Counters of served requests in the metrics of `serve` and `gateway`.
const REQUEST_COUNTERS: [&str; 2] = ["cudock_requests_total", "cudock_gateway_requests_total"];
/// Bytes of a page of metrics, at most.
const MAX_METRICS: u64 = 4 << 20;
const METRICS_TIMEOUT: Duration = Duration::from_secs(5);
/// Entries of the output directory that are looked at, at most.
const MAX_ENTRIES: usize = 20_000;

/// Reads a workload on this machine.
pub(crate) struct Sensors {
    gpus: Arc<Mutex<LatestReading>>,
    max_age: Duration,
    metrics: Option<(Client, String)>,
    output: Option<PathBuf>,
}

/// The last reading of the thread that polls the driver.
enum LatestReading {
    /// There is no driver.
    NoDriver,
    /// The driver has not responded yet.
    Starting,
    Read {
        gpus: Vec<GpuLoad>,
        taken: Instant,
    },
}

impl Sensors {
    /// Starts reading the GPUs every `interval`. A thread of its own polls the driver, because a
    /// broken driver may block, and the budget must be watched nevertheless.
    pub(crate) fn start(interval: Duration, port: Option<u16>, output: Option<PathBuf>) -> Self {
        let gpus = Arc::new(Mutex::new(LatestReading::Starting));
        let shared = Arc::clone(&gpus);
        let poll = move || {
            let Some(monitor) = GpuMonitor::open() else {
                *lock(&shared) = LatestReading::NoDriver;
                return;
            };
            loop {
                let gpus = monitor.read().iter().map(load_of).collect();
                *lock(&shared) = LatestReading::Read { gpus, taken: Instant::now() };
                thread::sleep(interval);
            }
        };
        // Without the thread the state stays `Starting`, and the deployment counts as busy.
        let _ = thread::Builder::new().name("gpu monitor".to_owned()).spawn(poll);
        let metrics = port.map(|port| (Client::for_probes(), format!("http://localhost:{port}/metrics")));
        Self { gpus, max_age: interval.saturating_mul(3), metrics, output }
    }

    pub(crate) fn sample(&self) -> ActivitySample {
        ActivitySample {
            gpus: self.gpus(),
            requests: self.metrics.as_ref().and_then(|(client, url)| requests(client, url)),
            output: self.output.as_deref().map(output),
        }
    }

    fn gpus(&self) -> GpuReading {
        match &*lock(&self.gpus) {
            LatestReading::NoDriver => GpuReading::None,
            LatestReading::Read { gpus, taken } if taken.elapsed() <= self.max_age => {
                GpuReading::Gpus(gpus.clone())
            }
            LatestReading::Starting | LatestReading::Read { .. } => GpuReading::Unreadable,
        }
    }
}

fn load_of(usage: &GpuUsage) -> GpuLoad {
    GpuLoad {
        utilization_percent: usage.utilization_percent,
        processes: usage.process_count,
        memory_used: usage.memory_used,
        memory_total: usage.memory_total,
    }
}

fn requests(client: &Client, url: &str) -> Option<u64> {
    let request = Request::get(url).deadline(METRICS_TIMEOUT);
    let mut response = client.send(&request).ok()?.error_for_status().ok()?;
    let text = response.bytes(MAX_METRICS).ok()?;
    Some(served(&String::from_utf8_lossy(&text)))
}

/// The sum of the counters of requests in a page of metrics.
fn served(page: &str) -> u64 {
    let values = page.lines().filter_map(|line| {
        let name = line.split(['{', ' ']).next()?;
        let value: f64 = line.rsplit(' ').next()?.parse().ok()?;
        (REQUEST_COUNTERS.contains(&name) && value.is_finite()).then_some(value)
    });
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
    let sum = values.sum::<f64>() as u64;
    sum
}

/// The size and the newest change of a file or of the files in a directory. Unreadable entries are left out.
fn output(path: &Path) -> OutputState {
    let mut state = OutputState::default();
    let mut left = vec![path.to_owned()];
    for _ in 0..MAX_ENTRIES {
        let Some(path) = left.pop() else { break };
        // Links are not followed, so that there are no cycles.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()).take(MAX_ENTRIES));
        } else {
            state.bytes = state.bytes.saturating_add(metadata.len());
        }
        let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
        state.changed = state.changed.max(millis(changed));
    }
    state
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use cudock_testkit::http::{Reply, Server};

    use super::*;

    #[test]
    fn only_counters_of_requests_are_added() {
        let page = "# HELP cudock_requests_total Successful requests.\n# TYPE cudock_requests_total counter\n\
                    cudock_requests_total{model=\"a b\",version=\"1\"} 40\ncudock_requests_total{model=\"c\"} 2\n\
                    cudock_requests_total_other 7\ncudock_rows_total 100\ncudock_gateway_requests_total{class=\"2xx\"} 1e1\n\
                    cudock_requests_total NaN\n";
        assert_eq!(served(page), 52);
        assert_eq!(served(""), 0);
        assert_eq!(served("cudock_requests_total 1e300"), u64::MAX);
        assert_eq!(served("\u{0}\n{\n \n"), 0);
    }

    #[test]
    fn the_requests_of_a_server_are_read_from_its_metrics() {
        let server = Server::start(|request| match request.path.as_str() {
            "/metrics" => Reply::new(200, "cudock_requests_total{model=\"a\"} 3\n"),
            _ => Reply::new(503, "cudock_requests_total 9\n"),
        });
        let requests_at =
            |path: &str| requests(&Client::for_probes(), &format!("http://{}{path}", server.host()));
        assert_eq!(requests_at("/metrics"), Some(3));
        assert_eq!(requests_at("/other"), None);
    }

    #[test]
    fn output_grows_with_every_file_and_change() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let empty = output(root);
        fs::create_dir(root.join("checkpoints")).unwrap();
        fs::write(root.join("checkpoints/1"), "12345").unwrap();
        symlink(root, root.join("cycle")).unwrap();
        let written = output(root);
        assert!(written.bytes >= 5 && written != empty, "{written:?}");
        let file = fs::File::options().write(true).open(root.join("checkpoints/1")).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
        let rewritten = output(root);
        assert_eq!(rewritten.bytes, written.bytes);
        assert_ne!(rewritten.changed, written.changed, "the same size, and newer");
        assert_eq!(output(&root.join("missing")), OutputState::default());
    }
}
