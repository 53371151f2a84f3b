//! ONNX Runtime in this process: the results are those of the model.

use std::path::Path;

use cudock_engine::{Engine, EngineError, EngineSettings, Provider, warm_up};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_tensor::DType;
use cudock_testkit::onnx::OnnxModel;
use cudock_testkit::{onnx, require_onnxruntime};

use crate::support::{LONG, Plain, as_floats, floats, integers, load, noise, run, settings, strings};

/// The error of a model that cannot be loaded; `None` without ONNX Runtime.
fn load_error(model: &[u8]) -> Option<EngineError> {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(&require_onnxruntime()?, directory.path(), model);
    Some(OnnxEngine::load(&settings).err().expect("the model is rejected"))
}

#[test]
fn the_signature_is_the_models() {
    let Some(loaded) = load(&onnx::sums(), |_| {}) else { return };
    let signature = loaded.engine.signature();
    assert!(signature.batched);
    assert_eq!(signature.inputs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(signature.outputs[1].shape, [None, Some(1)]);
    assert_eq!(loaded.engine.device().provider, Provider::Cpu);
    assert_eq!(loaded.engine.device().name, "cpu");
    assert!(
        loaded.engine.device().engine.starts_with("ONNX Runtime 1."),
        "{}",
        loaded.engine.device().engine
    );
    let Some(loaded) = load(&onnx::nonzero(), |_| {}) else { return };
    assert!(!loaded.engine.signature().batched);
}

#[test]
fn several_inputs_and_outputs_keep_their_order() {
    let Some(mut loaded) = load(&onnx::sums(), |_| {}) else { return };
    let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [10.0, 20.0, 30.0, 40.0, 0.0, 0.0, 0.0, -26.0]);
    let outputs = run(&mut *loaded.lanes[0], &[floats(&[2, 4], &a), floats(&[2, 4], &b)]).unwrap();
    assert_eq!(outputs[0], floats(&[2, 4], &[11.0, 22.0, 33.0, 44.0, 5.0, 6.0, 7.0, -18.0]));
    assert_eq!(outputs[1], floats(&[2, 1], &[110.0, 0.0]));
}

#[test]
fn every_type_goes_through_unchanged() {
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::String) {
        let Some(mut loaded) = load(&onnx::identity(dtype), |_| {}) else { return };
        let size = dtype.size().unwrap();
        let modulus = if dtype == DType::Bool { 2 } else { 251 };
        let data: Vec<u8> = (0..3 * 5 * size).map(|buffer| u8::try_from(buffer % modulus).unwrap()).collect();
        let tensor: Plain = (vec![3, 5], data);
        assert_eq!(run(&mut *loaded.lanes[0], std::slice::from_ref(&tensor)).unwrap(), [tensor], "{dtype}");
    }
}

#[test]
fn strings_of_any_bytes_go_through_unchanged() {
    let Some(mut loaded) = load(&onnx::identity(DType::String), |_| {}) else { return };
    let long = vec![b'x'; 200_000];
    for tensor in [
        strings(&[2, 2], &[b"", "grün".as_bytes(), b"with\0zero", &[0xff, 0xfe]]),
        strings(&[1, 1], &[&long]),
        strings(&[0, 3], &[]),
    ] {
        assert_eq!(run(&mut *loaded.lanes[0], std::slice::from_ref(&tensor)).unwrap(), [tensor]);
    }
}

#[test]
fn a_byte_that_is_neither_is_true() {
    let Some(mut loaded) = load(&onnx::identity(DType::Bool), |_| {}) else { return };
    let outputs = run(&mut *loaded.lanes[0], &[(vec![1, 4], vec![0, 1, 2, 255])]).unwrap();
    assert_eq!(outputs[0].1, [0, 1, 1, 1]);
}

