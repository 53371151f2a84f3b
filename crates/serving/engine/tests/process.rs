//! An engine in a process of its own: the server survives every end of the engine.
//!
//! The engine is a small one of this test, which knows nothing of ONNX. With the argument `engine` the test runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cudock_engine::{
    CancelBatch, DeviceInfo, Engine, EngineError, EngineSettings, Extent, IsolatedEngine, Lane, LaneMemory,
    OutputSink, Provider, SharedEngine, SharedLane, own_engine, serve_child, warm_up,
};
use cudock_tensor::{DType, Signature, TensorSpec};
use cudock_testkit::client::eventually;
use cudock_testkit::process::{is_running, wait_until_gone};

/// Far longer than any run takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// An input that the engine rejects.
const REJECTED: f32 = -1.0;
/// An input with which the engine runs until it is canceled.
const ENDLESS: f32 = -2.0;
/// An input after which the engine is broken.
const BREAKING: f32 = -3.0;
/// An input for which the device has no memory.
const LARGE: f32 = -4.0;
/// An input for which the engine starts processes, whose ids are the output.
const STARTING: f32 = -5.0;
/// An input that crashes the engine.
const CRASHING: f32 = -6.0;

/// Settings of the engine, as any second engine has its own.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct ScaleSettings {
    factor: f32,
}

/// Multiplies its input `F32[rows, any size]` by a factor.
struct ScaleEngine {
    signature: Arc<Signature>,
    device: DeviceInfo,
    factor: f32,
}

impl ScaleEngine {
    fn load(settings: EngineSettings<ScaleSettings>) -> Result<Box<dyn SharedEngine>, EngineError> {
        if !settings.model.is_file() {
            return Err(EngineError::Load { model: settings.model, reason: "file not found".to_owned() });
        }
        if settings.require_gpu {
            return Err(EngineError::NoGpu("it is small".to_owned()));
        }
        let spec = |name: &str| TensorSpec::new(name, DType::F32, [None, None]);
        let device = DeviceInfo {
            provider: Provider::Cpu,
            name: "cpu".to_owned(),
            gpu: None,
            skipped_providers: Vec::new(),
            notes: Vec::new(),
            engine: "scale 1".to_owned(),
            precision: None,
        };
        let signature = Signature { inputs: vec![spec("x")], outputs: vec![spec("y")], batched: true };
        Ok(Box::new(Self { signature: Arc::new(signature), device, factor: settings.kind.factor }))
    }
}

impl Engine for ScaleEngine {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>> {
        Vec::new()
    }
}

impl SharedEngine for ScaleEngine {
    fn open_lane(&self, _number: usize, memory: LaneMemory) -> Result<Box<dyn SharedLane>, EngineError> {
        Ok(Box::new(ScaleLane { memory, factor: self.factor, canceled: Arc::default() }))
    }
}

struct ScaleLane {
    memory: LaneMemory,
    factor: f32,
    canceled: Arc<AtomicU64>,
}

