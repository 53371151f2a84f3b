//! Real containers, made by podman's command and by docker's. There is no daemon of docker's in the tests: its command
//! talks to podman's service, which speaks the same language; so docker's own words are read by docker's own reader.
//!
//! An engine is driven with our own outputs and environment, so each act is a process of its own: this program again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cudock_base::Report as _;
use cudock_runtime::copy::{CopyRequest, Direction};
use cudock_runtime::engine::external::{find, find_with_image};
use cudock_runtime::engine::{LogRequest, RunRequest};
use cudock_runtime::exec::ExecRequest;
use cudock_runtime::plan::Private;
use nix::sys::signal::SigSet;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const IMAGE: &str = "localhost/cudock-test:1";
const ACT: &str = "CUDOCK_TEST_ACT";
const RESULT: &str = "CUDOCK_TEST_RESULT";

/// Not a test of its own: the other side of [`Engines::act`].
#[test]
fn act() {
    let Ok(act) = std::env::var(ACT) else { return };
    let outcome = perform(&serde_json::from_str(&act).unwrap());
    fs::write(std::env::var(RESULT).unwrap(), outcome.to_string()).unwrap();
    std::process::exit(0);
}

fn perform(act: &Value) -> Value {
    let word = |name: &str| act[name].as_str().unwrap_or_default();
    if act["verb"] == "holding" {
        return json!({"ok": find_with_image(word("name")).map(|engine| engine.name())});
    }
    let engine = match find(word("engine")) {
        Ok(engine) => engine,
        Err(error) => return json!({"error": error.to_string(), "hint": error.hints().pop()}),
    };
    let name = word("name");
    let done = match word("verb") {
        "run" => engine.run(request(act)).map(Value::from),
        "list" => engine.list(act["all"] == true).map(|found| serde_json::to_value(found).unwrap()),
        "logs" => {
            let tail = act["tail"].as_u64().map(|lines| usize::try_from(lines).unwrap());
            let follow = act["follow"] == true;
            engine
                .logs(
                    name,
                    LogRequest {
                        follow,
                        tail,
                        timestamps: act["timestamps"] == true,
                        ..LogRequest::default()
                    },
                )
                .map(|()| Value::Null)
        }
        "exec" => {
            let exec: ExecRequest = serde_json::from_value(act["exec"].clone()).unwrap();
            engine.exec(name, &exec).map(Value::from)
        }
        "stop" => engine.stop(name, Some(1)).map(|()| Value::Null),
        "remove" => engine.remove(name, act["force"] == true).map(|()| Value::Null),
        "wait" => engine.wait(name).map(Value::from),
        "inspect" => engine.inspect(name),
        "kill" => engine.kill(name, word("signal")).map(|()| Value::Null),
        "start" => engine.start(name, &[], false).map(Value::from),
        "restart" => engine.restart(name, Some(0)).map(|()| Value::Null),
        "copy" => {
            let direction = if act["in"] == true { Direction::In } else { Direction::Out };
            let request = CopyRequest {
                direction,
                inside: word("inside").to_owned(),
                outside: word("outside").to_owned(),
                archive: false,
                follow_link: false,
            };
            engine.copy(name, &request).map(|_| Value::Null)
        }
        other => panic!("no verb {other}"),
    };
    match done {
        Ok(value) => json!({"ok": value}),
        Err(error) => {
            let behind = std::error::Error::source(&error).map(ToString::to_string);
            json!({"error": error.to_string(), "hint": error.hints().pop(), "behind": behind})
        }
    }
}

fn request(act: &Value) -> RunRequest {
    let words = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap_or_default() };
    let environment: Vec<(String, String)> = serde_json::from_value(act["env"].clone()).unwrap_or_default();
    RunRequest {
        plan: serde_json::from_value(act["plan"].clone()).unwrap(),
        private: Private { environment },
        entrypoint: (!act["entrypoint"].is_null()).then(|| words(&act["entrypoint"])),
        command: words(&act["command"]),
        cwd: act["cwd"].as_str().map(str::to_owned),
        user: act["user"].as_str().map(str::to_owned),
        detach: act["detach"] == true,
        cidfile: None,
        pull: None,
        platform: None,
    }
}

