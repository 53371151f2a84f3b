//! GPUs of this machine, and how full and busy they are.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cudock_host::nvml::{GpuMonitor, GpuUsage};
use cudock_serve::{DeviceReading, ReadDevices};

const EVERY: Duration = Duration::from_secs(1);

/// The newest reading of the GPUs; nothing on a machine that serves by CPU. A thread of its own asks the driver, since
/// a broken one may not answer, and the server must.
pub(super) fn reader(on_gpu: bool) -> ReadDevices {
    let newest: Arc<Mutex<Vec<DeviceReading>>> = Arc::default();
    if on_gpu {
        let newest = Arc::clone(&newest);
        let asking = move || {
            let Some(gauges) = GpuMonitor::open() else { return };
            loop {
                let readings = gauges.read().into_iter().map(reading).collect();
                *newest.lock().unwrap_or_else(PoisonError::into_inner) = readings;
                thread::sleep(EVERY);
            }
        };
        // Without the thread there are no readings, as on a machine without NVML.
        let _ = thread::Builder::new().name("gauges".to_owned()).spawn(asking);
    }
    Arc::new(move || newest.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

fn reading(gauge: GpuUsage) -> DeviceReading {
    DeviceReading {
        name: gauge.name,
        gpu: gauge.index,
        memory_used: gauge.memory_used,
        memory_total: gauge.memory_total,
        utilisation: gauge.utilization_percent.map(|percent| f64::from(percent) / 100.0),
    }
}