impl SharedLane for ScaleLane {
    fn accept(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<(), EngineError> {
        self.memory.follow_input(index, shape, bytes).map(drop)
    }

    fn run_batch(&mut self, batch: u64) -> Result<&[Extent], EngineError> {
        let values = floats(self.memory.input_mut(0));
        if values.contains(&BREAKING) {
            return Err(EngineError::Died("the device is lost".to_owned()));
        }
        if values.contains(&REJECTED) {
            return Err(EngineError::Failed("negative input".to_owned()));
        }
        if values.contains(&LARGE) {
            return Err(EngineError::DeviceMemory("1 GiB".to_owned()));
        }
        if values.contains(&CRASHING) {
            std::process::abort();
        }
        while values.contains(&ENDLESS) {
            if self.canceled.load(Ordering::Relaxed) >= batch {
                return Err(EngineError::Failed("canceled".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let scaled = if values.contains(&STARTING) {
            bytes(&start_processes())
        } else {
            bytes(&values.iter().map(|value| value * self.factor).collect::<Vec<_>>())
        };
        let shape = self.memory.batch[0].shape.clone();
        self.memory.write_output(0, shape, &scaled)?;
        Ok(&self.memory.results)
    }

    fn canceler(&self) -> CancelBatch {
        let canceled = Arc::clone(&self.canceled);
        Box::new(move |batch| canceled.store(batch, Ordering::Relaxed))
    }
}

/// Starts a child, one in a session of its own, and a daemon, and gives their ids. They have the engine's output open.
#[allow(clippy::zombie_processes, reason = "who ends them is what is tested")]
fn start_processes() -> Vec<f32> {
    let script = "sleep 1000 & echo $!
setsid sleep 1000 & echo $!
(setsid sh -c 'echo $$; exec sleep 1000' &)
wait";
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    #[allow(clippy::cast_precision_loss, reason = "process ids have at most 22 bits")]
    lines.take(3).map(|line| line.unwrap().parse::<u32>().unwrap() as f32).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("owner") => return own_engine(std::env::args_os().skip(2)).into(),
        Some("engine") => return serve_child(ScaleEngine::load),
        Some("server") => return run_server(),
        _ => {}
    }
    cudock_testkit::run_tests(&[
        ("a_batch_runs_with_the_engines_own_settings", &own_settings),
        ("memory_grows_with_the_batches", &growth),
        ("a_failing_batch_does_not_affect_others", &failing_batch),
        ("a_batch_that_nobody_wants_is_canceled", &canceled),
        ("a_model_that_cannot_be_loaded_is_an_error", &not_loaded),
        ("a_program_that_is_not_an_engine_is_rejected", &other_programs),
        ("an_engine_killed_in_a_run_is_reported_and_another_works", &killed),
        ("an_engine_that_hangs_is_killed", &hangs),
        ("a_broken_engine_ends", &broken),
        ("the_process_ends_with_its_engine", &ends_with_engine),
        ("the_process_ends_with_its_server", &ends_with_server),
        ("what_a_model_has_started_ends_with_the_engine_however_it_ends", &started_end_with_engine),
        ("what_a_model_has_started_ends_with_the_server", &started_end_with_server),
        ("crashes_leave_no_descriptors_threads_and_processes", &nothing_is_left),
        ("the_process_ignores_signals_meant_for_the_server", &signals),
        ("lanes_run_at_once_and_do_not_mix_up", &lanes_at_once),
        ("a_thread_that_started_the_engine_may_end", &thread_ends),
    ])
}

struct Started {
    engine: IsolatedEngine,
    lanes: Vec<Box<dyn Lane>>,
}

fn settings(factor: f32) -> EngineSettings<ScaleSettings> {
    EngineSettings::new(std::env::current_exe().unwrap(), ScaleSettings { factor })
}

/// This program in another role.
fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role);
    command
}

fn load(
    settings: &EngineSettings<ScaleSettings>,
    engine: &Command,
    limit: Duration,
) -> Result<IsolatedEngine, EngineError> {
    IsolatedEngine::start(settings, command("owner"), engine, limit, None)
}

fn start(lanes: usize) -> Started {
    let settings = EngineSettings { lanes, ..settings(2.0) };
    let mut engine = load(&settings, &command("engine"), LONG).unwrap();
    let lanes = engine.take_lanes();
    Started { engine, lanes }
}

/// Runs a batch of one row.
fn run(lane: &mut dyn Lane, values: &[f32]) -> Result<Vec<f32>, EngineError> {
    run_while(lane, values, LONG, &|| true)
}

fn run_while(
    lane: &mut dyn Lane,
    values: &[f32],
    limit: Duration,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Vec<f32>, EngineError> {
    lane.input(0, &[1, values.len()], 4 * values.len())?.copy_from_slice(&bytes(values));
    let outputs = lane.run_while(limit, is_wanted)?;
    assert_eq!(outputs[0].shape, [1, values.len()]);
    Ok(floats(outputs[0].data))
}

fn kill(process: u32, signal: &str) {
    assert!(Command::new("kill").arg(signal).arg(process.to_string()).status().unwrap().success());
}

fn own_settings() {
    let mut engine = load(&settings(3.0), &command("engine"), LONG).unwrap();
    assert_eq!((engine.device().engine.as_str(), engine.signature().batched), ("scale 1", true));
    let mut lane = engine.take_lanes().remove(0);
    warm_up(&mut *lane, engine.signature(), &[1, 8], LONG).unwrap();
    assert_eq!(run(&mut *lane, &[1.0, 2.0]).unwrap(), [3.0, 6.0]);
}

fn growth() {
    let mut started = start(1);
    for count in [1, 1000, 0, 50_000, 2, 200_000, 1] {
        assert_eq!(run(&mut *started.lanes[0], &vec![1.5; count]).unwrap(), vec![3.0; count]);
    }
}

fn failing_batch() {
    let mut started = start(1);
    let lane = &mut *started.lanes[0];
    assert_eq!(run(lane, &[REJECTED]).unwrap_err().to_string(), "the engine failed: negative input");
    let error = run(lane, &[LARGE]).unwrap_err();
    assert!(
        matches!(&error, EngineError::DeviceMemory(text) if text == "1 GiB") && !error.is_fatal(),
        "{error:?}"
    );
    assert!(matches!(lane.input(0, &[1, 2], 7), Err(EngineError::Failed(_))), "7 bytes are not two floats");
    assert!(matches!(lane.input(1, &[1, 2], 8), Err(EngineError::Failed(_))), "there is no second input");
    assert_eq!(run(lane, &[1.0]).unwrap(), [2.0]);
}

fn canceled() {
    let mut started = start(1);
    let error = run_while(&mut *started.lanes[0], &[ENDLESS], LONG, &|| false).unwrap_err();
    assert_eq!(error.to_string(), "the engine failed: canceled");
    assert_eq!(run(&mut *started.lanes[0], &[1.0]).unwrap(), [2.0]);
}

fn not_loaded() {
    let settings = EngineSettings::new("missing", ScaleSettings { factor: 1.0 });
    let error = load(&settings, &command("engine"), LONG).err().unwrap();
    assert_eq!(error.to_string(), "cannot load missing: file not found");
    let settings = EngineSettings { require_gpu: true, ..self::settings(1.0) };
    let error = load(&settings, &command("engine"), LONG).err().unwrap();
    assert!(matches!(&error, EngineError::NoGpu(reason) if reason == "it is small"), "{error:?}");
}

fn other_programs() {
    let start = |engine, limit| load(&settings(1.0), &engine, limit).err().unwrap();
    for script in ["exit 7", "printf '\\377\\377\\377\\377' >&0; cat >/dev/null"] {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let error = start(command, LONG);
        assert!(matches!(error, EngineError::Load { .. }), "{error:?}");
    }
    let mut silent = Command::new("sleep");
    silent.arg("1000");
    let error = start(silent, Duration::from_millis(50));
    assert!(error.to_string().contains("timed out"), "{error}");
    let error = start(Command::new("/nonexistent"), LONG);
    assert!(error.to_string().contains("cannot start"), "{error}");
}

fn killed() {
    let Started { engine, mut lanes } = start(2);
    let process = engine.process().unwrap();
    let mut idle = lanes.pop().unwrap();
    let mut busy = lanes.pop().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || run(&mut *busy, &[ENDLESS]));
        std::thread::sleep(Duration::from_millis(200));
        kill(process, "-9");
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.is_fatal() && matches!(error, EngineError::Killed(_)));
        assert_eq!(error.to_string(), "the engine died (signal 9, SIGKILL)");
    });
    for _ in 0..2 {
        assert!(matches!(run(&mut *idle, &[1.0]), Err(EngineError::Killed(_))));
    }
    assert_eq!(run(&mut *start(1).lanes[0], &[1.0]).unwrap(), [2.0]);
}