/// A plan for the image, with what is changed about it.
fn plan(name: &str, changes: &[(&str, Value)]) -> Value {
    let mut plan = json!({
        "id": "0123456789abcdef", "name": name, "created": 0, "image": IMAGE, "layers": [],
        "process": {
            "args": [], "environment": [], "given": [], "cwd": "", "user": "", "groups": [], "tty": false, "stdin": false,
        },
        "mounts": [], "gpus": null, "verify_gpu": false,
        "limits": {
            "memory": null, "cpu_millis": null, "cpuset": null, "pids": null, "shm": null,
            // A service of podman's has no limit of its own that would do here.
            "rlimits": [{"name": "nofile", "soft": 1024, "hard": 1024}, {"name": "nproc", "soft": 1024, "hard": 1024}],
        },
        "network": {"mode": "host", "publish": [], "hostname": null, "hosts": [], "dns": []},
        "security": {
            "capabilities": ["CHOWN", "KILL"], "no_new_privileges": true, "seccomp": "default", "read_only": false,
            "devices": [],
        },
        "restart": "no", "stop_signal": "", "stop_seconds": 1, "remove": false, "labels": {}, "group": null,
    });
    for (at, value) in changes {
        *plan.pointer_mut(at).unwrap_or_else(|| panic!("no {at} in a plan")) = value.clone();
    }
    plan
}

fn shell(script: &str) -> Value {
    json!(["/bin/sh", "-c", script])
}

/// What came of an act.
#[derive(Debug)]
struct Done {
    result: Value,
    out: String,
    err: String,
}

impl Done {
    fn ok(&self) -> &Value {
        assert!(self.result.get("ok").is_some(), "{self:?}");
        &self.result["ok"]
    }

    fn error(&self) -> String {
        self.result["error"].as_str().unwrap_or_else(|| panic!("no error in {self:?}")).to_owned()
    }
}

/// A podman with storage and settings of its own.
struct Engines {
    folder: TempDir,
    service: Option<Child>,
}

impl Engines {
    /// None, with the reason said, where this machine lacks something.
    fn set_up() -> Option<Self> {
        let busybox =
            ["/bin/busybox", "/usr/bin/busybox"].into_iter().map(Path::new).find(|path| path.is_file());
        let missing = |program: &str| {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let extra = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
            !std::env::split_paths(&folders).chain(extra).any(|folder| folder.join(program).is_file())
        };
        let skipped = |reason: &str| cudock_testkit::missing("podman", format_args!("{reason}"));
        if !rustix::process::geteuid().is_root() {
            skipped("podman with storage of its own needs root here");
            return None;
        }
        for program in ["podman", "runc", "tar"] {
            if missing(program) {
                skipped(&format!("{program} is not installed (apt-get install podman runc tar)"));
                return None;
            }
        }
        let Some(busybox) = busybox else {
            skipped("busybox is not installed (apt-get install busybox-static)");
            return None;
        };
        let folder = TempDir::new().unwrap();
        let engines = Self { folder, service: None };
        engines.configure();
        let ready = engines.import(IMAGE, busybox, &["ENV FROM_IMAGE=1", "ENV LD_LIBRARY_PATH=/opt/own"]);
        if let Err(why) = ready {
            skipped(&format!("podman does not import here: {why}"));
            return None;
        }
        let tried = engines.podman().args(["run", "--rm", IMAGE, "/bin/true"]).output().unwrap();
        if !tried.status.success() {
            skipped(&format!(
                "podman runs no containers here: {}",
                String::from_utf8_lossy(&tried.stderr).trim()
            ));
            return None;
        }
        Some(engines)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Settings with which podman runs in many a place where its own do not: no network to be made, and limits that
    /// are not raised.
    fn configure(&self) {
        let conf = format!(
            "[containers]\nnetns = \"host\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
             log_driver = \"k8s-file\"\n\
             [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\ntmp_dir = \"{}\"\n",
            self.at("tmp").display()
        );
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            self.at("graph").display(),
            self.at("run").display()
        );
        fs::write(self.at("containers.conf"), conf).unwrap();
        fs::write(self.at("storage.conf"), storage).unwrap();
        fs::write(self.at("config.json"), "{}").unwrap();
    }

