//! ONNX Runtime on a GPU, with each of its options: the results are those of the CPU.

use std::path::Path;
use std::sync::Mutex;

use cudock_engine::{Engine, EngineError, EngineSettings, Provider, warm_up};
use cudock_engine_onnx::OnnxSettings;
use cudock_tensor::DType;
use cudock_testkit::onnx;

use crate::support::{LONG, Loaded, Plain, as_floats, floats, integers, load, noise, run, strings};

/// The inputs of a batch by row count and seed.
type Batch = fn(usize, usize) -> Vec<Plain>;

/// Dropping an engine frees device memory, which must not happen while another one captures a graph: one test at a
/// time.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Loads on the GPU, or not at all.
fn load_on_gpu(model: &[u8], change: impl FnOnce(&mut EngineSettings<OnnxSettings>)) -> Option<Loaded> {
    if !Path::new("/dev/nvidiactl").exists() {
        cudock_testkit::missing("gpu", "this machine has no GPU");
        return None;
    }
    let loaded = load(model, |settings| {
        settings.providers = vec![Provider::Cuda];
        change(settings);
    })?;
    let device = loaded.engine.device();
    if device.provider != Provider::Cuda {
        cudock_testkit::missing("gpu", format_args!("{:?}", device.skipped_providers));
        return None;
    }
    assert_ne!(device.name, "cpu");
    Some(loaded)
}

/// All combinations of pinned memory, I/O binding, CUDA graphs and channels last.
fn switches() -> impl Iterator<Item = (bool, bool, bool, bool)> {
    (0..16).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0))
}

fn switched(model: &[u8], (pinned, io_binding, captured, nhwc): (bool, bool, bool, bool)) -> Option<Loaded> {
    load_on_gpu(model, |settings| {
        settings.kind.pinned = pinned;
        settings.kind.io_binding = io_binding;
        settings.kind.nhwc = nhwc;
        settings.kind.graphs = if captured { vec![1, 4] } else { vec![] };
    })
}

/// Floats may differ by the rounding of tensor cores.
fn assert_close(ours: &[Plain], expected: &[Plain], what: &str) {
    assert_eq!(ours.len(), expected.len(), "{what}");
    for (one, other) in ours.iter().zip(expected) {
        assert_eq!(one.0, other.0, "{what}");
        for (one, other) in as_floats(one).iter().zip(as_floats(other)) {
            assert!((one - other).abs() < 0.02, "{what}: {one} and {other}");
        }
    }
}

#[test]
fn results_match_the_cpu_with_all_options() {
    let _alone = ONE_AT_A_TIME.lock();
    let models: [(&str, Vec<u8>, Batch); 3] = [
        ("mlp", onnx::mlp(), |seed, rows| vec![noise(seed, &[rows, 512])]),
        ("conv", onnx::conv(), |seed, rows| vec![noise(seed, &[rows, 3, 32, 32])]),
        ("sums", onnx::sums(), |seed, rows| vec![noise(seed, &[rows, 4]), noise(seed + 9, &[rows, 4])]),
    ];
    for (name, model, batch) in models {
        let Some(mut cpu) = load(&model, |_| {}) else { return };
        for switches in switches() {
            let Some(mut gpu) = switched(&model, switches) else { return };
            for (seed, rows) in [4, 1, 4, 3, 300, 4, 1].into_iter().enumerate() {
                let inputs = batch(seed, rows);
                let expected = run(&mut *cpu.lanes[0], &inputs).unwrap();
                let ours = run(&mut *gpu.lanes[0], &inputs).unwrap();
                assert_close(&ours, &expected, &format!("{name} {switches:?} {rows} rows"));
            }
        }
    }
}

#[test]
fn every_type_goes_through_unchanged() {
    let _alone = ONE_AT_A_TIME.lock();
    for dtype in DType::ALL {
        for io_binding in [false, true] {
            let Some(mut gpu) =
                load_on_gpu(&onnx::identity(dtype), |settings| settings.kind.io_binding = io_binding)
            else {
                return;
            };
            let tensor: Plain = match dtype.size() {
                Some(size) => {
                    (vec![2, 3], (0..6 * size).map(|buffer| u8::try_from(buffer % 2).unwrap()).collect())
                }
                None => strings(&[2, 2], &[b"a", b"", "ö".as_bytes(), b"\0"]),
            };
            let lane = &mut *gpu.lanes[0];
            assert_eq!(run(lane, std::slice::from_ref(&tensor)).unwrap(), [tensor], "{dtype}");
        }
    }
}

