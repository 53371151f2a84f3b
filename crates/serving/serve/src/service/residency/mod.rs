//! Decides which models are loaded: which one is next, and which ones are unloaded to make room for it.
//!
//! A plain state machine without engines and without a clock: callers report what happened and how
//! each model is used, and carry out one step after the other. Three rules keep models that need
//! the same memory from starving each other: models that requests wait for are loaded in the order
//! of their oldest request; a model is not unloaded before it has answered the requests that it was
//! loaded for; and a model that is never idle makes room once it has been loaded for as long as its
//! load took, so that at most half of the time is spent on loading.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A model counts as idle once it has had no request for this part of the time that its load took.
const IDLE_FRACTION: u32 = 10;

/// Interval at which a model is checked that still has to answer the requests it was loaded for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// First and longest pause before a failed load is repeated.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

pub(crate) struct Residency<K> {
    /// Memory for models on each device, in bytes; `None` for no limit.
    budget: Option<u64>,
    models: BTreeMap<K, Record>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether it is never unloaded.
    pub(crate) pinned: bool,
    /// Whether a request loads it.
    pub(crate) on_demand: bool,
    /// It is unloaded after this time without a request.
    pub(crate) idle_unload: Option<Duration>,
    /// The devices that each hold the whole model.
    pub(crate) devices: Vec<u32>,
}

/// Memory of a model on each of its devices, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The estimate before its first load.
    Estimated {
        least: u64,
        likely: u64,
    },
    Measured(u64),
}

impl Memory {
    fn least(self) -> u64 {
        match self {
            Self::Estimated { least, .. } => least,
            Self::Measured(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
struct Record {
    policy: Policy,
    memory: Memory,
    loaded: Option<Loaded>,
    /// Memory of a load that is under way.
    reserved: Option<u64>,
    failure: Option<Failure>,
    loads: u64,
    unloads: u64,
}

#[derive(Clone, Copy, Debug)]
struct Loaded {
    since: Instant,
    took: Duration,
    bytes: u64,
}

#[derive(Debug)]
struct Failure {
    reason: String,
    pause: Duration,
    retry_at: Instant,
}

/// How a model is used at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Arrival of the oldest request that waits.
    pub(crate) waiting_since: Option<Instant>,
    /// Whether a batch runs.
    pub(crate) is_running: bool,
    pub(crate) last_request: Option<Instant>,
    /// Whether it has no engine, although it is loaded: one is being replaced, which may fail again and again.
    pub(crate) is_stalled: bool,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step<K> {
    Load(K),
    Unload(K),
    /// Requests wait for a model that cannot be loaded now; see [`Residency::refusal`].
    Reject(K),
    /// Call again at this time, or earlier if something changes.
    Wait(Option<Instant>),
}

/// Whether there is memory for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Room<K> {
    Fits,
    /// Another model must be unloaded first.
    Unload(K),
    /// All others are in use; call again at this time.
    Later(Instant),
    /// It does not fit, even if all others are unloaded.
    None,
}

/// Why a model that is not loaded is not loaded for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Failed {
        reason: String,
        retry_after: Duration,
    },
    TooLarge {
        needed: u64,
        /// The part of the budget that is not used by models that stay loaded.
        available: u64,
        budget: u64,
    },
    /// A user has unloaded it, and models are not loaded on demand.
    Unloaded,
}

/// The state of a model, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResidencyReport {
    pub(crate) is_loaded: bool,
    pub(crate) is_loading: bool,
    pub(crate) is_pinned: bool,
    /// Bytes on each of its devices while it is loaded, if measured.
    pub(crate) memory: Option<u64>,
    pub(crate) loads: u64,
    pub(crate) unloads: u64,
}

impl<K: Ord + Clone> Residency<K> {
    pub(crate) fn new(budget: Option<u64>) -> Self {
        Self { budget, models: BTreeMap::new() }
    }