    fn settle(&self, command: &mut Command) {
        command
            .env("CONTAINERS_CONF", self.at("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", self.at("storage.conf"))
            .env("DOCKER_HOST", format!("unix://{}", self.at("service.sock").display()))
            .env("DOCKER_CONFIG", self.folder.path());
    }

    fn podman(&self) -> Command {
        let mut command = Command::new("podman");
        self.settle(&mut command);
        command
    }

    /// An image of a few programs that need no library.
    fn import(&self, name: &str, busybox: &Path, changes: &[&str]) -> Result<(), String> {
        let root = self.at("root");
        if !root.exists() {
            for folder in ["bin", "etc", "tmp"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            fs::copy(busybox, root.join("bin/busybox")).unwrap();
            for program in ["cat", "grep", "ls", "id", "mkdir", "sh", "sleep", "touch", "true"] {
                symlink("busybox", root.join("bin").join(program)).unwrap();
            }
            fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\n")
                .unwrap();
            fs::write(root.join("etc/group"), "root:x:0:\nann:x:1000:\n").unwrap();
        }
        let archive = self.at("root.tar");
        let packed =
            Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status().unwrap();
        assert!(packed.success());
        let mut command = self.podman();
        command.arg("import");
        for change in changes {
            command.args(["--change", change]);
        }
        let done = command.arg(&archive).arg(name).output().unwrap();
        if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    }

    /// Starts podman's service for docker's command; false, with the reason said, where there is no such command.
    fn serve(&mut self) -> bool {
        if Command::new("docker").arg("--version").output().is_err() {
            cudock_testkit::missing(
                "docker",
                "docker's command is not installed (apt-get install docker-cli)",
            );
            return false;
        }
        let socket = self.at("service.sock");
        let mut command = self.podman();
        command.args(["system", "service", "--time=0"]).arg(format!("unix://{}", socket.display()));
        self.service = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        until("podman's service listens", || socket.exists());
        true
    }

    fn begin(&self, act: &Value, result: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "act", "--nocapture", "--quiet", "--test-threads=1"]);
        self.settle(&mut command);
        command.env(ACT, act.to_string()).env(RESULT, result).stdin(Stdio::null());
        command
    }

    /// Has an engine do something.
    fn act(&self, act: &Value) -> Done {
        let result = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        let output = self.begin(act, result.path()).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let out = out.split_once("running 1 test\n").map(|(_, out)| out.to_owned()).unwrap_or(out);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let written = fs::read_to_string(result.path()).unwrap();
        let result = serde_json::from_str(&written).unwrap_or_else(|_| panic!("nothing came: {out}\n{err}"));
        Done { result, out, err }
    }

    /// Runs a script in a container.
    fn run(&self, engine: &str, script: &str, changes: &[(&str, Value)]) -> Done {
        self.act(&json!({
            "verb": "run", "engine": engine, "plan": plan("", changes), "command": shell(script),
        }))
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        let _ = self.podman().args(["rm", "--all", "--force", "--time=0"]).output();
        if let Some(service) = &mut self.service {
            let _ = service.kill();
            let _ = service.wait();
        }
    }
}

fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(600), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn podman_runs_containers_as_they_were_asked_for() {
    let Some(engines) = Engines::set_up() else { return };
    a_container_is_as_it_was_asked_for(&engines, "podman");
    a_signal_reaches_the_program_and_no_variable_the_list_of_processes(&engines, "podman");
    a_life_from_start_to_removal(&engines, "podman");

    // A folder in place of an image; a path that must be quoted; a limit beyond what this process may hand down.
    // Through podman's service docker's command learns nothing of how a container ended that removes itself, so that
    // is tried here only, too.
    fs::create_dir(engines.at("a,\"b\"")).unwrap();
    fs::write(engines.at("a,\"b\"").join("file"), "found").unwrap();
    let changes = [
        ("/name", json!("brief")),
        ("/remove", json!(true)),
        ("/image", json!(format!("rootfs:{}", engines.at("root").display()))),
        (
            "/mounts",
            json!([{"kind": "bind", "source": engines.at("a,\"b\""), "target": "/c,d", "read_only": true}]),
        ),
    ];
    // More than the kernel gives anybody: refused, and never cut to what there is.
    let too_high = ("/limits/rlimits/0", json!({"name": "nofile", "soft": 1_u64 << 40, "hard": 1_u64 << 40}));
    let refused = engines.run("podman", "true", &[changes.as_slice(), &[too_high]].concat());
    assert!(refused.error().contains("cannot raise the hard limit of nofile"), "{refused:?}");
    let done = engines.run(
        "podman",
        "cat /c,d/file; touch /c,d/file && echo written; touch /new && exit 7",
        &changes,
    );
    assert_eq!((done.ok(), done.out.as_str()), (&json!(7), "found"), "{done:?}");
    assert!(!engines.at("root").join("new").exists(), "the folder was written to");
    let gone = engines.act(&json!({"verb": "inspect", "engine": "podman", "name": "brief"}));
    assert_eq!(gone.error(), "no container `brief`");
}

