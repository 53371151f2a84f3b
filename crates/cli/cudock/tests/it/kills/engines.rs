//! Engines whose models start processes, and models that are loaded and unloaded, while processes are killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cudock_testkit::process::is_running;
use cudock_testkit::random::{Random, cases, seed};
use serde_json::json;

use crate::serve_support::client::{Ask, Connection};
use crate::serve_support::made::times;
use crate::serve_support::on_threads;
use crate::serve_support::server::{Server, Stage, children, eventually};

/// The variable by which all processes that descend from a server are recognized.
const MARK: &str = "CUDOCK_TEST_MARK";

/// A model that starts a child, one in a session of its own and a daemon, when it is loaded and for each batch.
const STARTER: &str = "import subprocess
class Model:
    def start(self):
        script = 'sleep 1000 & setsid sleep 1000 & (setsid sh -c \"exec sleep 1000\" &) ; wait'
        subprocess.Popen(['sh', '-c', script])
    load = start
    def predict(self, rows: list):
        self.start()
        return rows
";

/// The directory for temporary files of servers, which is also their mark, and its content after one that nobody killed:
/// ONNX Runtime has a file of its own.
struct Traces {
    mark: PathBuf,
    usual: BTreeSet<String>,
}

impl Traces {
    /// Serves these models, sends one request, and lets the server end.
    fn of_one(stage: &Stage, models: &str, arguments: &[&str], ask: &Ask) -> (Self, Duration) {
        let mark = stage.path("marked");
        fs::create_dir(&mark).unwrap();
        let mut traces = Self { mark, usual: BTreeSet::new() };
        let began = Instant::now();
        let mut server = stage.serve_as(models, arguments, |command| traces.mark(command));
        let start = began.elapsed();
        server.ask(ask).ok();
        assert!(traces.processes().len() >= 3, "a server, an owner and an engine");
        server.signal("TERM");
        server.wait();
        drop(server);
        eventually("no process is left", || traces.processes().is_empty());
        traces.usual = traces.files();
        (traces, start)
    }

    fn mark(&self, mut command: Command) -> Command {
        command.env(MARK, &self.mark).env("TMPDIR", &self.mark);
        command
    }

    /// The processes with the mark.
    fn processes(&self) -> BTreeSet<u32> {
        let wanted = format!("{MARK}={}", self.mark.display()).into_bytes();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let has_mark = |id: &u32| {
            let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == wanted)
        };
        ids.filter(has_mark).collect()
    }

    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.mark).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[track_caller]
    fn assert_usual(&self) {
        eventually("no process is left", || self.processes().is_empty());
        assert_eq!(self.files(), self.usual);
    }
}

/// How many pieces of memory that engines share a process has open. They are anonymous: the kernel frees what nobody has.
fn shared_memory(process: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("memfd:cudock")).count()
}

fn kill(processes: impl IntoIterator<Item = u32>) {
    let ids: Vec<String> = processes.into_iter().map(|id| id.to_string()).collect();
    // There may be none, and some may have ended.
    let _ = Command::new("kill").arg("-9").args(ids).stderr(Stdio::null()).status().unwrap();
}

#[test]
fn nothing_is_left_of_a_server_and_its_workers_whichever_is_killed_when() {
    let Some((stage, python)) = Stage::python() else { return };
    stage.write("scorer/model.py", STARTER.as_bytes());
    let arguments = [&python[0][..], &python[1]];
    let (traces, start) = Traces::of_one(&stage, "scorer", &arguments, &Ask::predict("[{}]"));
    let model = stage.path("scorer");
    let serve =
        ["serve", model.to_str().unwrap(), "--device", "cpu", "--port", "0", arguments[0], arguments[1]];
    let mut random = Random::new(seed());
    let (mut early, mut late) = (0, 0);
    for round in 0..cases(5) {
        let mut command = traces.mark(stage.command(&serve));
        let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(start.mul_f64(random.fraction() * 1.5));
        let workers: Vec<u32> = children(server.id()).into_iter().flat_map(children).collect();
        *(if workers.is_empty() { &mut early } else { &mut late }) += 1;
        if random.one_in(3) {
            // Everything of these workers ends although the server lives on and starts others.
            let mut before = traces.processes();
            before.remove(&server.id());
            kill(workers.iter().copied());
            if !workers.is_empty() {
                eventually("nothing of the worker is left", || before.iter().all(|id| !is_running(*id)));
            }
            sleep(start.mul_f64(random.fraction() / 2.0));
        }
        let victims =
            if random.one_in(2) { vec![server.id()] } else { [&workers[..], &[server.id()]].concat() };
        eprintln!("round {round}: {victims:?} with workers {workers:?}");
        kill(victims);
        server.wait().unwrap();
        traces.assert_usual();
    }
    eprintln!("{early} before and {late} after the worker was there");
}

