//! An engine in a process of its own: the same results, and the server survives every end of the engine.
//!
//! The test is its own engine: with the argument `engine` it runs one, as `cudock engine` does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod support;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cudock_engine::{
    Engine, EngineError, EngineSettings, IsolatedEngine, Lane, OnnxEngine, Provider, onnx_file,
};
use cudock_tensor::DType;
use support::{LONG, Plain, floats, integers, library, noise, run, run_within, settings, strings};

type Test = (&'static str, fn(&Path));

const TESTS: &[Test] = &[
    ("the_answers_are_those_of_the_engine_in_this_process_bit_by_bit", same_answers),
    ("every_type_goes_through_unchanged", every_type),
    ("outputs_of_unknown_shape_are_whole", unknown_shapes),
    ("memory_grows_with_the_batches", growth),
    ("a_batch_that_the_engine_refuses_costs_only_itself", poison),
    ("an_engine_killed_in_a_run_is_reported_and_another_works", killed),
    ("an_engine_that_hangs_is_stopped", hangs),
    ("an_engine_that_is_not_a_program_of_ours_is_refused", strangers),
    ("a_corrupt_model_is_refused_in_the_engines_words", corrupt),
    ("a_missing_library_is_refused_with_a_hint", missing_library),
    ("the_process_ends_with_its_engine", ends_with_engine),
    ("the_process_ends_with_its_server", ends_with_server),
    ("the_process_ignores_signals_meant_for_the_server", signals),
    ("lanes_run_at_once_and_do_not_mix_up", lanes_at_once),
    ("a_thread_that_started_the_engine_may_end", thread_ends),
    ("usage_is_that_of_the_process", usage),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("engine") => return cudock_engine::serve_child(),
        Some("server") => return run_server(&arguments[1]),
        _ => {}
    }
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in TESTS {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let Some(library) = library() else { return ExitCode::SUCCESS };
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    for (name, test) in TESTS.iter().filter(|(name, _)| wants(name)) {
        eprintln!("test {name}");
        test(&library);
    }
    ExitCode::SUCCESS
}

struct Started {
    engine: IsolatedEngine,
    lanes: Vec<Box<dyn Lane>>,
    directory: tempfile::TempDir,
}

fn engine_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("engine");
    command
}

fn start_with(
    library: &Path,
    model: &[u8],
    change: impl FnOnce(&mut EngineSettings),
) -> Result<Started, EngineError> {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(library, directory.path(), model);
    change(&mut settings);
    let mut engine = IsolatedEngine::start(&settings, engine_command(), LONG)?;
    let lanes = engine.take_lanes();
    Ok(Started { engine, lanes, directory })
}

fn start(library: &Path, model: &[u8]) -> Started {
    start_with(library, model, |_| {}).unwrap()
}

