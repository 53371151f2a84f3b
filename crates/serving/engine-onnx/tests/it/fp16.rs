//! Models converted to fp16, on ONNX Runtime: the results are those of fp32 but for rounding.

use std::path::{Path, PathBuf};

use cudock_engine::{Engine, EngineSettings, PrecisionReport, Provider};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_tensor::DType;
use cudock_testkit::{onnx, require_onnxruntime};

use crate::gpu::ONE_AT_A_TIME;
use crate::support::{Plain, as_floats, floats, integers, noise, run, settings};

/// The models of `make.py`.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../serving/model/tests/fp16/{name}.onnx"))
}

fn load(library: &Path, model: &Path, fp16: bool) -> OnnxEngine {
    load_on(Provider::Cpu, library, model, fp16)
}

fn load_on(provider: Provider, library: &Path, model: &Path, fp16: bool) -> OnnxEngine {
    let kind = OnnxSettings { fp16, ..OnnxSettings::new(library) };
    let providers = vec![provider];
    OnnxEngine::load(&EngineSettings { threads: 1, providers, ..EngineSettings::new(model, kind) }).unwrap()
}

fn report(engine: &OnnxEngine) -> PrecisionReport {
    engine.device().precision.clone().unwrap()
}

/// The largest difference from fp32 on the CPU, as a share of the largest value.
fn largest_difference(provider: Provider, library: &Path, model: &Path, inputs: &[Plain]) -> f32 {
    let outputs = |fp16: bool| {
        let mut engine = load_on(if fp16 { provider } else { Provider::Cpu }, library, model, fp16);
        if fp16 {
            assert_eq!(report(&engine).used, "fp16", "{}: {:?}", model.display(), report(&engine));
        }
        let types: Vec<DType> = engine.signature().outputs.iter().map(|spec| spec.dtype).collect();
        (types, run(engine.take_lanes()[0].as_mut(), inputs).unwrap())
    };
    let ((types, full), (half_types, half)) = (outputs(false), outputs(true));
    assert_eq!(types, half_types, "the types of outputs do not change");
    let mut most = 0.0_f32;
    for ((dtype, full), half) in types.iter().zip(&full).zip(&half) {
        assert_eq!(full.0, half.0, "{}", model.display());
        if *dtype != DType::F32 {
            assert_eq!(full.1, half.1, "{}", model.display());
            continue;
        }
        let (full, half) = (as_floats(full), as_floats(half));
        let largest = full.iter().fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
        for (full, half) in full.iter().zip(&half) {
            assert!(half.is_finite(), "{}", model.display());
            most = most.max((full - half).abs() / largest);
        }
    }
    most
}

/// Checks each rule of the conversion.
fn check_rules(provider: Provider, library: &Path) {
    let ids = |shape: &[usize], most: i64| {
        let count = i64::try_from(shape.iter().product::<usize>()).unwrap();
        integers(shape, &(0..count).map(|index| index % most).collect::<Vec<_>>())
    };
    let models: &[(&str, Vec<Plain>)] = &[
        ("conv_bn", vec![noise(1, &[3, 3, 8, 8])]),
        ("layer_norm", vec![noise(2, &[3, 8])]),
        ("layer_norm_parts", vec![noise(3, &[3, 8])]),
        ("attention", vec![noise(4, &[2, 6, 8]), integers(&[2, 6], &[1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1])]),
        ("resize", vec![noise(5, &[2, 3, 4, 4])]),
        ("branch", vec![noise(6, &[3, 4])]),
        ("branch", vec![floats(&[1, 4], &[0.1, 0.2, 0.3, 0.4])]),
        ("loop", vec![noise(7, &[3, 4])]),
        ("constants", vec![noise(8, &[3, 4])]),
        ("casts", vec![noise(9, &[3, 4]), ids(&[3, 4], 12)]),
        ("external", vec![ids(&[8, 1], 8)]),
        ("sizes", vec![noise(10, &[2, 4099])]),
        ("positions", vec![ids(&[9, 1], 9), noise(11, &[9, 4])]),
        ("detection", vec![noise(12, &[1, 5, 4])]),
        ("old_format", vec![noise(13, &[2, 3, 4, 4])]),
        ("quantized", vec![noise(14, &[3, 4])]),
        ("function", vec![noise(15, &[3, 4])]),
        ("tokens", vec![ids(&[3, 7], 4)]),
        ("recurrent", vec![noise(16, &[5, 2, 4])]),
        ("names", vec![noise(17, &[3, 4])]),
    ];
    for (name, inputs) in models {
        let difference = largest_difference(provider, library, &fixture(name), inputs);
        assert!(difference < 0.005, "{name}: {difference}");
    }
}