#[test]
fn docker_runs_containers_as_they_were_asked_for() {
    let Some(mut engines) = Engines::set_up() else { return };
    if !engines.serve() {
        return;
    }
    a_container_is_as_it_was_asked_for(&engines, "docker");
    a_signal_reaches_the_program_and_no_variable_the_list_of_processes(&engines, "docker");
    a_life_from_start_to_removal(&engines, "docker");
}

fn a_container_is_as_it_was_asked_for(engines: &Engines, engine: &str) {
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}"#;
    // Docker's command sends the profile itself, as its daemon expects; podman's service expects a path.
    let filtered = engine == "podman";
    let filter = if filtered { json!({"profile": profile}) } else { json!("default") };
    let changes = [
        ("/security/read_only", json!(true)),
        ("/security/seccomp", filter),
        ("/mounts", json!([{"kind": "tmpfs", "target": "/memory", "size": 1 << 20, "mode": 0o777}])),
        ("/network/hostname", json!("box")),
        ("/network/hosts", json!([["db", "10.0.0.5"]])),
    ];
    let script =
        "echo \"$PLAIN|$ODD|$PATH|${EMPTY-unset}|$FROM_IMAGE\"; id -u; pwd; cat /proc/sys/kernel/hostname
        grep -o 'size=1024k' /proc/mounts; grep db /etc/hosts | grep -o 10.0.0.5
        grep -e CapBnd -e NoNewPrivs /proc/self/status
        touch /memory/file && echo memory; touch /file && echo root; mkdir /memory/folder && echo folder
        echo complaint >&2; exit 7";
    let done = engines.act(&json!({
        "verb": "run", "engine": engine, "plan": plan("", &changes), "entrypoint": ["/bin/sh", "-c"], "command": [script],
        "user": "ann", "cwd": "/tmp",
        "env": [["PLAIN", "a=b c"], ["ODD", "two\n'lines' # end "], ["PATH", "/bin:/elsewhere"], ["EMPTY", ""]],
    }));
    let expected = format!(
        "a=b c|two\n'lines' # end |/bin:/elsewhere||1\n1000\n/tmp\nbox\nsize=1024k\n10.0.0.5\n\
         CapBnd:\t0000000000000021\nNoNewPrivs:\t1\nmemory\n{}",
        if filtered { "" } else { "folder\n" }
    );
    assert_eq!((done.ok(), done.out.as_str()), (&json!(7), expected.as_str()), "{done:?}");
    assert!(done.err.contains("complaint\n"), "{done:?}");

    let done = engines.run(engine, "true", &[("/image", json!("localhost/none:1"))]);
    assert_eq!(done.error(), "cannot run the container", "{done:?}");
}