#[test]
fn outputs_of_unknown_shape_are_complete() {
    let _alone = ONE_AT_A_TIME.lock();
    for switches in switches() {
        let Some(mut gpu) = switched(&onnx::nonzero(), switches) else { return };
        let lane = &mut *gpu.lanes[0];
        assert_eq!(run(lane, &[floats(&[3, 1], &[0.0, 2.0, 0.0])]).unwrap(), [integers(&[2, 1], &[1, 0])]);
        let large = run(lane, &[floats(&[3, 50_000], &vec![1.0; 150_000])]).unwrap();
        assert_eq!(&large[0].1[149_999 * 8..150_000 * 8], 2_i64.to_le_bytes());
    }
}

#[test]
fn recorded_launches_are_used_and_survive_larger_batches() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(mut gpu) = load_on_gpu(&onnx::mlp(), |settings| settings.kind.graphs = vec![2, 8]) else {
        return;
    };
    assert_eq!(gpu.engine.device().notes, Vec::<String>::new());
    let Some(mut cpu) = load(&onnx::mlp(), |_| {}) else { return };
    let signature = gpu.engine.signature().clone();
    warm_up(&mut *gpu.lanes[0], &signature, &[2, 8], LONG).unwrap();
    for (seed, rows) in [8, 2, 8, 5000, 8, 2, 20_000, 2, 8].into_iter().enumerate() {
        let inputs = [noise(seed, &[rows, 512])];
        let expected = run(&mut *cpu.lanes[0], &inputs).unwrap();
        let ours = run(&mut *gpu.lanes[0], &inputs).unwrap();
        assert_close(&ours, &expected, &format!("batch {seed} of {rows} rows"));
    }
}

#[test]
fn lanes_run_at_once_and_do_not_mix_up() {
    let _alone = ONE_AT_A_TIME.lock();
    for (lanes, sessions) in [(3, 1), (4, 2)] {
        let change = |settings: &mut EngineSettings<OnnxSettings>| {
            settings.lanes = lanes;
            settings.kind.sessions = sessions;
            settings.kind.graphs = vec![1, 2, 3];
        };
        let Some(gpu) = load_on_gpu(&onnx::sums(), change) else { return };
        let signature = gpu.engine.signature().clone();
        let mut ready = Vec::new();
        for mut lane in gpu.lanes {
            warm_up(&mut *lane, &signature, &[1, 2, 3], LONG).unwrap();
            ready.push(lane);
        }
        std::thread::scope(|scope| {
            for (number, mut lane) in ready.into_iter().enumerate() {
                scope.spawn(move || {
                    for turn in 0..500 {
                        let rows = 1 + turn % 5;
                        let (a, b) = (noise(number * 1000 + turn, &[rows, 4]), noise(turn, &[rows, 4]));
                        let sums: Vec<f32> =
                            as_floats(&a).iter().zip(as_floats(&b)).map(|(one, other)| one + other).collect();
                        let ours = run(&mut *lane, &[a, b]).unwrap();
                        assert_eq!(ours[0], floats(&[rows, 4], &sums), "lane {number}, turn {turn}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_failing_batch_does_not_affect_others() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(mut gpu) = load_on_gpu(&onnx::tiny(), |_| {}) else { return };
    let lane = &mut *gpu.lanes[0];
    let before = run(lane, &[noise(0, &[1, 64])]).unwrap();
    assert!(matches!(run(lane, &[noise(0, &[1, 63])]), Err(EngineError::Failed(_))));
    assert_eq!(run(lane, &[noise(0, &[1, 64])]).unwrap(), before);
}

#[test]
fn a_batch_beyond_the_limit_of_device_memory_fails_and_smaller_ones_run() {
    let _alone = ONE_AT_A_TIME.lock();
    let change = |settings: &mut EngineSettings<OnnxSettings>| settings.gpu_memory = Some(64 << 20);
    let Some(mut gpu) = load_on_gpu(&onnx::conv(), change) else { return };
    let lane = &mut *gpu.lanes[0];
    assert!(run(lane, &[noise(0, &[2, 3, 32, 32])]).is_ok());
    // The inputs alone exceed the limit, and then the intermediate values do.
    for rows in [8192, 512] {
        match run(lane, &[noise(0, &[rows, 3, 32, 32])]) {
            Err(error @ EngineError::DeviceMemory(_)) => assert!(!error.is_fatal()),
            other => panic!("{rows} rows: {:?}", other.map(|outputs| outputs.len())),
        }
        assert!(run(lane, &[noise(0, &[2, 3, 32, 32])]).is_ok());
    }
}
