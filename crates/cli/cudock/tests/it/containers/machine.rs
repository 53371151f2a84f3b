//! State of the containers of one test, and the check that nothing of them is left after it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) use cudock_testkit::client::eventually as until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::busybox;
use super::leftovers::{groups, hierarchies, leftovers};
use crate::support::{Turn, code, cudock, json, schema, shown};

/// State and control groups of its own.
pub(crate) struct Machine {
    directory: tempfile::TempDir,
    cgroup: String,
    _turn: Turn,
}

/// A machine; `None`, and the reason printed, where containers cannot run.
pub(crate) fn machine() -> Option<Machine> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    match suited() {
        Ok(busybox) => {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let cgroup = format!("/cudock-test-{}-{number}", std::process::id());
            let machine = Machine { directory: tempfile::tempdir().unwrap(), cgroup, _turn: Turn::shared() };
            busybox::make(&busybox, &machine.root());
            Some(machine)
        }
        Err(why) => {
            cudock_testkit::missing("containers", why);
            None
        }
    }
}

/// The program that containers are made of; the reason, where containers cannot be created here.
fn suited() -> Result<PathBuf, String> {
    static OVERLAY: OnceLock<bool> = OnceLock::new();
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return Err("root is needed".to_owned());
    }
    if hierarchies().is_empty() {
        return Err("there are no control groups here".to_owned());
    }
    if !*OVERLAY.get_or_init(overlay) {
        return Err("overlayfs cannot be mounted in the directory for temporary files".to_owned());
    }
    busybox::find()
}

/// Whether an overlay can be mounted where the tests keep their containers, tried in a mount namespace that goes again.
fn overlay() -> bool {
    let directory = tempfile::tempdir().unwrap();
    for name in ["lower", "upper", "work", "root"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let script = "mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay root";
    let tried =
        Command::new("unshare").args(["--mount", "sh", "-c", script]).current_dir(directory.path()).output();
    tried.is_ok_and(|output| output.status.success())
}

impl Machine {
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The state directory of cudock.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The directory that all containers of the tests are made of, unless they have an image.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// The control group its containers are below.
    pub(crate) fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// Writes a file, and the directories it is in.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cudock(arguments);
        command
            .env("CUDOCK_DATA", self.data())
            .env("CUDOCK_CGROUP", &self.cgroup)
            .current_dir(self.directory.path());
        command
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> Output {
        schema::output(&mut self.command(arguments))
    }

    /// The standard output of a command that must succeed.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The output of a command that must fail with this code.
    pub(crate) fn bad(&self, exit_code: i32, arguments: &[&str]) -> String {
        let output = self.call(arguments);
        assert_eq!(code(&output), exit_code, "{arguments:?}: {}", shown(&output));
        shown(&output)
    }

    /// Runs a script in a container that is removed at its end.
    pub(crate) fn sh(&self, options: &[&str], script: &str) -> Output {
        let options = [&["--rm"], options].concat();
        self.call(&run_arguments(&options, &["sh", "-c", script]))
    }

    /// The standard output of a script in a container, which must succeed.
    pub(crate) fn says(&self, options: &[&str], script: &str) -> String {
        let output = self.sh(options, script);
        assert_eq!(code(&output), 0, "{options:?} {script}: {}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a container in the background.
    pub(crate) fn start(&self, name: &str, options: &[&str], script: &str) -> String {
        let options = [&["-d", "--name", name], options].concat();
        self.good(&run_arguments(&options, &["sh", "-c", script])).trim().to_owned()
    }

    /// Starts a container in the foreground, and leaves it running.
    pub(crate) fn spawn(&self, options: &[&str], script: &str) -> Child {
        let mut command = self.command(&run_arguments(options, &["sh", "-c", script]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The report about a container.
    pub(crate) fn inspect(&self, name: &str) -> Value {
        json(&self.call(&["inspect-container", name]))
    }

    /// The status of a container.
    pub(crate) fn status(&self, name: &str) -> Value {
        self.inspect(name)["status"].clone()
    }

    /// All containers, from the JSON report.
    pub(crate) fn list(&self) -> Vec<Value> {
        json(&self.call(&["ps", "--all", "--format", "json"]))["containers"].as_array().unwrap().clone()
    }

    pub(crate) fn logs(&self, name: &str) -> String {
        let output = self.call(&["logs", name]);
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Waits until the log of a container contains a text.
    pub(crate) fn until_logged(&self, name: &str, what: &str) {
        until(&format!("{name} says {what}"), || self.logs(name).contains(what));
    }

    /// The content of a file of a container's control group, in whichever hierarchy it is.
    pub(crate) fn in_cgroup(&self, id: &str, file: &str) -> Option<String> {
        let mut own =
            groups(&self.cgroup).into_iter().filter(|group| group.ends_with(format!("cudock-{id}")));
        own.find_map(|group| fs::read_to_string(group.join(file)).ok()).map(|text| text.trim().to_owned())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let mut left = Vec::new();
        for id in String::from_utf8_lossy(&self.call(&["ps", "--all", "--quiet"]).stdout).lines() {
            let output = self.call(&["rm", "--force", id]);
            // One that removes itself may have done so meanwhile.
            if !output.status.success() && !shown(&output).contains("no container") {
                left.push(format!("{id} cannot be removed: {}", shown(&output)));
            }
        }
        let began = Instant::now();
        while !leftovers(&self.data(), &self.cgroup).is_empty() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
        left.extend(leftovers(&self.data(), &self.cgroup));
        for hierarchy in hierarchies() {
            let _ = fs::remove_dir(hierarchy.join(self.cgroup.trim_start_matches('/')));
        }
        assert!(std::thread::panicking() || left.is_empty(), "this is left: {left:#?}");
    }
}

/// The arguments of `cudock run` for a container without a network, made of the machine's directory.
pub(crate) fn run_arguments<'w>(options: &[&'w str], command: &[&'w str]) -> Vec<&'w str> {
    let own = ["run", "--network", "none", "--rootfs", "root"];
    [own.as_slice(), options, &["--"], command].concat()
}

/// A command that another program starts, with that program's own arguments before it.
pub(crate) fn started_by(outer: &[&str], inner: &Command) -> Command {
    let mut command = Command::new(outer[0]);
    command.args(&outer[1..]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    inner.get_current_dir().map(|directory| command.current_dir(directory));
    command.stdin(Stdio::null());
    command
}

/// Sends a signal to a process that a test started, or that belongs to one of its containers.
pub(crate) fn send(pid: u64, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Whether a program is installed; prints a message where it is not.
pub(crate) fn installed(name: &str) -> bool {
    cudock_testkit::require_program(name).is_some()
}