    /// Adds a model, or changes the policy of one that is known. Memory that was measured before stays known.
    pub(crate) fn insert(&mut self, key: K, policy: Policy, estimate: Memory) {
        let record = self.models.entry(key).or_insert_with(|| Record {
            policy: Policy::default(),
            memory: estimate,
            loaded: None,
            reserved: None,
            failure: None,
            loads: 0,
            unloads: 0,
        });
        record.policy = policy;
        if matches!(record.memory, Memory::Estimated { .. }) {
            record.memory = estimate;
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.models.remove(key);
    }

    /// Forgets that a load failed, and the memory of a model that is not loaded, because a user wants it loaded or its
    /// file has changed. Call [`Self::insert`] with a new estimate next.
    pub(crate) fn forget_outcome(&mut self, key: &K) {
        if let Some(record) = self.models.get_mut(key) {
            record.failure = None;
            if record.loaded.is_none() {
                record.memory = Memory::Estimated { least: 0, likely: 0 };
            }
        }
    }

    pub(crate) fn begin_load(&mut self, key: &K) {
        let needed = self.needed(key);
        if let Some(record) = self.models.get_mut(key) {
            record.reserved = Some(needed);
        }
    }

    /// Reports that a model answers requests since `since`, after a load that took `took`. It replaces the one that was
    /// loaded before, if there was one. Its memory is what was reserved, until it is [measured](Self::measured).
    pub(crate) fn loaded(&mut self, key: &K, since: Instant, took: Duration) {
        let Some(record) = self.models.get_mut(key) else { return };
        let bytes = record.reserved.take().unwrap_or_default();
        record.loaded = Some(Loaded { since, took, bytes });
        record.failure = None;
        record.loads += 1;
    }

    pub(crate) fn load_failed(&mut self, key: &K, now: Instant, reason: &str) {
        let Some(record) = self.models.get_mut(key) else { return };
        record.reserved = None;
        let pause = record.failure.as_ref().map_or(RETRY_PAUSE.0, |last| (last.pause * 2).min(RETRY_PAUSE.1));
        record.failure = Some(Failure { reason: reason.to_owned(), pause, retry_at: now + pause });
    }

    /// Reports the current memory of a loaded model.
    pub(crate) fn measured(&mut self, key: &K, bytes: u64) {
        if let Some(record) = self.models.get_mut(key)
            && let Some(loaded) = &mut record.loaded
        {
            loaded.bytes = bytes;
            record.memory = Memory::Measured(bytes);
        }
    }

    pub(crate) fn unloaded(&mut self, key: &K) {
        if let Some(record) = self.models.get_mut(key)
            && record.loaded.take().is_some()
        {
            record.unloads += 1;
        }
    }

    pub(crate) fn is_pinned(&self, key: &K) -> bool {
        self.models.get(key).is_some_and(|record| record.policy.pinned)
    }

    /// Whether the memory of all models is limited.
    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Whether a request loads any of the models.
    pub(crate) fn loads_on_request(&self) -> bool {
        self.models.values().any(|record| record.policy.on_demand)
    }

    pub(crate) fn report(&self, key: &K) -> ResidencyReport {
        let Some(record) = self.models.get(key) else { return ResidencyReport::default() };
        ResidencyReport {
            is_loaded: record.loaded.is_some(),
            is_loading: record.reserved.is_some(),
            is_pinned: record.policy.pinned,
            memory: match (record.loaded, record.memory) {
                (Some(loaded), Memory::Measured(_)) => Some(loaded.bytes),
                _ => None,
            },
            loads: record.loads,
            unloads: record.unloads,
        }
    }

    /// Why a request for a model that is not loaded fails at once.
    pub(crate) fn refusal(&self, key: &K, now: Instant) -> Option<Refusal> {
        let record = self.models.get(key).filter(|record| record.loaded.is_none())?;
        let (needed, available) = (record.memory.least(), self.available(key));
        if let Some(budget) = self.budget.filter(|_| needed > available && !record.policy.pinned) {
            return Some(Refusal::TooLarge { needed, available, budget });
        }
        if let Some(failure) = &record.failure
            && now < failure.retry_at
        {
            let retry_after = failure.retry_at.duration_since(now);
            return Some(Refusal::Failed { reason: failure.reason.clone(), retry_after });
        }
        (!record.policy.on_demand).then_some(Refusal::Unloaded)
    }

    /// Decides the next step. It must be carried out and reported before the next call.
    pub(crate) fn next_step(&self, now: Instant, usage: &dyn Fn(&K) -> Usage) -> Step<K> {
        let mut wake_ups = Vec::new();
        match self.relieve(now, usage) {
            Room::Unload(key) => return Step::Unload(key),
            Room::Later(time) => wake_ups.push(time),
            Room::Fits | Room::None => {}
        }
        let absent =
            self.models.iter().filter(|(_, record)| record.loaded.is_none() && record.reserved.is_none());
        let mut line: Vec<_> = absent
            .filter_map(|(key, record)| Some((usage(key).waiting_since?, key, &record.policy.devices)))
            .collect();
        line.sort_unstable();
        // A model does not overtake one that waits for memory of the same device.
        let mut blocked = Vec::new();
        for (_, key, devices) in line {
            if self.refusal(key, now).is_some() {
                return Step::Reject(key.clone());
            }
            if devices.iter().any(|device| blocked.contains(device)) {
                continue;
            }
            match self.room(key, now, usage) {
                Room::Fits => return Step::Load(key.clone()),
                Room::Unload(other) => return Step::Unload(other),
                Room::Later(time) => {
                    wake_ups.push(time);
                    blocked.extend(devices);
                }
                Room::None => return Step::Reject(key.clone()),
            }
        }
        for (key, record) in &self.models {
            match record.idle_since(&usage(key)) {
                Some(time) if time <= now => return Step::Unload(key.clone()),
                time => wake_ups.extend(time),
            }
        }
        Step::Wait(wake_ups.into_iter().min())
    }

    /// Whether there is memory to load a model, next to itself if it is loaded.
    pub(crate) fn room(&self, key: &K, now: Instant, usage: &dyn Fn(&K) -> Usage) -> Room<K> {
        let (Some(budget), Some(record)) = (self.budget, self.models.get(key)) else { return Room::Fits };
        let needed = self.needed(key);
        let own = record.loaded.map_or(0, |loaded| loaded.bytes);
        if needed.saturating_add(own) > self.available(key) && !record.policy.pinned {
            return Room::None;
        }
        let is_full = |device: &&u32| self.used(**device).saturating_add(needed) > budget;
        let full: Vec<u32> = record.policy.devices.iter().filter(is_full).copied().collect();
        if full.is_empty() {
            return Room::Fits;
        }
        match self.least_recently_used(&full, Some(key), now, usage) {
            // Nothing is left to unload, so the models that stay loaded take more than the budget.
            Room::None => Room::Fits,
            room => room,
        }
    }

    /// Looks for a model to unload because models use more memory than allowed, which is known only once it is measured.
    fn relieve(&self, now: Instant, usage: &dyn Fn(&K) -> Usage) -> Room<K> {
        let Some(budget) = self.budget else { return Room::Fits };
        let too_large = self.models.iter().find(|(key, record)| {
            !record.policy.pinned && record.loaded.is_some_and(|loaded| loaded.bytes > self.available(key))
        });
        if let Some((key, _)) = too_large {
            return Room::Unload(key.clone());
        }
        let devices = self.models.values().flat_map(|record| &record.policy.devices);
        let full: Vec<u32> = devices.filter(|device| self.used(**device) > budget).copied().collect();
        if full.is_empty() { Room::Fits } else { self.least_recently_used(&full, None, now, usage) }
    }

    /// The model on one of these devices to unload first, or the time at which there will be one.
    fn least_recently_used(
        &self,
        devices: &[u32],
        except: Option<&K>,
        now: Instant,
        usage: &dyn Fn(&K) -> Usage,
    ) -> Room<K> {
        let mut candidates = Vec::new();
        for (key, record) in self.models.iter().filter(|(key, _)| Some(*key) != except) {
            let shares = record.policy.devices.iter().any(|device| devices.contains(device));
            if let Some(loaded) = record.loaded.filter(|_| shares && !record.policy.pinned) {
                let usage = usage(key);
                let time = loaded.free_at(&usage).unwrap_or(now + POLL_INTERVAL);
                candidates.push((loaded.last_use(&usage), time, key));
            }
        }
        let free = candidates.iter().filter(|(_, time, _)| *time <= now).min();
        match (free, candidates.iter().map(|(_, time, _)| *time).min()) {
            (Some((_, _, key)), _) => Room::Unload((*key).clone()),
            (None, Some(time)) => Room::Later(time),
            (None, None) => Room::None,
        }
    }

    /// Memory to reserve for a load on each device. An estimate that exceeds what can be available is tried
    /// nevertheless, with nothing else loaded.
    fn needed(&self, key: &K) -> u64 {
        match self.models.get(key).map(|record| record.memory) {
            None => 0,
            Some(Memory::Measured(bytes)) => bytes,
            Some(Memory::Estimated { least, likely }) => likely.min(self.available(key)).max(least),
        }
    }

    /// Memory that other models leave on each device of a model if all are unloaded that may be.
    fn available(&self, key: &K) -> u64 {
        let (Some(budget), Some(record)) = (self.budget, self.models.get(key)) else { return u64::MAX };
        let pinned = |device: &u32| -> u64 {
            let others = self.models.iter().filter(|(other, record)| {
                *other != key && record.policy.pinned && record.policy.devices.contains(device)
            });
            others.map(|(_, other)| other.loaded.map_or(other.memory.least(), |loaded| loaded.bytes)).sum()
        };
        budget.saturating_sub(record.policy.devices.iter().map(pinned).max().unwrap_or(0))
    }

    fn used(&self, device: u32) -> u64 {
        let on_device = self.models.values().filter(|record| record.policy.devices.contains(&device));
        on_device
            .map(|record| record.loaded.map_or(0, |loaded| loaded.bytes) + record.reserved.unwrap_or(0))
            .sum()
    }
}

impl Record {
    /// When it will have been idle for so long that it is unloaded, if it is idle.
    fn idle_since(&self, usage: &Usage) -> Option<Instant> {
        let (loaded, limit) = self.loaded.zip(self.policy.idle_unload)?;
        let is_idle = !usage.is_running && usage.waiting_since.is_none() && !self.policy.pinned;
        is_idle.then(|| loaded.last_use(usage) + limit)
    }
}

impl Loaded {
    fn last_use(&self, usage: &Usage) -> Instant {
        usage.last_request.map_or(self.since, |last| last.max(self.since))
    }

    /// When the model may be unloaded for another one; `None` while requests wait that it was loaded for.
    fn free_at(&self, usage: &Usage) -> Option<Instant> {
        if usage.waiting_since.is_some_and(|since| since <= self.since) && !usage.is_stalled {
            return None;
        }
        let served_enough = self.since + self.took;
        if usage.is_running || usage.waiting_since.is_some() {
            return Some(served_enough);
        }
        Some(served_enough.min(self.last_use(usage) + self.took / IDLE_FRACTION))
    }
}