fn hangs() {
    let Started { engine, mut lanes } = start(2);
    let error = run_while(&mut *lanes[0], &[ENDLESS], Duration::from_millis(300), &|| true).unwrap_err();
    assert!(matches!(error, EngineError::TimedOut(_)) && error.is_fatal(), "{error:?}");
    assert!(!is_running(engine.process().unwrap()));
    for lane in &mut lanes {
        assert!(matches!(run(&mut **lane, &[1.0]), Err(EngineError::Died(_))));
    }
}

fn broken() {
    let Started { engine, mut lanes } = start(1);
    let error = run(&mut *lanes[0], &[BREAKING]).unwrap_err();
    assert!(matches!(error, EngineError::Died(_)), "{error:?}");
    wait_until_gone(engine.process().unwrap());
}

fn ends_with_engine() {
    let Started { engine, lanes } = start(1);
    let process = engine.process().unwrap();
    drop(engine);
    assert!(is_running(process), "a lane still needs it");
    drop(lanes);
    wait_until_gone(process);
}

/// The server that tests start and kill: prints the ids of its engine and of what the model has started, and waits.
fn run_server() -> ExitCode {
    let Started { engine, mut lanes } = start(1);
    println!("{}", engine.process().unwrap());
    for process in started_by(&mut *lanes[0]) {
        println!("{process}");
    }
    std::thread::sleep(LONG);
    ExitCode::SUCCESS
}

