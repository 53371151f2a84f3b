//! Measures the overhead of a lane compared with a bare loop of the engine: in this process, and in one of its own.
//!
//!     CUDOCK_ONNXRUNTIME=…/libonnxruntime.so.1.31.1 cargo bench -p cudock-engine-onnx
//!
//! The three take turns, in slices of a tenth of a second, so that a busy machine affects all of them. Rows per second
//! are those of the median slice; the overhead is the difference of the time of a run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement may fail loudly"
)]

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use cudock_engine::{Engine, EngineSettings, IsolatedEngine, Lane, own_engine, serve_child};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings, environment};
use cudock_testkit::onnx;
use ort::session::Session;
use ort::value::TensorRef;

const SLICE: Duration = Duration::from_millis(100);
const SLICES: usize = 15;
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("owner") => return own_engine(std::env::args_os().skip(2)).into(),
        Some("engine") => return serve_child(|settings| Ok(Box::new(OnnxEngine::load(&settings)?))),
        _ => {}
    }
    let Some(library) = std::env::var_os("CUDOCK_ONNXRUNTIME") else {
        eprintln!("skipped: CUDOCK_ONNXRUNTIME does not name a library of ONNX Runtime");
        return ExitCode::SUCCESS;
    };
    println!(
        "model  rows  bare rows/s  lane rows/s  ratio  own process rows/s  ratio  cost µs: lane  process"
    );
    let directory = tempfile::tempdir().unwrap();
    for (name, model, width) in [("tiny", onnx::tiny(), 64), ("mlp", onnx::mlp(), 512)] {
        let file = directory.path().join(format!("{name}.onnx"));
        std::fs::write(&file, model).unwrap();
        let settings =
            EngineSettings { threads: 1, ..EngineSettings::new(&file, OnnxSettings::new(&library)) };
        measure(name, &settings, width);
    }
    ExitCode::SUCCESS
}

/// This program in another role.
fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role);
    command
}

fn measure(name: &str, settings: &EngineSettings<OnnxSettings>, width: usize) {
    let mut local = OnnxEngine::load(settings).unwrap();
    let mut local = local.take_lanes().remove(0);
    let mut isolated = IsolatedEngine::start(settings, command("owner"), &command("engine"), LIMIT, None)
        .unwrap()
        .take_lanes()
        .remove(0);
    let mut session = bare_session(settings);
    for rows in [1, 8, 32, 64] {
        let input: Vec<f32> =
            (0..rows * width).map(|buffer| f32::from(u8::try_from(buffer % 251).unwrap()) / 251.0).collect();
        let bytes: Vec<u8> = input.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..SLICES {
            times[0].push(slice(|| bare(&mut session, rows, width, &input)));
            times[1].push(slice(|| through(&mut *local, rows, width, &bytes)));
            times[2].push(slice(|| through(&mut *isolated, rows, width, &bytes)));
        }
        let [bare, lane, process] = times.map(middle);
        let rate = |time: f64| f64::from(u32::try_from(rows).unwrap()) / time;
        println!(
            "{name:<5} {rows:>5} {:>12.0} {:>12.0} {:>6.2} {:>19.0} {:>6.2} {:>14.1} {:>8.1}",
            rate(bare),
            rate(lane),
            bare / lane,
            rate(process),
            bare / process,
            (lane - bare) * 1e6,
            (process - bare) * 1e6,
        );
    }
}

fn bare_session(settings: &EngineSettings<OnnxSettings>) -> Session {
    Session::builder(&environment(settings).unwrap())
        .unwrap()
        .with_intra_threads(settings.threads)
        .unwrap()
        .with_intra_op_spinning(false)
        .unwrap()
        .commit_from_file(&settings.model)
        .unwrap()
}

/// Seconds that one run takes, over a slice of time.
fn slice(mut run: impl FnMut()) -> f64 {
    let (since, mut runs) = (Instant::now(), 0_u32);
    while since.elapsed() < SLICE {
        run();
        runs += 1;
    }
    since.elapsed().as_secs_f64() / f64::from(runs)
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn bare(session: &mut Session, rows: usize, width: usize, input: &[f32]) {
    let input = TensorRef::from_array_view(([rows, width], input)).unwrap();
    let outputs = session.run(ort::inputs![input]).unwrap();
    let (_, data) = outputs[0].try_extract_tensor::<f32>().unwrap();
    std::hint::black_box(data[0]);
}

fn through(lane: &mut dyn Lane, rows: usize, width: usize, input: &[u8]) {
    lane.input(0, &[rows, width], input.len()).unwrap().copy_from_slice(input);
    let outputs = lane.run(LIMIT).unwrap();
    std::hint::black_box(outputs[0].data[0]);
}
