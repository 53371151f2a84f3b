//! The official clients of Triton and gRPC against the server. The promises are in the scripts in `triton/`;
//! this starts the server and them.
//!
//! Needs `CUDOCK_ONNXRUNTIME` (path of libonnxruntime) and `CUDOCK_TRITON_PYTHON` (a Python with
//! `tritonclient[http,grpc]` and `grpcio-reflection`).

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::{env, fs};

use crate::support::Turn;

const START_PATIENCE: Duration = Duration::from_secs(120);

/// Requirements of the tests on this machine.
struct Needed {
    library: PathBuf,
    python: OsString,
}

fn needed() -> Option<Needed> {
    let library = cudock_testkit::require_onnxruntime()?;
    let Some(python) = env::var_os("CUDOCK_TRITON_PYTHON") else {
        cudock_testkit::missing(
            "tritonclient",
            "CUDOCK_TRITON_PYTHON does not name a Python with tritonclient[http,grpc]",
        );
        return None;
    };
    Some(Needed { library, python })
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triton").join(name)
}

/// A server of the models, stopped when it goes out of scope.
struct Server {
    process: Child,
    address: String,
    _turn: Turn,
}

impl Server {
    fn start(library: &Path) -> Self {
        Self::start_with(library, &[])
    }

    fn start_with(library: &Path, settings: &[&str]) -> Self {
        let turn = Turn::shared();
        let process = Command::new(env!("CARGO_BIN_EXE_cudock"))
            .arg("serve")
            .arg(script("models"))
            .args(["--port", "0", "--device", "cpu", "--threads", "1"])
            .args(settings)
            .env("CUDOCK_ONNXRUNTIME", library)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self { process, address: String::new(), _turn: turn };
        let (sender, lines) = mpsc::channel();
        let stderr = server.process.stderr.take().unwrap();
        // Read to the end, so that a full pipe never blocks the server.
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("server: {line}");
                sender.send(line).ok();
            }
        });
        loop {
            let line = lines.recv_timeout(START_PATIENCE).expect("the server says that it is ready");
            if let Some((_, address)) = line.split_once("listening on http://") {
                address.trim().clone_into(&mut server.address);
            }
            if line.starts_with("ready") {
                return server;
            }
        }
    }

    fn ended(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        // SIGTERM first, so that its engine's process ends with it; SIGKILL if `kill` cannot run.
        let signaled = Command::new("kill").arg(self.process.id().to_string()).status();
        if !signaled.is_ok_and(|status| status.success()) {
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}

fn run(python: &OsString, name: &str, arguments: &[&str]) {
    let output = Command::new(python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(script(name))
        .args(arguments)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{stdout}\n{stderr}", output.status);
    eprintln!("{stdout}{stderr}");
}

#[test]
fn the_official_clients_work_unchanged() {
    let Some(Needed { library, python }) = needed() else { return };
    let server = Server::start(&library);
    run(&python, "talk.py", &[&server.address]);
}

#[test]
fn a_server_that_is_stopped_answers_its_streams_and_notifies_them() {
    let Some(Needed { library, python }) = needed() else { return };
    let server = Server::start(&library);
    run(&python, "end.py", &[&server.address, &server.process.id().to_string()]);
    assert!(server.ended().success());
}

#[test]
fn streams_live_as_long_as_their_client_does() {
    let Some(Needed { library, python }) = needed() else { return };
    let server = Server::start_with(&library, &["--client-timeout", "1s"]);
    run(&python, "streams.py", &[&server.address]);
}

#[test]
fn probes_need_no_key_and_all_else_does() {
    let Some(Needed { library, python }) = needed() else { return };
    let key = format!("{:x}", process::id());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys");
    fs::write(&file, &key).unwrap();
    let server = Server::start_with(&library, &["--api-keys", file.to_str().unwrap()]);
    run(&python, "keys.py", &[&server.address, &key]);
}

#[test]
fn reflection_describes_every_call() {
    let Some(Needed { library, python }) = needed() else { return };
    let server = Server::start(&library);
    run(&python, "reflect.py", &[&server.address]);
}
