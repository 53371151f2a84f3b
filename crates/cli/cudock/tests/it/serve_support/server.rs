//! The real server as a child process, with the real engine behind it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub use cudock_testkit::client::eventually;
use serde_json::Value;

use super::client::{Ask, Connection, Reply};
use crate::support::Turn;

/// A directory of models and the library that runs them.
pub struct Stage {
    pub library: PathBuf,
    directory: tempfile::TempDir,
    _turn: Turn,
}

impl Stage {
    /// `None`, with a message, where there is no ONNX Runtime to test with.
    pub fn new() -> Option<Self> {
        Self::with(Turn::shared)
    }

    /// A stage that no other test uses at the same time.
    pub fn alone() -> Option<Self> {
        Self::with(Turn::alone)
    }

    /// A stage for models of Python, with the arguments that name it; there is no ONNX Runtime.
    pub fn python() -> Option<(Self, [String; 2])> {
        let python = cudock_testkit::require_numpy()?.to_str().unwrap().to_owned();
        let stage = Self {
            library: "/nonexistent/libonnxruntime.so".into(),
            directory: tempfile::tempdir().unwrap(),
            _turn: Turn::shared(),
        };
        Some((stage, ["--python".to_owned(), python]))
    }

    fn with(turn: impl FnOnce() -> Turn) -> Option<Self> {
        let library = cudock_testkit::require_onnxruntime()?;
        Some(Self { library, directory: tempfile::tempdir().unwrap(), _turn: turn() })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file; its directories too.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Replaces a file in one step, as a deployment does.
    pub fn swap(&self, name: &str, bytes: &[u8]) {
        let next = self.write(&format!(".{}.next", name.replace('/', "_")), bytes);
        fs::rename(next, self.path(name)).unwrap();
    }

    /// The command with only the library of the caller's settings.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::support::cudock(arguments);
        command
            .env("CUDOCK_ONNXRUNTIME", &self.library)
            .env_remove("CUDOCK_API_KEYS")
            .current_dir(self.directory.path());
        command
    }

    /// Serves that file or directory and waits until it is ready.
    #[track_caller]
    pub fn serve(&self, what: &str, arguments: &[&str]) -> Server {
        self.serve_as(what, arguments, |command| command)
    }

    /// The same, in a shell that first runs `limits`, as `ulimit -n 64`.
    #[track_caller]
    pub fn serve_under(&self, limits: &str, what: &str, arguments: &[&str]) -> Server {
        self.serve_as(what, arguments, |command| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]);
            shell.arg(command.get_program()).args(command.get_args());
            copy_environment(&command, &mut shell);
            shell.current_dir(self.directory.path());
            shell
        })
    }

    /// The same with a command that is changed before it is started.
    #[track_caller]
    pub fn serve_as(
        &self,
        what: &str,
        arguments: &[&str],
        change: impl FnOnce(Command) -> Command,
    ) -> Server {
        let what = self.path(what);
        let mut command = self.command(&["serve", what.to_str().unwrap(), "--device", "cpu", "--offline"]);
        if !arguments.contains(&"--listen") {
            command.args(["--port", "0"]);
        }
        if !arguments.contains(&"--threads") {
            command.args(["--threads", "1"]);
        }
        command.args(arguments);
        let mut command = change(command);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (mut address, mut log) = (None, Vec::new());
        for line in lines.by_ref() {
            let line = line.unwrap();
            let announced = line.strip_prefix("listening on ").and_then(|url| url.split("://").nth(1));
            address = address.or(announced.map(|text| text.parse().unwrap()));
            let is_ready = line.starts_with("ready ");
            log.push(line);
            if is_ready {
                break;
            }
        }
        let Some(address) = address.filter(|_| log.last().is_some_and(|line| line.starts_with("ready ")))
        else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the server did not come up:\n{}", log.join("\n"));
        };
        let log = Arc::new(Mutex::new(log));
        let shared = Arc::clone(&log);
        let listening = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                shared.lock().unwrap().push(line);
            }
        });
        Server { child, address, log, listening: Some(listening) }
    }
}