#[test]
fn models_are_whole_or_not_there_while_engines_are_killed_and_models_loaded_and_unloaded() {
    let Some(stage) = Stage::new() else { return };
    let factors = [2.0_f32, 3.0, 5.0];
    for (index, factor) in factors.into_iter().enumerate() {
        stage.write(&format!("models/m{index}.onnx"), &times(factor));
    }
    let arguments = ["--on-demand", "--queue-time", "60s"];
    let ask = Ask::post("/predict/m0", r#"{"input": [[1, 1, 1, 1]]}"#);
    let (traces, _) = Traces::of_one(&stage, "models", &arguments, &ask);
    let server = stage.serve_as("models", &arguments, |command| traces.mark(command));
    let seed = seed();
    let is_over = AtomicBool::new(false);
    let counts = on_threads(3, |thread| {
        let mut random = Random::new(seed ^ thread as u64);
        let mut count = 0;
        while !is_over.load(Ordering::SeqCst) {
            count += 1;
            match thread {
                0 => change(&server, &mut random),
                1 => predict(&server, &mut random, &factors),
                _ => {
                    sleep(Duration::from_millis(random.below(100) as u64));
                    let engines = server.engines();
                    kill(engines.get(random.below(engines.len())).copied());
                    is_over.store(count == cases(5), Ordering::SeqCst);
                }
            }
        }
        count
    });
    eprintln!("{counts:?} loads and unloads, predictions, and kills");
    for index in 0..factors.len() {
        let unload = Ask::post(&format!("/v2/repository/models/m{index}/unload"), "");
        assert_eq!(server.ask(&unload).status, 200);
    }
    assert_eq!((server.engines(), shared_memory(server.pid())), (vec![], 0));
    for (index, factor) in factors.into_iter().enumerate() {
        // The next attempt after one that failed would be made later.
        assert_eq!(server.reload(&format!("m{index}")), 200);
        let reply =
            server.ask(&Ask::post(&format!("/predict/m{index}"), r#"{"input": [[1, 1, 1, 1]]}"#)).ok();
        assert_eq!(reply.json()["prediction"][0][0], f64::from(factor));
    }
    assert_eq!(server.engines().len(), factors.len());
    kill([server.pid()]);
    traces.assert_usual();
}

/// Loads or unloads a model.
fn change(server: &Server, random: &mut Random) {
    let verb = random.pick(&["load", "unload"]);
    let path = format!("/v2/repository/models/m{}/{verb}", random.below(3));
    let status = server.ask(&Ask::post(&path, "")).status;
    // A load may meet the end of its engine.
    assert!(status == 200 || *verb == "load" && status == 500, "{path}: {status}");
}

/// Sends a request to a model: the response is that of the complete model, or that it does not exist.
fn predict(server: &Server, random: &mut Random, factors: &[f32]) {
    let index = random.below(factors.len());
    let input = json!({"input": [[1, 1, 1, 1]]}).to_string();
    let mut connection = Connection::open(server.address).unwrap();
    let reply = connection.ask(&Ask::post(&format!("/predict/m{index}"), input));
    match reply.status {
        200 => assert_eq!(reply.json()["prediction"][0][0], f64::from(factors[index])),
        status => assert!(matches!(status, 500 | 503), "{status}: {}", reply.text()),
    }
}