/// The processes that the model of a lane starts.
fn started_by(lane: &mut dyn Lane) -> Vec<u32> {
    let ids = run(lane, &[STARTING; 3]).unwrap();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they were whole numbers")]
    let ids: Vec<u32> = ids.into_iter().map(|id| id as u32).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| is_running(*id)), "{ids:?}");
    ids
}

/// A server in a process of its own, its engine, and what the model has started.
fn start_server() -> (Child, u32, Vec<u32>) {
    let mut server = command("server").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let ids: Vec<u32> = lines.take(4).map(|line| line.unwrap().parse().unwrap()).collect();
    assert!(ids.len() == 4 && ids.iter().all(|id| is_running(*id)), "{ids:?}");
    (server, ids[0], ids[1..].to_vec())
}

fn ends_with_server() {
    let (mut server, engine, _) = start_server();
    server.kill().unwrap();
    server.wait().unwrap();
    wait_until_gone(engine);
}

fn parent_of(process: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

fn started_end_with_engine() {
    let ends: [(&str, &dyn Fn(Started)); 6] = [
        ("without its owner", &|mut started| {
            kill(parent_of(started.engine.process().unwrap()), "-9");
            eventually("the engine has ended", || run(&mut *started.lanes[0], &[1.0]).is_err());
        }),
        ("killed", &|started| {
            kill(started.engine.process().unwrap(), "-9");
            std::mem::forget(started);
        }),
        ("crashed", &|mut started| {
            let error = run(&mut *started.lanes[0], &[CRASHING]).unwrap_err();
            assert_eq!(error.to_string(), "the engine died (signal 6, SIGABRT)");
        }),
        ("broken", &|mut started| assert!(run(&mut *started.lanes[0], &[BREAKING]).is_err())),
        ("hanging", &|mut started| {
            let limit = Duration::from_millis(100);
            let error = run_while(&mut *started.lanes[0], &[ENDLESS], limit, &|| true).unwrap_err();
            assert!(matches!(error, EngineError::TimedOut(_)), "{error}");
        }),
        ("not needed", &drop),
    ];
    for (how, end) in ends {
        let mut started = start(1);
        let ids = started_by(&mut *started.lanes[0]);
        eprintln!("{how}: {ids:?}");
        end(started);
        ids.into_iter().for_each(wait_until_gone);
    }
}

fn started_end_with_server() {
    for kills_engine in [false, true] {
        let (mut server, engine, ids) = start_server();
        let mut victims = vec![server.id().to_string()];
        victims.extend(kills_engine.then(|| engine.to_string()));
        // The engine may end with the server before it is killed itself.
        Command::new("kill").arg("-9").args(victims).status().unwrap();
        server.wait().unwrap();
        ids.into_iter().chain([engine]).for_each(wait_until_gone);
    }
}

fn nothing_is_left() {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let sink: OutputSink = Arc::new(|_, _| ());
    let crash = || {
        let owner = command("owner");
        let mut engine =
            IsolatedEngine::start(&settings(2.0), owner, &command("engine"), LONG, Some(&sink)).unwrap();
        let mut lane = engine.take_lanes().remove(0);
        started_by(&mut *lane);
        assert!(run(&mut *lane, &[CRASHING]).unwrap_err().is_fatal());
    };
    crash();
    let before = (count("fd"), count("task"));
    (0..5).for_each(|_| crash());
    eventually("the threads that read output have ended", || {
        count("fd") <= before.0 && count("task") <= before.1
    });
    assert_eq!(Arc::strong_count(&sink), 1);
}

fn signals() {
    let mut started = start(1);
    for signal in ["-TERM", "-INT"] {
        kill(started.engine.process().unwrap(), signal);
        assert!(run(&mut *started.lanes[0], &[1.0]).is_ok());
    }
}

fn lanes_at_once() {
    let started = start(3);
    assert_eq!(started.lanes.len(), 3);
    std::thread::scope(|scope| {
        for (number, mut lane) in started.lanes.into_iter().enumerate() {
            scope.spawn(move || {
                for turn in 0..200_u16 {
                    let value = f32::from(turn) + f32::from(u8::try_from(number).unwrap()) * 1000.0;
                    let count = 1 + usize::from(turn % 9);
                    assert_eq!(run(&mut *lane, &vec![value; count]).unwrap(), vec![2.0 * value; count]);
                }
            });
        }
    });
}

fn thread_ends() {
    let mut started = std::thread::spawn(|| start(1)).join().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(run(&mut *started.lanes[0], &[1.0]).is_ok());
}
