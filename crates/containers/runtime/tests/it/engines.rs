//! Engines to test with: a podman with storage of its own, and docker's command on podman's service.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cudock_testkit::client::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const IMAGE: &str = "localhost/cudock-test:1";

/// A config for the image, with what is changed about it.
pub(crate) fn config(name: &str, changes: &[(&str, Value)]) -> Value {
    let mut config = json!({
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
        *config.pointer_mut(at).unwrap_or_else(|| panic!("no {at} in a config")) = value.clone();
    }
    config
}

pub(crate) fn shell(script: &str) -> Value {
    json!(["/bin/sh", "-c", script])
}

/// What came of an act.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) result: Value,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    pub(crate) fn ok(&self) -> &Value {
        assert!(self.result.get("ok").is_some(), "{self:?}");
        &self.result["ok"]
    }

    pub(crate) fn error(&self) -> String {
        self.result["error"].as_str().unwrap_or_else(|| panic!("no error in {self:?}")).to_owned()
    }
}

/// The command that has an engine do something.
pub(crate) fn drive(act: &Value, result: &Path) -> Command {
    let mut command = Command::new(cudock_testkit::process::example("drive_engine"));
    command.env("ACT", act.to_string()).arg(result).stdin(Stdio::null());
    command
}

/// A podman with storage and settings of its own.
pub(crate) struct Engines {
    directory: TempDir,
    service: Option<Child>,
}

impl Engines {
    /// None, with the reason printed, where this machine lacks something.
    pub(crate) fn set_up() -> Option<Self> {
        let busybox =
            ["/bin/busybox", "/usr/bin/busybox"].into_iter().map(Path::new).find(|path| path.is_file());
        let missing = |program: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let extra = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
            !std::env::split_paths(&path).chain(extra).any(|directory| directory.join(program).is_file())
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
        let directory = TempDir::new().unwrap();
        let engines = Self { directory, service: None };
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

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Settings with which podman runs in many a place where its own do not: no network to be made, and limits that
    /// are not raised.
    pub(crate) fn configure(&self) {
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

    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .env("CONTAINERS_CONF", self.at("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", self.at("storage.conf"))
            .env("DOCKER_HOST", format!("unix://{}", self.at("service.sock").display()))
            .env("DOCKER_CONFIG", self.directory.path());
    }

    pub(crate) fn podman(&self) -> Command {
        let mut command = Command::new("podman");
        self.settle(&mut command);
        command
    }

    /// An image of a few programs that need no library.
    pub(crate) fn import(&self, name: &str, busybox: &Path, changes: &[&str]) -> Result<(), String> {
        let root = self.at("root");
        if !root.exists() {
            for directory in ["bin", "etc", "tmp"] {
                fs::create_dir_all(root.join(directory)).unwrap();
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

    /// Starts podman's service for docker's command. Without that command, prints the reason and returns false.
    pub(crate) fn serve(&mut self) -> bool {
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
        eventually("podman's service listens", || socket.exists());
        true
    }

    pub(crate) fn begin(&self, act: &Value, result: &Path) -> Command {
        let mut command = drive(act, result);
        self.settle(&mut command);
        command
    }

    /// Has an engine do something.
    pub(crate) fn act(&self, act: &Value) -> Done {
        let result = tempfile::NamedTempFile::new_in(self.directory.path()).unwrap();
        let output = self.begin(act, result.path()).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let written = fs::read_to_string(result.path()).unwrap();
        let result = serde_json::from_str(&written).unwrap_or_else(|_| panic!("nothing came: {out}\n{err}"));
        Done { result, out, err }
    }

    /// Runs a script in a container.
    pub(crate) fn run(&self, engine: &str, script: &str, changes: &[(&str, Value)]) -> Done {
        self.act(&json!({
            "verb": "run", "engine": engine, "config": config("", changes), "command": shell(script),
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

/// An act that goes on.
pub(crate) struct Begun {
    pub(crate) child: Child,
    lines: BufReader<std::process::ChildStdout>,
    result: tempfile::NamedTempFile,
}

impl Begun {
    pub(crate) fn new(engines: &Engines, act: &Value) -> Self {
        let result = tempfile::NamedTempFile::new_in(engines.directory.path()).unwrap();
        let mut child = engines.begin(act, result.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, result }
    }

    pub(crate) fn wait_for(&mut self, expected: &str) {
        let mut line = String::new();
        while line.trim() != expected {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before it printed {expected}");
        }
    }

    /// What came of it, and what it wrote from here on.
    pub(crate) fn end(&mut self) -> (Value, String) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        (serde_json::from_str(&fs::read_to_string(self.result.path()).unwrap()).unwrap(), rest)
    }
}
