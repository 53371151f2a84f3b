//! Measures the effect of each GPU option, in a process of its own and with the settings of a server.
//!
//!     CUDOCK_ONNXRUNTIME=…/libonnxruntime.so.1.31.1 cargo bench -p cudock-engine-onnx --bench gpu -- [MODEL.onnx]
//!
//! The default models are the small convolutional net and the three-layer net of the tests. Rows are random; each row
//! of the table adds one option to the one above it. Two lanes take turns, as in a server: one is filled while the
//! other one runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement may fail loudly"
)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cudock_engine::{
    Engine, EngineSettings, IsolatedEngine, Lane, Provider, own_engine, serve_child, warm_up,
};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_tensor::{Signature, elements};
use cudock_testkit::onnx;

const LIMIT: Duration = Duration::from_secs(300);
const ROWS: [usize; 5] = [1, 8, 32, 128, 256];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("owner") => return own_engine(std::env::args_os().skip(2)).into(),
        Some("engine") => return serve_child(|settings| Ok(Box::new(OnnxEngine::load(&settings)?))),
        _ => {}
    }
    let Some(library) = std::env::var_os("CUDOCK_ONNXRUNTIME").map(PathBuf::from) else {
        eprintln!("skipped: CUDOCK_ONNXRUNTIME does not name a library of ONNX Runtime");
        return ExitCode::SUCCESS;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut models: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    if models.is_empty() {
        for (name, model) in [("conv.onnx", onnx::conv()), ("mlp.onnx", onnx::mlp())] {
            models.push(directory.path().join(name));
            std::fs::write(models.last().unwrap(), model).unwrap();
        }
    }
    let seconds = std::env::var("SECONDS_EACH").ok().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    for model in models {
        println!("{}: rows/s by rows of a batch {ROWS:?}", model.file_name().unwrap().to_string_lossy());
        let plain = OnnxSettings {
            exhaustive: true,
            pinned: false,
            io_binding: false,
            ..OnnxSettings::new(&library)
        };
        let pinned = OnnxSettings { pinned: true, ..plain.clone() };
        let bound = OnnxSettings { io_binding: true, ..pinned.clone() };
        let captured = OnnxSettings { graphs: ROWS.to_vec(), ..bound.clone() };
        let last = OnnxSettings { nhwc: true, ..captured.clone() };
        let sessions = OnnxSettings { sessions: 2, ..last.clone() };
        for (name, kind) in [
            ("plain", plain),
            ("+ pinned", pinned),
            ("+ io binding", bound),
            ("+ captured", captured),
            ("+ channels last", last),
            ("+ two sessions", sessions),
        ] {
            let settings = EngineSettings {
                providers: vec![Provider::Cuda],
                lanes: 2,
                ..EngineSettings::new(&model, kind)
            };
            measure(name, &settings, Duration::from_secs_f64(seconds));
        }
    }
    ExitCode::SUCCESS
}

/// This program in another role.
fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role);
    command
}

fn measure(name: &str, settings: &EngineSettings<OnnxSettings>, time: Duration) {
    let mut engine = match IsolatedEngine::start(settings, command("owner"), &command("engine"), LIMIT, None)
    {
        Ok(engine) => engine,
        Err(error) => return println!("{name:<16} {error}"),
    };
    let device = engine.device().clone();
    let signature = engine.signature().clone();
    let mut lanes = engine.take_lanes();
    for lane in &mut lanes {
        warm_up(&mut **lane, &signature, &ROWS, LIMIT).unwrap();
    }
    let rates: Vec<String> =
        ROWS.iter().map(|&rows| format!("{:>9.0}", rate(&mut lanes, &signature, rows, time))).collect();
    println!(
        "{name:<16} {}  {} {:?} {:?}",
        rates.join(" "),
        device.name,
        device.skipped_providers,
        device.notes
    );
}

/// Rows per second with every lane driven by its own thread, each input copied in before each run.
fn rate(lanes: &mut [Box<dyn Lane>], signature: &Signature, rows: usize, time: Duration) -> f64 {
    let inputs: Vec<(Vec<usize>, Vec<u8>)> = signature
        .inputs
        .iter()
        .map(|spec| {
            let mut shape: Vec<usize> = spec.shape.iter().map(|size| size.unwrap_or(1)).collect();
            shape[0] = rows;
            let bytes = elements(&shape).unwrap() * spec.dtype.size().unwrap();
            // Small numbers in every float type: each byte below that of the exponent's upper half.
            (shape, (0..bytes).map(|buffer| u8::try_from(buffer * 37 % 59).unwrap()).collect())
        })
        .collect();
    let done = AtomicU32::new(0);
    let since = Instant::now();
    std::thread::scope(|scope| {
        for lane in &mut *lanes {
            scope.spawn(|| {
                while since.elapsed() < time {
                    for (index, (shape, data)) in inputs.iter().enumerate() {
                        lane.input(index, shape, data.len()).unwrap().copy_from_slice(data);
                    }
                    let outputs = lane.run(LIMIT).unwrap();
                    std::hint::black_box(outputs[0].data[0]);
                    done.fetch_add(u32::try_from(rows).unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    f64::from(done.load(Ordering::Relaxed)) / since.elapsed().as_secs_f64()
}
