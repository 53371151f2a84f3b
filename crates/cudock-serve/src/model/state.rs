//! How a model is doing, as others may know it.

use std::sync::{Arc, Mutex};

use cudock_engine::Device;

use crate::reply::lock;

/// How a model is doing.
#[derive(Default)]
pub(crate) struct ModelState {
    engines: Mutex<Engines>,
    /// Whether the model is being replaced or the server ends.
    pub(crate) closing: Mutex<bool>,
}

#[derive(Default)]
struct Engines {
    running: Vec<Running>,
    lost: Option<String>,
    /// What answers call the device; that of the last engine while none runs.
    name: Option<Arc<str>>,
}

#[derive(Clone)]
struct Running {
    device: Device,
    process: Option<u32>,
}

/// A reading of a model's state.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// What its engines run on.
    pub(crate) devices: Vec<Device>,
    /// Numbers of the engines' processes.
    pub(crate) processes: Vec<u32>,
    /// Why an engine is missing at present.
    pub(crate) lost: Option<String>,
}

impl ModelState {
    /// An engine runs.
    pub(crate) fn runs(&self, device: &Device, process: Option<u32>) {
        let mut engines = lock(&self.engines);
        engines.lost = None;
        engines.name = Some(device.name.as_str().into());
        engines.running.retain(|running| running.device.gpu != device.gpu);
        engines.running.push(Running { device: device.clone(), process });
    }

    /// An engine is gone.
    pub(crate) fn lost(&self, gpu: u32, reason: &str) {
        let mut engines = lock(&self.engines);
        engines.lost = Some(reason.to_owned());
        engines.running.retain(|running| running.device.gpu.is_some_and(|other| other != gpu));
    }

    pub(crate) fn device_name(&self) -> Arc<str> {
        lock(&self.engines).name.clone().unwrap_or_else(|| "none".into())
    }

    pub(crate) fn condition(&self) -> Condition {
        let engines = lock(&self.engines);
        Condition {
            devices: engines.running.iter().map(|running| running.device.clone()).collect(),
            processes: engines.running.iter().filter_map(|running| running.process).collect(),
            lost: engines.lost.clone(),
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        *lock(&self.closing)
    }
}