#[test]
fn an_output_whose_shape_depends_on_the_values_is_complete() {
    let Some(mut loaded) = load(&onnx::nonzero(), |_| {}) else { return };
    let lane = &mut *loaded.lanes[0];
    let outputs = run(lane, &[floats(&[3, 2], &[0.0, 1.0, 0.0, 0.0, 5.0, 0.0])]).unwrap();
    assert_eq!(outputs, [integers(&[2, 2], &[0, 2, 1, 0])]);
    assert_eq!(run(lane, &[floats(&[3, 1], &[0.0; 3])]).unwrap(), [integers(&[2, 0], &[])]);
    let outputs = run(lane, &[floats(&[3, 20_000], &vec![1.0; 60_000])]).unwrap();
    assert_eq!(outputs[0].0, [2, 60_000]);
    assert_eq!(&outputs[0].1[59_999 * 8..60_000 * 8], 2_i64.to_le_bytes());
}

#[test]
fn rows_do_not_depend_on_their_batch_mates() {
    let Some(mut loaded) = load(&onnx::tiny(), |_| {}) else { return };
    let lane = &mut *loaded.lanes[0];
    let together = as_floats(&run(lane, &[noise(1, &[9, 64])]).unwrap()[0]);
    let all = noise(1, &[9, 64]).1;
    for row in 0..9 {
        let alone = run(lane, &[(vec![1, 64], all[row * 256..(row + 1) * 256].to_vec())]).unwrap();
        for (one, other) in as_floats(&alone[0]).iter().zip(&together[row * 64..]) {
            assert!((one - other).abs() < 1e-5, "row {row}: {one} and {other}");
        }
    }
}

#[test]
fn a_lane_takes_batches_of_any_size_in_any_order() {
    let Some(mut loaded) = load(&onnx::identity(DType::F32), |_| {}) else { return };
    for (seed, rows) in [1, 700, 3, 0, 20_000, 1, 700].into_iter().enumerate() {
        let tensor = noise(seed, &[rows, 17]);
        assert_eq!(run(&mut *loaded.lanes[0], std::slice::from_ref(&tensor)).unwrap(), [tensor]);
    }
}