fn a_signal_reaches_the_program_and_no_variable_the_list_of_processes(engines: &Engines, engine: &str) {
    let act = json!({
        "verb": "run", "engine": engine, "plan": plan("", &[]),
        "env": [["PLAIN", "hunter2"], ["ODD", "'hunter2'"], ["LD_LIBRARY_PATH", "/hunter2"]],
        "command": shell("trap 'echo asked; exit 9' TERM; echo ready; while true; do sleep 0.1; done"),
    });
    let mut begun = Begun::new(engines, &act);
    begun.wait_for("ready");
    let told: Vec<String> = command_lines().into_iter().filter(|line| line.contains("hunter2")).collect();
    assert!(told.is_empty(), "{told:?}");
    // podman shows the first output before it passes signals on: one that comes in between ends podman itself.
    std::thread::sleep(Duration::from_secs(1));
    let pid = Pid::from_raw(i32::try_from(begun.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (result, out) = begun.end();
    assert_eq!((&result["ok"], out.as_str()), (&json!(9), "asked\n"), "{result}");
}

fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .collect()
}

/// An act that goes on.
struct Begun {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    result: tempfile::NamedTempFile,
}

impl Begun {
    fn new(engines: &Engines, act: &Value) -> Self {
        let result = tempfile::NamedTempFile::new_in(engines.folder.path()).unwrap();
        // The harness has threads beside the one that acts, and these must leave the signal to it.
        let mut signals = SigSet::empty();
        signals.add(nix::sys::signal::Signal::SIGTERM);
        signals.thread_block().unwrap();
        let mut child = engines.begin(act, result.path()).stdout(Stdio::piped()).spawn().unwrap();
        signals.thread_unblock().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, result }
    }

    fn wait_for(&mut self, expected: &str) {
        let mut line = String::new();
        while line.trim() != expected {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before it said {expected}");
        }
    }

    /// What came of it, and what it wrote from here on.
    fn end(&mut self) -> (Value, String) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        (serde_json::from_str(&fs::read_to_string(self.result.path()).unwrap()).unwrap(), rest)
    }
}

fn a_life_from_start_to_removal(engines: &Engines, engine: &str) {
    let does = |verb: &str, more: &[(&str, Value)]| {
        let mut act = json!({"verb": verb, "engine": engine, "name": "life"});
        for (name, value) in more {
            act[*name] = value.clone();
        }
        engines.act(&act)
    };
    let _ = engines.podman().args(["rm", "--all", "--force", "--time=0"]).output();
    let unknown = |done: &Done| assert_eq!(done.error(), "no container `life`", "{done:?}");
    unknown(&does("stop", &[]));
    let inside = |script: &str| {
        (
            "exec",
            json!({
                "args": ["/bin/sh", "-c", script], "environment": [["WORD", "'x'"]], "user": null, "cwd": "/tmp", "tty": false,
                "stdin": false,
            }),
        )
    };
    // Someone else's container is not ours to see or touch.
    let foreign = engines
        .podman()
        .args(["run", "--detach", "--name=foreign", IMAGE, "/bin/sleep", "1000"])
        .output()
        .unwrap();
    assert!(foreign.status.success(), "{foreign:?}");
    let touched = engines.act(&json!({"verb": "remove", "engine": engine, "name": "foreign", "force": true}));
    assert_eq!(touched.error(), "no container `foreign`");
    assert_eq!(does("list", &[("all", json!(true))]).ok(), &json!([]));

    let script = "echo one; echo two >&2; trap 'exit 4' TERM; while true; do sleep 0.1; done";
    let changes = [("/labels", json!({"team": "a"})), ("/group", json!("web"))];
    let begun =
        does("run", &[("plan", plan("life", &changes)), ("command", shell(script)), ("detach", json!(true))]);
    assert_eq!(begun.ok(), 0, "{begun:?}");
    let id = begun.out.trim().to_owned();

    let listed = does("list", &[]).ok().clone();
    let one = &listed[0];
    assert_eq!((one["id"].as_str(), one["name"].as_str()), (Some(id.as_str()), Some("life")), "{listed}");
    assert_eq!((one["state"].as_str(), one["image"].as_str()), (Some("running"), Some(IMAGE)), "{listed}");
    assert_eq!((one["group"].as_str(), &one["exit_code"]), (Some("web"), &Value::Null), "{listed}");
    assert_eq!(one["command"], format!("/bin/sh -c {script}"), "{listed}");
    assert!(
        one["started"].as_u64() >= one["created"].as_u64()
            && one["created"].as_u64() > Some(1_700_000_000_000)
    );
    assert_eq!(does("inspect", &[]).ok()["Config"]["Labels"]["team"], "a");

    until("both lines are in the log", || {
        let log = does("logs", &[]);
        log.ok();
        log.out == "one\n" && log.err.ends_with("two\n")
    });
    let last = does("logs", &[("tail", json!(1)), ("timestamps", json!(true))]);
    let stamped = format!("{}{}", last.out, last.err);
    assert!(stamped.starts_with("20") && stamped.trim_end().ends_with("Z two"), "{last:?}");

    let done = does("exec", &[inside("echo \"$WORD $PWD $FROM_IMAGE\"; exit 6")]);
    assert_eq!((done.ok(), done.out.as_str()), (&json!(6), "'x' /tmp 1\n"), "{done:?}");
    assert_eq!(does("remove", &[]).error(), "container life is running, not stopped");

    does("stop", &[]).ok();
    assert_eq!(does("wait", &[]).ok(), 4);
    assert_eq!(does("list", &[]).ok(), &json!([]));
    let ended = does("list", &[("all", json!(true))]).ok().clone();
    assert_eq!(
        (ended[0]["state"].as_str(), ended[0]["exit_code"].as_i64()),
        (Some("exited"), Some(4)),
        "{ended}"
    );
    assert_eq!(does("exec", &[inside("true")]).error(), "container life is exited, not running");

    does("remove", &[]).ok();
    unknown(&does("inspect", &[]));
    let _ = engines.podman().args(["rm", "--force", "--time=0", "foreign"]).output();
}

