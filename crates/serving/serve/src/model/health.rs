//! The health of a model's engines.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cudock_engine::DeviceInfo;

use cudock_base::lock;

#[derive(Default)]
pub(crate) struct ModelHealth {
    engines: Mutex<EngineList>,
    /// Whether there is a `missing_gpu`.
    is_gpu_missing: AtomicBool,
    /// Whether the model is being replaced or the server is shutting down.
    pub(crate) closing: Mutex<bool>,
}

#[derive(Default)]
struct EngineList {
    running: Vec<RunningEngine>,
    engine_lost: Option<String>,
    /// Why a required GPU is not used.
    missing_gpu: Option<String>,
    /// The device name in responses; that of the last engine while none runs.
    name: Option<Arc<str>>,
}

#[derive(Clone)]
struct RunningEngine {
    device: DeviceInfo,
    process: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct HealthSnapshot {
    pub(crate) devices: Vec<DeviceInfo>,
    pub(crate) processes: Vec<u32>,
    /// Why an engine is missing, if one is.
    pub(crate) engine_lost: Option<String>,
}

impl ModelHealth {
    pub(crate) fn engine_started(&self, device: &DeviceInfo, process: Option<u32>) {
        let mut engines = lock(&self.engines);
        engines.engine_lost = None;
        engines.missing_gpu = None;
        self.is_gpu_missing.store(false, Ordering::Relaxed);
        engines.name = Some(device.name.as_str().into());
        engines.running.retain(|running| running.device.gpu != device.gpu);
        engines.running.push(RunningEngine { device: device.clone(), process });
    }

    pub(crate) fn engine_lost(&self, gpu: u32, reason: &str) {
        let mut engines = lock(&self.engines);
        engines.engine_lost = Some(reason.to_owned());
        engines.running.retain(|running| running.device.gpu.is_some_and(|other| other != gpu));
    }

    /// Rejects requests until an engine runs again, unless one runs on another GPU. Returns whether it does.
    pub(crate) fn reject_without_gpu(&self, reason: &str) -> bool {
        let mut engines = lock(&self.engines);
        let rejects = engines.running.is_empty();
        engines.missing_gpu = rejects.then(|| reason.to_owned());
        self.is_gpu_missing.store(rejects, Ordering::Relaxed);
        rejects
    }

    /// Why requests are rejected, if a required GPU is missing.
    pub(crate) fn missing_gpu(&self) -> Option<String> {
        // Nearly always false, and asked by every request.
        if !self.is_gpu_missing.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.engines).missing_gpu.clone()
    }

    /// Forgets the engines of a model that was unloaded.
    pub(crate) fn engines_ended(&self) {
        let mut engines = lock(&self.engines);
        *engines = EngineList { name: engines.name.take(), ..EngineList::default() };
        self.is_gpu_missing.store(false, Ordering::Relaxed);
    }

    /// Whether each running engine uses a GPU, and its process.
    pub(crate) fn engines(&self) -> Vec<(bool, Option<u32>)> {
        let engines = lock(&self.engines);
        engines.running.iter().map(|running| (running.device.provider.is_gpu(), running.process)).collect()
    }

    pub(crate) fn device_name(&self) -> Arc<str> {
        lock(&self.engines).name.clone().unwrap_or_else(|| "none".into())
    }

    pub(crate) fn snapshot(&self) -> HealthSnapshot {
        let engines = lock(&self.engines);
        HealthSnapshot {
            devices: engines.running.iter().map(|running| running.device.clone()).collect(),
            processes: engines.running.iter().filter_map(|running| running.process).collect(),
            engine_lost: engines.engine_lost.clone(),
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        *lock(&self.closing)
    }
}