/// Gives a command the variables that another one sets.
pub fn copy_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    #[track_caller]
    pub fn connect(&self) -> Connection {
        Connection::open(self.address).unwrap()
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub fn ask(&self, ask: &Ask) -> Reply {
        self.connect().ask(ask)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.ask(&Ask::get(path))
    }

    #[track_caller]
    pub fn health(&self) -> (u16, Value) {
        let reply = self.get("/health");
        (reply.status, reply.json())
    }

    /// The first model of `/status`.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.get("/status").ok().json()["models"][0].clone()
    }

    /// The model of this name in `/status`.
    #[track_caller]
    pub fn model_status(&self, name: &str) -> Value {
        let models = self.get("/status").ok().json()["models"].clone();
        models.as_array().unwrap().iter().find(|model| model["name"] == name).unwrap().clone()
    }

    /// Requests the reload of a model; returns the status.
    #[track_caller]
    pub fn reload(&self, name: &str) -> u16 {
        self.ask(&Ask::post(&format!("/v2/repository/models/{name}/load"), "")).status
    }

    /// All samples of `/metrics` under their names with labels.
    #[track_caller]
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        samples(&self.get("/metrics").ok().text())
    }

    /// The sum over all models of something counted.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").ok().text();
        let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let values: Vec<u64> = text
            .lines()
            .filter(of_name)
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(!values.is_empty(), "no {name}");
        values.iter().sum()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processes of the engines, as the system knows them: children of their owners, which are children of the server.
    pub fn engines(&self) -> Vec<u32> {
        children(self.pid()).into_iter().flat_map(children).collect()
    }

    /// The engine that runs the only model; there may be a spare one, too.
    #[track_caller]
    pub fn engine(&self) -> u32 {
        let (_, health) = self.health();
        let processes = health["models"][0]["engine_processes"].as_array().unwrap();
        assert!(processes.len() == 1 && health["models"].as_array().unwrap().len() == 1, "{health}");
        u32::try_from(processes[0].as_u64().unwrap()).unwrap()
    }

    /// Holds the engine still until the guard is dropped, so that requests sent meanwhile certainly wait.
    pub fn hold_engine(&self) -> Held {
        let engine = self.engine();
        signal(engine, "STOP");
        // A thread that is running stops a little later, and could still answer a request.
        eventually("every thread of the engine has stopped", || {
            let tasks = std::fs::read_dir(format!("/proc/{engine}/task")).unwrap();
            tasks.flatten().all(|task| {
                let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
            })
        });
        Held { engine }
    }

    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits until the server has ended by itself.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Its standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        if std::thread::panicking() {
            eprintln!("----- log of the server -----\n{}", self.log());
        }
    }
}

/// An engine that is held still.
pub struct Held {
    engine: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        signal(self.engine, "CONT");
    }
}

/// The child processes of a process.
pub fn children(process: u32) -> Vec<u32> {
    let own = process.to_string();
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // After the name, which may hold anything, come the state and the parent.
        let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        if parent == Some(&own) && state != Some("Z") {
            children.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
    }
    children
}

pub fn signal(process: u32, name: &str) {
    // The shell's own, which every system has; a process that is gone already does not matter.
    let script = format!("kill -{name} {process} 2>/dev/null");
    let _ = Command::new("sh").args(["-c", &script]).status().unwrap();
}

/// Resident bytes of a process.
pub fn resident(process: u32) -> u64 {
    memory_of(process, "VmRSS:")
}

/// The most bytes that were ever resident of a process.
pub fn most_resident(process: u32) -> u64 {
    memory_of(process, "VmHWM:")
}

fn memory_of(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Samples of Prometheus' text. Whatever is not a comment must be a name, perhaps labels, and a number.
#[track_caller]
pub fn samples(text: &str) -> BTreeMap<String, f64> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
        })
        .collect()
}