#[test]
fn the_engine_that_has_an_image_is_found() {
    let Some(engines) = Engines::set_up() else { return };
    let held = |name: &str| engines.act(&json!({"verb": "holding", "name": name})).ok().clone();
    assert_eq!(held(IMAGE), "podman");
    for name in ["localhost/none:1", "", "./folder", "/a/folder", "--help", "rootfs:/srv"] {
        assert_eq!(held(name), Value::Null, "{name}");
    }
}

#[test]
fn an_engine_that_is_not_there_is_said_with_the_way_out() {
    let empty = TempDir::new().unwrap();
    let result = empty.path().join("result");
    for (engine, expected) in [
        ("docker", "docker not found in PATH"),
        ("podman", "podman not found in PATH"),
        ("lxc", "unknown engine `lxc`: expected docker or podman"),
    ] {
        let act = json!({"verb": "list", "engine": engine});
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "act", "--nocapture", "--quiet", "--test-threads=1"]);
        command.env("PATH", empty.path()).env(ACT, act.to_string()).env(RESULT, &result);
        assert!(command.output().unwrap().status.success());
        let outcome: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
        assert_eq!(outcome["error"], expected);
        assert_eq!(outcome["hint"].is_null(), engine == "lxc", "{outcome}");
    }
}

#[test]
fn an_engine_that_does_not_answer_is_said_in_its_own_words() {
    let fake = TempDir::new().unwrap();
    let program = fake.path().join("docker");
    fs::write(&program, "#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let result = fake.path().join("result");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "act", "--nocapture", "--quiet", "--test-threads=1"]);
    command.env("PATH", fake.path()).env(ACT, json!({"verb": "list", "engine": "docker"}).to_string());
    assert!(command.env(RESULT, &result).output().unwrap().status.success());
    let outcome: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    assert_eq!(outcome["error"], "docker is not available: Cannot connect to the daemon");
    assert!(outcome["hint"].as_str().unwrap().contains("systemctl start docker"), "{outcome}");
}

/// A driver of nothing but names, with nodes that are `/dev/null` by number. None where nodes cannot be made.
fn fake_driver(root: &Path) -> Option<()> {
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let libraries = "usr/lib/x86_64-linux-gnu";
    for name in ["libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"] {
        put(&format!("{libraries}/{name}.so.580.159.04"), name);
        symlink(format!("{name}.so.580.159.04"), root.join(libraries).join(format!("{name}.so.1"))).unwrap();
    }
    put("usr/bin/nvidia-smi", "#!/bin/sh\necho smi\n");
    fs::set_permissions(root.join("usr/bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
    put(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release\n",
    );
    for minor in 0..2 {
        let information =
            format!("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-{minor}\nDevice Minor: \t {minor}\n");
        put(&format!("proc/driver/nvidia/gpus/0000:0{minor}:00.0/information"), &information);
    }
    fs::create_dir_all(root.join("dev")).unwrap();
    for name in ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"] {
        let mode = Mode::from_raw_mode(0o666);
        let outcome =
            mknodat(CWD, root.join("dev").join(name), FileType::CharacterDevice, mode, makedev(1, 3));
        if let Err(error) = outcome {
            cudock_testkit::missing(
                "device-nodes",
                format_args!("device nodes cannot be made here: {error}"),
            );
            return None;
        }
    }
    Some(())
}

#[test]
fn a_container_of_podmans_has_the_gpus_it_was_given() {
    let Some(engines) = Engines::set_up() else { return };
    let driver = engines.at("driver");
    if fake_driver(&driver).is_none() {
        return;
    }
    let gpus = |devices: &str| {
        (
            "/gpus",
            json!({"devices": devices, "capabilities": null, "driver_root": driver, "device_root": null}),
        )
    };
    let see = "cd /usr/local/nvidia/lib64; cat libcuda.so.1 libcuda.so libnvidia-ml.so.1; ls /dev | grep nvidia; \
               cat /dev/nvidia1 && echo open; /usr/bin/nvidia-smi; echo $LD_LIBRARY_PATH $NVIDIA_VISIBLE_DEVICES";
    let seen = "libcudalibcudalibnvidia-mlnvidia-uvm\nnvidia1\nnvidiactl\nopen\nsmi\n\
                /opt/own:/usr/local/nvidia/lib64 void\n";
    // Docker's command asks what system its daemon runs on before it takes a device, and podman's service does not say.
    let done = engines.run("podman", see, &[gpus("device=1")]);
    assert_eq!((done.ok(), done.out.as_str()), (&json!(0), seen), "{done:?}");
    let done = engines.run("podman", "true", &[gpus("device=7")]);
    assert_eq!(done.error(), "no GPU `7` here");

    let _ = engines.podman().args(["rm", "--all", "--force", "--time=0"]).output();
    let listed = json!({"verb": "list", "engine": "podman", "all": true});
    let kept = engines.act(&json!({
        "verb": "run", "engine": "podman", "plan": plan("kept", &[gpus("0,1")]), "command": ["/bin/true"],
    }));
    assert_eq!(kept.ok(), 0, "{kept:?}");
    assert_eq!(engines.act(&listed).ok()[0]["gpus"], "0,1");

    let busybox = engines.at("root").join("bin/busybox");
    engines.import("localhost/picky:1", &busybox, &["ENV NVIDIA_REQUIRE_DRIVER=driver>=999"]).unwrap();
    let done = engines.run("podman", "true", &[gpus("all"), ("/image", json!("localhost/picky:1"))]);
    assert!(done.error().contains("driver>=999"), "{done:?}");
}

#[test]
fn podman_kills_starts_restarts_and_copies_for_us() {
    let Some(engines) = Engines::set_up() else { return };
    let script = "trap 'exit 43' USR1; echo begun >> /tmp/begun; while true; do sleep 0.05; done";
    let changes = [("/name", json!("lively"))];
    let run = json!({
        "verb": "run", "engine": "podman", "plan": plan("lively", &changes), "command": shell(script), "detach": true,
    });
    engines.act(&run).ok();
    let act = |more: Value| {
        let mut act = json!({"engine": "podman", "name": "lively"});
        act.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        engines.act(&act)
    };
    let copied = engines.at("copied");
    let out = json!({"verb": "copy", "inside": "/tmp/begun", "outside": copied});
    until("the container has begun", || act(out.clone()).result.get("ok").is_some());
    assert_eq!(fs::read_to_string(&copied).unwrap(), "begun\n");
    let own = engines.at("own");
    fs::write(&own, "from outside\n").unwrap();
    act(json!({"verb": "copy", "in": true, "inside": "/tmp/own", "outside": own})).ok();
    let exec = json!({"args": ["/bin/cat", "/tmp/own"], "environment": [], "tty": false, "stdin": false});
    let done = act(json!({"verb": "exec", "exec": exec}));
    assert!(done.out.contains("from outside"), "{done:?}");
    act(json!({"verb": "kill", "signal": "usr1"})).ok();
    assert_eq!(act(json!({"verb": "wait"})).ok(), 43);
    assert_eq!(act(json!({"verb": "start"})).ok(), 0);
    act(json!({"verb": "restart"})).ok();
    until("it began three times", || {
        act(out.clone()).ok();
        fs::read_to_string(&copied).unwrap().lines().count() == 3
    });
}
