//! ONNX Runtime in a process of its own: the results are those in this process.
//!
//! The test is its own engine: with the argument `engine` it runs one, as `cudock engine` does, and with `owner` it owns one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod support;

use std::path::Path;
use std::process::{Command, ExitCode};

use cudock_engine::{
    Engine, EngineError, EngineSettings, IsolatedEngine, Lane, Provider, own_engine, serve_child,
};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_tensor::DType;
use cudock_testkit::{onnx, require_onnxruntime};
use support::{LONG, Plain, floats, integers, noise, run, settings, strings};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("owner") => return own_engine(std::env::args_os().skip(2)).into(),
        Some("engine") => return serve_child(|settings| Ok(Box::new(OnnxEngine::load(&settings)?))),
        _ => {}
    }
    let Some(library) = require_onnxruntime() else { return ExitCode::SUCCESS };
    cudock_testkit::run_tests(&[
        ("results_match_the_engine_in_this_process_bit_by_bit", &|| same_results(&library)),
        ("every_type_goes_through_unchanged", &|| every_type(&library)),
        ("outputs_of_unknown_shape_are_complete", &|| unknown_shapes(&library)),
        ("memory_grows_with_the_batches", &|| growth(&library)),
        ("a_failing_batch_does_not_affect_others", &|| failing_batch(&library)),
        ("a_corrupt_model_is_rejected_with_the_engines_message", &|| corrupt(&library)),
        ("a_missing_library_is_reported_as_such", &|| missing_library(&library)),
        ("lanes_run_at_once_and_do_not_mix_up", &|| lanes_at_once(&library)),
    ])
}

struct Started {
    engine: IsolatedEngine,
    lanes: Vec<Box<dyn Lane>>,
    directory: tempfile::TempDir,
}

/// This program in another role.
fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role);
    command
}

fn start_with(
    library: &Path,
    model: &[u8],
    change: impl FnOnce(&mut EngineSettings<OnnxSettings>),
) -> Result<Started, EngineError> {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(library, directory.path(), model);
    change(&mut settings);
    let mut engine = IsolatedEngine::start(&settings, command("owner"), &command("engine"), LONG, None)?;
    let lanes = engine.take_lanes();
    Ok(Started { engine, lanes, directory })
}

fn start(library: &Path, model: &[u8]) -> Started {
    start_with(library, model, |_| {}).unwrap()
}

fn same_results(library: &Path) {
    for (model, inputs) in [
        (onnx::mlp(), vec![noise(1, &[8, 512])]),
        (onnx::tiny(), vec![noise(2, &[3, 64])]),
        (onnx::conv(), vec![noise(3, &[2, 3, 32, 32])]),
        (onnx::sums(), vec![noise(4, &[5, 4]), noise(5, &[5, 4])]),
        (onnx::gather(), vec![integers(&[4], &[0, 3, 7, 1])]),
        (onnx::spin(), vec![integers(&[2, 1], &[10, 0])]),
    ] {
        let mut started = start(library, &model);
        let mut local = OnnxEngine::load(&settings(library, started.directory.path(), &model)).unwrap();
        assert_eq!(started.engine.signature(), local.signature());
        assert_eq!(started.engine.device(), local.device());
        let expected = run(&mut *local.take_lanes()[0], &inputs).unwrap();
        for _ in 0..3 {
            assert_eq!(run(&mut *started.lanes[0], &inputs).unwrap(), expected);
        }
    }
}

fn every_type(library: &Path) {
    for dtype in DType::ALL {
        let mut started = start(library, &onnx::identity(dtype));
        let tensor: Plain = match dtype.size() {
            Some(size) => {
                (vec![2, 3], (0..6 * size).map(|buffer| u8::try_from(buffer % 2).unwrap()).collect())
            }
            None => strings(&[2, 2], &[b"a", b"", "ö".as_bytes(), b"\0"]),
        };
        assert_eq!(run(&mut *started.lanes[0], std::slice::from_ref(&tensor)).unwrap(), [tensor], "{dtype}");
    }
}

fn unknown_shapes(library: &Path) {
    let mut started = start(library, &onnx::nonzero());
    let lane = &mut *started.lanes[0];
    assert_eq!(run(lane, &[floats(&[3, 1], &[0.0, 2.0, 0.0])]).unwrap(), [integers(&[2, 1], &[1, 0])]);
    let large = run(lane, &[floats(&[3, 50_000], &vec![1.0; 150_000])]).unwrap();
    assert_eq!(large[0].0, [2, 150_000]);
    assert_eq!(&large[0].1[149_999 * 8..150_000 * 8], 2_i64.to_le_bytes());
    assert_eq!(run(lane, &[floats(&[3, 1], &[0.0; 3])]).unwrap(), [integers(&[2, 0], &[])]);
}

fn growth(library: &Path) {
    let mut started = start(library, &onnx::identity(DType::F32));
    for (seed, rows) in [1, 1000, 0, 50_000, 2, 200_000, 1].into_iter().enumerate() {
        let tensor = noise(seed, &[rows, 16]);
        assert_eq!(run(&mut *started.lanes[0], std::slice::from_ref(&tensor)).unwrap(), [tensor]);
    }
}

fn failing_batch(library: &Path) {
    let mut started = start(library, &onnx::gather());
    let lane = &mut *started.lanes[0];
    let before = run(lane, &[integers(&[1], &[3])]).unwrap();
    match run(lane, &[integers(&[2], &[3, 99])]) {
        Err(error @ EngineError::Failed(_)) => assert!(error.to_string().contains("bounds"), "{error}"),
        other => panic!("{other:?}"),
    }
    let mut other = start(library, &onnx::tiny());
    assert!(matches!(run(&mut *other.lanes[0], &[noise(0, &[1, 63])]), Err(EngineError::Failed(_))));
    assert_eq!(run(lane, &[integers(&[1], &[3])]).unwrap(), before);
}

fn corrupt(library: &Path) {
    let error = start_with(library, b"\x08\x08junk", |_| {}).err().unwrap();
    assert!(matches!(&error, EngineError::Load { reason, .. } if !reason.is_empty()), "{error:?}");
    let mut half = onnx::mlp();
    half.truncate(half.len() / 2);
    let error = start_with(library, &half, |_| {}).err().unwrap();
    assert!(error.to_string().to_lowercase().contains("protobuf"), "{error}");
}

fn missing_library(library: &Path) {
    let error = start_with(&library.with_extension("missing"), &onnx::tiny(), |_| {}).err().unwrap();
    assert!(
        matches!(&error, EngineError::Library { library, .. } if library.extension().is_some_and(|end| end == "missing")),
        "{error:?}"
    );
}

fn lanes_at_once(library: &Path) {
    let change = |settings: &mut EngineSettings<OnnxSettings>| {
        settings.lanes = 3;
        settings.kind.sessions = 2;
        settings.providers = vec![Provider::Cuda, Provider::Cpu];
    };
    let started = start_with(library, &onnx::identity(DType::F32), change).unwrap();
    assert_eq!(started.lanes.len(), 3);
    std::thread::scope(|scope| {
        for (number, mut lane) in started.lanes.into_iter().enumerate() {
            scope.spawn(move || {
                for turn in 0..200 {
                    let tensor = noise(number * 1000 + turn, &[1 + turn % 9, 40]);
                    assert_eq!(run(&mut *lane, std::slice::from_ref(&tensor)).unwrap(), [tensor]);
                }
            });
        }
    });
}
