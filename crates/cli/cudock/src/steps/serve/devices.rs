//! Memory and utilization of the GPUs of this machine.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cudock_host::nvml::{GpuMonitor, GpuUsage};
use cudock_serve::{DeviceReading, ReadDevices};

/// Interval between two readings. With a memory budget, each load waits for the next one.
const INTERVAL: Duration = Duration::from_millis(250);

/// Returns the latest readings of the GPUs; none if models run on the CPU. A separate thread queries the driver, because
/// a broken one may block and the server must not.
pub(super) fn reader(on_gpu: bool) -> ReadDevices {
    let latest: Arc<Mutex<Vec<DeviceReading>>> = Arc::default();
    if on_gpu {
        let latest = Arc::clone(&latest);
        let poll = move || {
            let Some(monitor) = GpuMonitor::open() else { return };
            loop {
                let taken = Instant::now();
                let readings = monitor.read().into_iter().map(|usage| reading(usage, taken)).collect();
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = readings;
                thread::sleep(INTERVAL);
            }
        };
        // Without the thread there are no readings, as on a machine without NVML.
        let _ = thread::Builder::new().name("gpu monitor".to_owned()).spawn(poll);
    }
    Arc::new(move || latest.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

fn reading(usage: GpuUsage, taken: Instant) -> DeviceReading {
    let thousandth = |value: u32| f64::from(value) / 1000.0;
    DeviceReading {
        name: usage.name,
        uuid: usage.uuid,
        power_watts: usage.power_milliwatts.map(thousandth),
        power_limit_watts: usage.power_limit_milliwatts.map(thousandth),
        energy_millijoules: usage.energy_millijoules,
        gpu: usage.index,
        memory_used: usage.memory_used,
        memory_total: usage.memory_total,
        processes: usage.processes,
        taken,
        utilization: usage.utilization_percent.map(|percent| f64::from(percent) / 100.0),
    }
}