#[test]
fn a_failing_batch_does_not_affect_others() {
    let Some(mut loaded) = load(&onnx::gather(), |_| {}) else { return };
    let lane = &mut *loaded.lanes[0];
    let good = integers(&[2], &[0, 7]);
    let before = run(lane, std::slice::from_ref(&good)).unwrap();
    match run(lane, &[integers(&[2], &[0, 8])]) {
        Err(error @ EngineError::Failed(_)) => {
            assert!(!error.is_fatal());
            assert!(error.to_string().contains("out of data bounds"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(run(lane, &[good]).unwrap(), before);
}

#[test]
fn bytes_that_do_not_match_the_shape_are_rejected() {
    let Some(mut loaded) = load(&onnx::tiny(), |_| {}) else { return };
    let lane = &mut *loaded.lanes[0];
    assert!(matches!(lane.input(0, &[1, 64], 255), Err(EngineError::Failed(_))));
    assert!(matches!(lane.input(1, &[1, 64], 256), Err(EngineError::Failed(_))));
    assert!(matches!(lane.input(0, &[usize::MAX, 64], 256), Err(EngineError::Failed(_))));
    assert!(matches!(run(lane, &[noise(0, &[1, 63])]), Err(EngineError::Failed(_))));
    assert!(run(lane, &[noise(0, &[1, 64])]).is_ok());
}

#[test]
fn an_output_with_another_shape_than_declared_is_returned() {
    let halves = onnx::OnnxModel::new("halves")
        .input("x", DType::F32, &[None, Some(4)])
        .integers("shape", &[2], &[-1, 2])
        .node("Reshape", &["x", "shape"], &["y"], &[])
        .output("y", DType::F32, &[None, Some(2)])
        .bytes();
    let Some(mut loaded) = load(&halves, |_| {}) else { return };
    for _ in 0..3 {
        let outputs = run(&mut *loaded.lanes[0], &[noise(1, &[3, 4])]).unwrap();
        assert_eq!(outputs, [(vec![6, 2], noise(1, &[3, 4]).1)]);
    }
}

#[test]
fn lanes_run_at_once_and_do_not_mix_up() {
    let change = |settings: &mut EngineSettings<OnnxSettings>| {
        settings.lanes = 4;
        settings.kind.sessions = 2;
    };
    let Some(loaded) = load(&onnx::identity(DType::F32), change) else { return };
    assert_eq!(loaded.lanes.len(), 4);
    std::thread::scope(|scope| {
        for (number, mut lane) in loaded.lanes.into_iter().enumerate() {
            scope.spawn(move || {
                for turn in 0..200 {
                    let tensor = noise(number * 1000 + turn, &[1 + turn % 7, 33]);
                    assert_eq!(run(&mut *lane, std::slice::from_ref(&tensor)).unwrap(), [tensor]);
                }
            });
        }
    });
}

#[test]
fn an_unusable_provider_is_skipped_with_a_reason() {
    if Path::new("/dev/nvidiactl").exists() {
        cudock_testkit::missing("no-gpu", "this machine has a GPU");
        return;
    }
    let request_gpu = |settings: &mut EngineSettings<OnnxSettings>| {
        settings.providers = vec![Provider::TensorRt, Provider::Cuda];
    };
    let Some(mut loaded) = load(&onnx::tiny(), request_gpu) else { return };
    let device = loaded.engine.device();
    assert_eq!(device.provider, Provider::Cpu);
    let [(Provider::TensorRt, first), (Provider::Cuda, second)] = &device.skipped_providers[..] else {
        panic!("{device:?}")
    };
    assert!(!first.is_empty() && !second.is_empty());
    assert!(run(&mut *loaded.lanes[0], &[noise(0, &[1, 64])]).is_ok());
}

#[test]
fn a_warmed_up_lane_is_ready() {
    for model in [onnx::mlp(), onnx::conv(), onnx::spin(), onnx::identity(DType::String)] {
        let Some(mut loaded) = load(&model, |_| {}) else { return };
        let signature = loaded.engine.signature().clone();
        warm_up(&mut *loaded.lanes[0], &signature, &[1, 8], LONG).unwrap();
    }
}

#[test]
fn a_loop_runs_as_often_as_the_largest_row() {
    let Some(mut loaded) = load(&onnx::spin(), |_| {}) else { return };
    let rows = integers(&[3, 1], &[5, 0, 1000]);
    assert_eq!(run(&mut *loaded.lanes[0], std::slice::from_ref(&rows)).unwrap(), [rows]);
}

#[test]
fn operators_of_other_libraries_are_refused() {
    for operator in ["PyOp", "PythonOp", "Exec"] {
        let model = OnnxModel::new("other")
            .input("x", DType::F32, &[None, Some(2)])
            .node(operator, &["x"], &["y"], &[])
            .output("y", DType::F32, &[None, Some(2)]);
        let Some(error) = load_error(&model.bytes()) else { return };
        assert!(error.to_string().contains(operator), "{error}");
    }
}

#[test]
fn a_corrupt_model_is_rejected_with_the_engines_message() {
    let mut model = onnx::mlp();
    model.truncate(model.len() / 2);
    let Some(error) = load_error(&model) else { return };
    let EngineError::Load { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.to_lowercase().contains("protobuf"), "{reason}");
    let Some(error) = load_error(b"not a model at all") else { return };
    assert!(matches!(error, EngineError::Load { .. }));
}

#[test]
fn a_model_with_an_unknown_operator_is_rejected_with_its_name() {
    let model = onnx::OnnxModel::new("odd")
        .input("x", DType::F32, &[None])
        .node("Telepathy", &["x"], &["y"], &[])
        .output("y", DType::F32, &[None])
        .bytes();
    let Some(error) = load_error(&model) else { return };
    assert!(error.to_string().contains("Telepathy"), "{error}");
}

#[test]
fn a_missing_library_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("libonnxruntime.so");
    let settings = settings(&missing, directory.path(), &onnx::tiny());
    let error = OnnxEngine::load(&settings).err().unwrap();
    assert!(matches!(&error, EngineError::Library { library, .. } if *library == missing), "{error:?}");
}
