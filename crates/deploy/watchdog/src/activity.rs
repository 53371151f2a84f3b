//! When a deployment has nothing left to do, or no money left.

use std::fmt;
use std::time::Duration;

use cudock_base::Usd;
use cudock_base::text::format;

/// Samples further apart than this many intervals are not one period: the machine may have worked between them.
const MAX_GAP: u32 = 3;

/// Share of used memory from which on a GPU that does not report utilization counts as in use.
const MEMORY_IN_USE_PERCENT: u64 = 5;

const SECONDS_PER_HOUR: u128 = 3600;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchLimits {
    /// How long everything may be quiet.
    pub idle: Option<Duration>,
    /// How long the start may take, during which nothing counts as idle.
    pub warm_up: Duration,
    /// The time between two samples.
    pub interval: Duration,
    /// A GPU below this utilization is quiet.
    pub threshold_percent: u32,
    pub budget: Option<Budget>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub limit: Usd,
    pub per_hour: Usd,
    /// How long the deployment was billed before the watch began.
    pub billed_before: Duration,
}

/// The observable activity of the workload at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivitySample {
    pub gpus: GpuReading,
    /// Requests served so far; none if they are not counted or the server does not respond.
    pub requests: Option<u64>,
    pub output: Option<OutputState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuReading {
    /// The machine has no GPU.
    None,
    /// The driver does not respond.
    Unreadable,
    Gpus(Vec<GpuLoad>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuLoad {
    /// None for a GPU that is divided into MIG instances.
    pub utilization_percent: Option<u32>,
    /// Processes that compute; none if the driver does not report them.
    pub processes: Option<usize>,
    pub memory_used: u64,
    pub memory_total: u64,
}

/// The files that the workload writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputState {
    pub bytes: u64,
    /// Milliseconds since 1970 of the newest change.
    pub changed: u64,
}

/// Why a deployment is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Everything was quiet for this long.
    Idle(Duration),
    /// This much was spent.
    Budget(Usd),
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(time) => write!(f, "idle for {}", format::duration(*time)),
            Self::Budget(spent) => write!(f, "budget used up: ${} spent", spent.rounded()),
        }
    }
}

impl GpuLoad {
    fn is_quiet(&self, threshold_percent: u32) -> bool {
        if let Some(percent) = self.utilization_percent {
            return percent < threshold_percent;
        }
        // In a container, processes may be hidden; their memory is not.
        let is_memory_in_use = u128::from(self.memory_used) * 100
            >= u128::from(self.memory_total) * u128::from(MEMORY_IN_USE_PERCENT);
        self.processes == Some(0) && !is_memory_in_use
    }
}

impl Budget {
    fn spent(&self, elapsed: Duration) -> Usd {
        let billed = elapsed.saturating_add(self.billed_before).as_secs();
        self.per_hour.share(billed.into(), SECONDS_PER_HOUR)
    }
}

/// Watches the workload, sample by sample.
#[derive(Debug, Clone)]
pub struct ActivityWatch {
    limits: WatchLimits,
    last_sample: Option<Duration>,
    requests: Option<u64>,
    output: Option<OutputState>,
    /// Since when every sample was quiet.
    quiet_since: Option<Duration>,
}

impl ActivityWatch {
    pub fn new(limits: WatchLimits) -> Self {
        Self { limits, last_sample: None, requests: None, output: None, quiet_since: None }
    }

    /// Takes a sample at a time since the start. Returns the reason if the deployment is to be deleted.
    pub fn observe(&mut self, now: Duration, sample: &ActivitySample) -> Option<EndReason> {
        let has_gap = self
            .last_sample
            .is_none_or(|last| now.saturating_sub(last) > self.limits.interval.saturating_mul(MAX_GAP));
        let is_quiet = self.is_quiet(sample);
        self.last_sample = Some(now);
        self.requests = sample.requests.or(self.requests);
        self.output = sample.output.or(self.output);
        self.quiet_since = match self.quiet_since {
            _ if !is_quiet => None,
            Some(since) if !has_gap => Some(since),
            _ => Some(now),
        };
        self.over_budget(now).or_else(|| self.idle(now))
    }

    fn over_budget(&self, now: Duration) -> Option<EndReason> {
        let budget = self.limits.budget?;
        // By the next sample it would be too late.
        let soon = budget.spent(now.saturating_add(self.limits.interval));
        (soon > budget.limit).then(|| EndReason::Budget(budget.spent(now)))
    }

    fn idle(&self, now: Duration) -> Option<EndReason> {
        let quiet = now.saturating_sub(self.quiet_since?.max(self.limits.warm_up));
        (quiet >= self.limits.idle?).then_some(EndReason::Idle(quiet))
    }

    fn is_quiet(&self, sample: &ActivitySample) -> bool {
        let are_gpus_quiet = match &sample.gpus {
            GpuReading::None => true,
            GpuReading::Unreadable => false,
            GpuReading::Gpus(gpus) => gpus.iter().all(|gpu| gpu.is_quiet(self.limits.threshold_percent)),
        };
        let has_served = sample.requests.is_some_and(|now| self.requests.is_some_and(|before| before != now));
        let has_written = sample.output.is_some_and(|now| self.output.is_some_and(|before| before != now));
        are_gpus_quiet && !has_served && !has_written
    }
}
