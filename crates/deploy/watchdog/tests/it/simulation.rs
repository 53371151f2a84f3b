//! A workload and an Azure that exist only in simulated time.

use std::time::Duration;

use cudock_azure::Call;
use cudock_base::Usd;
use cudock_watchdog::{
    ActivitySample, Budget, DeletionCalls, DeletionEnd, EndReason, GpuLoad, GpuReading, OutputState, WatchIo,
    WatchLimits, watch,
};

pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn limits(idle: Option<u64>, budget: Option<Budget>) -> WatchLimits {
    WatchLimits {
        idle: idle.map(seconds),
        warm_up: seconds(600),
        interval: INTERVAL,
        threshold_percent: 5,
        budget,
    }
}

pub(crate) fn gpu(percent: u32) -> GpuReading {
    GpuReading::Gpus(vec![load(Some(percent), Some(1), 50)])
}

pub(crate) fn load(
    utilization_percent: Option<u32>,
    processes: Option<usize>,
    memory_percent: u64,
) -> GpuLoad {
    GpuLoad { utilization_percent, processes, memory_used: memory_percent << 30, memory_total: 100 << 30 }
}

pub(crate) fn sample(gpus: GpuReading) -> ActivitySample {
    ActivitySample { gpus, requests: None, output: None }
}

pub(crate) fn with_requests(gpus: GpuReading, requests: u64) -> ActivitySample {
    ActivitySample { requests: Some(requests), ..sample(gpus) }
}

pub(crate) fn with_output(gpus: GpuReading, bytes: u64, changed: u64) -> ActivitySample {
    ActivitySample { output: Some(OutputState { bytes, changed }), ..sample(gpus) }
}

/// What happened in a simulation.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) reason: EndReason,
    pub(crate) end: DeletionEnd,
    pub(crate) sent: Vec<(Duration, String)>,
    pub(crate) ended_at: Duration,
    pub(crate) log: Vec<String>,
}

struct Simulation<W, A> {
    now: Duration,
    workload: W,
    azure: A,
    sent: Vec<(Duration, String)>,
    log: Vec<String>,
}

impl<W: FnMut(Duration) -> ActivitySample, A: FnMut(Duration, &Call) -> Option<u16>> WatchIo
    for Simulation<W, A>
{
    fn now(&self) -> Duration {
        self.now
    }

    fn sleep_until(&mut self, time: Duration) {
        assert!(time > self.now, "a wait that takes no time would spin");
        self.now = time;
    }

    fn sample(&mut self) -> ActivitySample {
        (self.workload)(self.now)
    }

    fn send(&mut self, call: &Call) -> Option<u16> {
        self.sent.push((self.now, format!("{} {}", call.method, call.path)));
        (self.azure)(self.now, call)
    }

    fn log(&mut self, line: &str) {
        self.log.push(line.to_owned());
    }
}

/// Simulates a watch until it ends.
pub(crate) fn simulate(
    limits: &WatchLimits,
    calls: &DeletionCalls,
    workload: impl FnMut(Duration) -> ActivitySample,
    azure: impl FnMut(Duration, &Call) -> Option<u16>,
) -> Course {
    let mut io = Simulation { now: Duration::ZERO, workload, azure, sent: Vec::new(), log: Vec::new() };
    let (reason, end) = watch(limits, calls, &mut io);
    Course { reason, end, sent: io.sent, ended_at: io.now, log: io.log }
}

pub(crate) fn dollars(limit: u64, per_hour: u64) -> Budget {
    Budget {
        limit: Usd::from_cents(limit * 100),
        per_hour: Usd::from_cents(per_hour * 100),
        billed_before: Duration::ZERO,
    }
}
