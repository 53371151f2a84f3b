//! How much memory models need: an estimate from the files, then what their engines use.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use cudock_model::figures::PROCESS;
use cudock_model::{EstimateOptions, NumberFormat, TermKind};

use super::residency::Memory;
use crate::model::Model;
use crate::proc::status_bytes;
use crate::settings::{DeviceReading, EngineKind, ModelSettings, ReadDevices};

/// Interval and number of checks for new readings of the GPUs.
const READING_POLL: Duration = Duration::from_millis(20);
const READING_POLLS: usize = 100;

/// Estimates the memory of a model. The weights of an ONNX model are certain; of others, only the size of the files is
/// known, and half of it is enough if they are loaded in half precision.
pub(super) fn estimate(model: &Path, settings: &ModelSettings) -> Memory {
    let process = if settings.wants_gpu() { PROCESS.value } else { 0 };
    let inspected = match &settings.engine.kind {
        EngineKind::Onnx(onnx) => cudock_model::inspect(model).ok().map(|found| (onnx, found)),
        EngineKind::Python(_) => None,
    };
    let Some((onnx, found)) = inspected else {
        let files = std::iter::once(model.to_owned()).chain(cudock_model::python_files(model));
        let size: u64 = files.filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum();
        return Memory::Estimated { least: size / 2, likely: size.saturating_add(process) };
    };
    let options = EstimateOptions {
        precision: onnx.fp16.then_some(NumberFormat::F16),
        rows: u32::try_from(settings.batcher.max_rows).unwrap_or(u32::MAX),
        training: false,
    };
    let terms = cudock_model::estimate(&found, options).terms;
    let bytes = |kind| terms.iter().find(|term| term.kind == kind).map_or(0, |term| term.bytes);
    let (weights, activations) = (bytes(TermKind::Weights), bytes(TermKind::Activations));
    Memory::Estimated { least: weights, likely: weights.saturating_add(activations).saturating_add(process) }
}

/// Readings of the GPUs that were taken after `since`; empty without GPUs, or if the driver does not respond.
pub(super) fn readings_since(since: Instant, read: &ReadDevices) -> Vec<DeviceReading> {
    for _ in 0..READING_POLLS {
        let readings = read();
        if readings.iter().all(|reading| reading.taken >= since) {
            return readings;
        }
        thread::sleep(READING_POLL);
    }
    Vec::new()
}

/// Bytes that the engines of a model use: on the device that one of them uses most of, or resident if it runs on the
/// CPU. A process that the driver does not list, as in a container with process ids of its own, is assumed to use what
/// the device uses more than `before` its load.
pub(super) fn measure(model: &Model, before: &[DeviceReading], now: &[DeviceReading]) -> Option<u64> {
    let engines = model.health.engines();
    let used = engines.iter().map(|(is_gpu, process)| match process {
        Some(process) if *is_gpu => device_memory(*process, now).or_else(|| growth(before, now)),
        process => status_bytes(&format!("/proc/{}/status", (*process)?), "VmRSS:"),
    });
    used.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn device_memory(process: u32, readings: &[DeviceReading]) -> Option<u64> {
    let all = readings.iter().flat_map(|reading| &reading.processes);
    all.filter(|(id, _)| *id == process).map(|(_, bytes)| *bytes).max()
}

fn growth(before: &[DeviceReading], now: &[DeviceReading]) -> Option<u64> {
    let grown = now.iter().filter_map(|now| {
        let before = before.iter().find(|before| before.gpu == now.gpu)?;
        Some(now.memory_used.saturating_sub(before.memory_used))
    });
    grown.max()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use cudock_engine::EngineSettings;
    use cudock_engine_onnx::OnnxSettings;
    use cudock_tensor::DType;
    use cudock_testkit::onnx::OnnxModel;

    use super::*;

    fn reading(gpu: u32, memory_used: u64, processes: &[(u32, u64)]) -> DeviceReading {
        DeviceReading {
            name: "GPU".to_owned(),
            uuid: None,
            gpu,
            memory_used,
            memory_total: 1000,
            utilization: None,
            power_watts: None,
            power_limit_watts: None,
            energy_millijoules: None,
            processes: processes.to_vec(),
            taken: Instant::now(),
        }
    }

    fn settings(toml: &str, model: &Path) -> ModelSettings {
        let text = format!("[serve]\nmax_batch = 1\n{toml}");
        let options = cudock_project::parse(Path::new("cudock.toml"), &text).unwrap().serve;
        let engine = EngineSettings::new("", OnnxSettings::new("libonnxruntime.so"));
        ModelSettings::new(&options, model, Some(engine)).unwrap()
    }

    #[test]
    fn weights_are_counted_in_the_precision_in_which_they_are_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.onnx");
        let model = OnnxModel::new("matrix")
            .input("x", DType::F32, &[None, Some(100)])
            .floats("w", &[100, 100], &vec![0.5; 10_000])
            .node("MatMul", &["x", "w"], &["y"], &[])
            .output("y", DType::F32, &[None, Some(100)]);
        std::fs::write(&path, model.bytes()).unwrap();
        for (toml, weights, process) in [
            ("device = 'cpu'", 40_000, 0),
            ("device = 'cuda'", 40_000, PROCESS.value),
            ("device = 'cuda'\nprecision = 'fp16'", 20_000, PROCESS.value),
        ] {
            let Memory::Estimated { least, likely } = estimate(&path, &settings(toml, &path)) else {
                panic!("{toml}: it was never loaded")
            };
            assert_eq!(least, weights, "{toml}");
            assert!((weights + process..weights + process + 10_000).contains(&likely), "{toml}: {likely}");
        }
    }

    #[test]
    fn of_other_models_only_the_size_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let saved = directory.path().join("saved");
        std::fs::create_dir_all(saved.join("variables")).unwrap();
        std::fs::write(saved.join("saved_model.pb"), [0; 100]).unwrap();
        std::fs::write(saved.join("variables/variables.data"), vec![0; 1_000_000]).unwrap();
        let Memory::Estimated { least, likely } = estimate(&saved, &settings("device = 'cpu'", &saved))
        else {
            panic!("it was never loaded")
        };
        assert!(likely >= 1_000_100 && least == likely / 2, "{least} to {likely}");
    }

    #[test]
    fn a_listed_process_is_measured_and_another_one_is_what_the_device_gained() {
        let before = [reading(0, 100, &[]), reading(1, 50, &[])];
        let now = [reading(0, 110, &[(7, 10)]), reading(1, 90, &[(8, 30), (7, 5)])];
        assert_eq!(device_memory(7, &now), Some(10));
        assert_eq!(device_memory(9, &now), None);
        assert_eq!(growth(&before, &now), Some(40));
        assert_eq!(growth(&[], &now), None);
    }

    #[test]
    fn readings_from_before_are_not_used() {
        let old = reading(0, 1, &[]);
        let since = Instant::now();
        let calls = AtomicU64::new(0);
        let read: ReadDevices = Arc::new(move || match calls.fetch_add(1, Ordering::Relaxed) {
            0 => vec![old.clone()],
            _ => vec![reading(0, 2, &[])],
        });
        assert_eq!(readings_since(since, &read)[0].memory_used, 2);
    }
}