fn is_running(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn wait_until_gone(process: u32) {
    let since = Instant::now();
    while is_running(process) {
        assert!(since.elapsed() < LONG, "process {process} did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(process: u32, signal: &str) {
    assert!(Command::new("kill").arg(signal).arg(process.to_string()).status().unwrap().success());
}

fn same_answers(library: &Path) {
    for (model, inputs) in [
        (onnx_file::mlp(), vec![noise(1, &[8, 512])]),
        (onnx_file::tiny(), vec![noise(2, &[3, 64])]),
        (onnx_file::conv(), vec![noise(3, &[2, 3, 32, 32])]),
        (onnx_file::sums(), vec![noise(4, &[5, 4]), noise(5, &[5, 4])]),
        (onnx_file::gather(), vec![integers(&[4], &[0, 3, 7, 1])]),
        (onnx_file::spin(), vec![integers(&[2, 1], &[10, 0])]),
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
        let mut started = start(library, &onnx_file::identity(dtype));
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
    let mut started = start(library, &onnx_file::nonzero());
    let lane = &mut *started.lanes[0];
    assert_eq!(run(lane, &[floats(&[3, 1], &[0.0, 2.0, 0.0])]).unwrap(), [integers(&[2, 1], &[1, 0])]);
    let large = run(lane, &[floats(&[3, 50_000], &vec![1.0; 150_000])]).unwrap();
    assert_eq!(large[0].0, [2, 150_000]);
    assert_eq!(&large[0].1[149_999 * 8..150_000 * 8], 2_i64.to_le_bytes());
    assert_eq!(run(lane, &[floats(&[3, 1], &[0.0; 3])]).unwrap(), [integers(&[2, 0], &[])]);
}

fn growth(library: &Path) {
    let mut started = start(library, &onnx_file::identity(DType::F32));
    for (seed, rows) in [1, 1000, 0, 50_000, 2, 200_000, 1].into_iter().enumerate() {
        let tensor = noise(seed, &[rows, 16]);
        assert_eq!(run(&mut *started.lanes[0], std::slice::from_ref(&tensor)).unwrap(), [tensor]);
    }
}

fn poison(library: &Path) {
    let mut started = start(library, &onnx_file::gather());
    let lane = &mut *started.lanes[0];
    let before = run(lane, &[integers(&[1], &[3])]).unwrap();
    match run(lane, &[integers(&[2], &[3, 99])]) {
        Err(error @ EngineError::Failed(_)) => assert!(error.to_string().contains("bounds"), "{error}"),
        other => panic!("{other:?}"),
    }
    let mut other = start(library, &onnx_file::tiny());
    assert!(matches!(run(&mut *other.lanes[0], &[noise(0, &[1, 63])]), Err(EngineError::Failed(_))));
    assert_eq!(run(lane, &[integers(&[1], &[3])]).unwrap(), before);
}

fn killed(library: &Path) {
    let Started { engine, mut lanes, .. } =
        start_with(library, &onnx_file::spin(), |settings| settings.lanes = 2).unwrap();
    let process = engine.process().unwrap();
    let mut idle = lanes.pop().unwrap();
    let mut busy = lanes.pop().unwrap();
    let endless = integers(&[1, 1], &[i64::MAX]);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || run(&mut *busy, &[endless]));
        std::thread::sleep(Duration::from_millis(200));
        kill(process, "-9");
        match waiting.join().unwrap() {
            Err(error @ EngineError::Died(_)) => {
                assert!(error.is_fatal());
                assert_eq!(error.to_string(), "the engine died (signal 9, SIGKILL)");
            }
            other => panic!("{other:?}"),
        }
    });
    let one = integers(&[1, 1], &[1]);
    assert!(matches!(run(&mut *idle, std::slice::from_ref(&one)), Err(EngineError::Died(_))));
    assert!(matches!(run(&mut *idle, std::slice::from_ref(&one)), Err(EngineError::Died(_))));
    let mut another = start(library, &onnx_file::spin());
    assert_eq!(run(&mut *another.lanes[0], std::slice::from_ref(&one)).unwrap(), [one]);
}

fn hangs(library: &Path) {
    let Started { engine, mut lanes, .. } =
        start_with(library, &onnx_file::spin(), |settings| settings.lanes = 2).unwrap();
    let limit = Duration::from_millis(300);
    let endless = integers(&[1, 1], &[i64::MAX]);
    match run_within(&mut *lanes[0], &[endless], limit) {
        Err(error @ EngineError::TimedOut(_)) => assert!(error.is_fatal()),
        other => panic!("{other:?}"),
    }
    assert!(!is_running(engine.process().unwrap()));
    for lane in &mut lanes {
        assert!(matches!(run(&mut **lane, &[integers(&[1, 1], &[1])]), Err(EngineError::Died(_))));
    }
}

fn strangers(library: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(library, directory.path(), &onnx_file::tiny());
    for script in ["exit 7", "printf '\\377\\377\\377\\377' >&0; cat >/dev/null"] {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let error = IsolatedEngine::start(&settings, command, LONG).err().unwrap();
        assert!(matches!(error, EngineError::Load { .. }), "{error:?}");
    }
    let mut silent = Command::new("sleep");
    silent.arg("1000");
    let error = IsolatedEngine::start(&settings, silent, Duration::from_millis(50)).err().unwrap();
    assert!(error.to_string().contains("timed out"), "{error}");
    let error = IsolatedEngine::start(&settings, Command::new("/nonexistent"), LONG).err().unwrap();
    assert!(error.to_string().contains("cannot start"), "{error}");
}

fn corrupt(library: &Path) {
    let error = start_with(library, b"\x08\x08junk", |_| {}).err().unwrap();
    assert!(matches!(&error, EngineError::Load { reason, .. } if !reason.is_empty()), "{error:?}");
    let mut half = onnx_file::mlp();
    half.truncate(half.len() / 2);
    let error = start_with(library, &half, |_| {}).err().unwrap();
    assert!(error.to_string().to_lowercase().contains("protobuf"), "{error}");
}

fn missing_library(library: &Path) {
    let error = start_with(&library.with_extension("missing"), &onnx_file::tiny(), |_| {}).err().unwrap();
    assert!(matches!(error, EngineError::Library { .. }), "{error:?}");
    assert!(error.hint().is_some());
}

fn ends_with_engine(library: &Path) {
    let Started { engine, lanes, .. } = start(library, &onnx_file::tiny());
    let process = engine.process().unwrap();
    drop(engine);
    assert!(is_running(process), "a lane still needs it");
    drop(lanes);
    wait_until_gone(process);
}

/// The server that the test below starts and kills: prints its engine's process id and waits.
fn run_server(model: &str) -> ExitCode {
    let settings = EngineSettings::new(model, library().unwrap());
    let engine = IsolatedEngine::start(&settings, engine_command(), LONG).unwrap();
    println!("{}", engine.process().unwrap());
    std::thread::sleep(LONG);
    ExitCode::SUCCESS
}

fn ends_with_server(library: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let model = settings(library, directory.path(), &onnx_file::tiny()).model;
    let mut server = Command::new(std::env::current_exe().unwrap());
    let mut server = server.arg("server").arg(model).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.stdout.take().unwrap()), &mut line)
        .unwrap();
    let engine: u32 = line.trim().parse().unwrap();
    assert!(is_running(engine));
    server.kill().unwrap();
    server.wait().unwrap();
    wait_until_gone(engine);
}

fn signals(library: &Path) {
    let mut started = start(library, &onnx_file::tiny());
    for signal in ["-TERM", "-INT"] {
        kill(started.engine.process().unwrap(), signal);
        assert!(run(&mut *started.lanes[0], &[noise(0, &[1, 64])]).is_ok());
    }
}

fn lanes_at_once(library: &Path) {
    let change = |settings: &mut EngineSettings| {
        settings.lanes = 3;
        settings.sessions = 2;
        settings.providers = vec![Provider::Cuda, Provider::Cpu];
    };
    let started = start_with(library, &onnx_file::identity(DType::F32), change).unwrap();
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

fn thread_ends(library: &Path) {
    let library = library.to_owned();
    let mut started = std::thread::spawn(move || start(&library, &onnx_file::tiny())).join().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(run(&mut *started.lanes[0], &[noise(0, &[1, 64])]).is_ok());
}

fn usage(library: &Path) {
    let Started { engine, lanes, .. } = start(library, &onnx_file::mlp());
    assert!(engine.usage().resident > 1 << 20);
    let process = engine.process().unwrap();
    assert_ne!(process, std::process::id());
    drop(lanes);
    kill(process, "-9");
    wait_until_gone(process);
    assert_eq!(engine.usage().resident, 0);
}