#[test]
fn every_rule_keeps_the_results() {
    let Some(library) = require_onnxruntime() else { return };
    check_rules(Provider::Cpu, &library);
}

#[test]
fn every_rule_keeps_the_results_on_a_gpu() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(library) = require_onnxruntime() else { return };
    let engine = load_on(Provider::Cuda, &library, &fixture("conv_bn"), false);
    if engine.device().provider != Provider::Cuda {
        cudock_testkit::missing("gpu", format_args!("{:?}", engine.device().skipped_providers));
        return;
    }
    drop(engine);
    check_rules(Provider::Cuda, &library);
}

#[test]
fn the_models_of_other_tests_keep_their_results() {
    let Some(library) = require_onnxruntime() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (name, model, inputs) in [
        ("mlp", onnx::mlp(), vec![noise(1, &[4, 512])]),
        ("conv", onnx::conv(), vec![noise(2, &[4, 3, 32, 32])]),
        ("tiny", onnx::tiny(), vec![noise(3, &[4, 64])]),
        ("sums", onnx::sums(), vec![noise(4, &[4, 4]), noise(5, &[4, 4])]),
    ] {
        let file = directory.path().join(format!("{name}.onnx"));
        std::fs::write(&file, model).unwrap();
        let difference = largest_difference(Provider::Cpu, &library, &file, &inputs);
        assert!(difference < 0.005, "{name}: {difference}");
    }
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/digits/model.onnx");
    let difference = largest_difference(Provider::Cpu, &library, &digits, &[noise(6, &[5, 64])]);
    assert!(difference < 0.005, "digits: {difference}");
}

#[test]
fn the_difference_on_samples_is_reported() {
    let Some(library) = require_onnxruntime() else { return };
    let engine = load(&library, &fixture("conv_bn"), true);
    let report = report(&engine);
    let difference = report.difference.unwrap();
    assert!(difference.max_absolute > 0.0 && difference.max_relative < 0.01, "{difference:?}");
    assert!(difference.same_result.is_some(), "{difference:?}");
    assert_eq!((report.used.as_str(), report.reason), ("fp16", None));
    let report = self::report(&load(&library, &fixture("overflow"), true));
    assert_eq!((report.clamped_weights, report.raised_weights), (2, 1));
    let report = self::report(&load(&library, &fixture("loop"), true));
    assert_eq!(report.fp32_operators, ["Loop 1"]);
}

#[test]
fn a_model_that_overflows_in_fp16_stays_in_fp32() {
    let Some(library) = require_onnxruntime() else { return };
    let mut engine = load(&library, &fixture("infinite"), true);
    let report = report(&engine);
    assert_eq!(report.used, "fp32");
    let reason = report.reason.unwrap();
    assert!(reason.contains("output `y` has infinities or NaN"), "{reason}");
    let outputs = run(engine.take_lanes()[0].as_mut(), &[noise(1, &[2, 4])]).unwrap();
    assert!(as_floats(&outputs[0]).iter().all(|value| value.is_finite()));
}

#[test]
fn a_model_that_cannot_be_converted_stays_in_fp32() {
    let Some(library) = require_onnxruntime() else { return };
    let engine = load(&library, &fixture("nothing"), true);
    let report = report(&engine);
    assert_eq!(report.used, "fp32");
    assert_eq!(report.reason.as_deref(), Some("no operator of the model can compute in fp16"));
    let directory = tempfile::tempdir().unwrap();
    let mut corrupt = settings(&library, directory.path(), b"not a model");
    corrupt.kind.fp16 = true;
    assert!(OnnxEngine::load(&corrupt).is_err());
}
