//! A project with a sweep, run by a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cudock_sweep::{Journal, Record, Sweep, TrialId};
use cudock_sweep_run::SweepDir;
use cudock_testkit::process::example;
use tempfile::TempDir;

pub(super) struct TestSweep {
    directory: TempDir,
}

impl TestSweep {
    /// A sweep whose trials run this shell script. `keys` are further lines of `[sweep]`.
    pub(super) fn new(script: &str, keys: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("trial.sh"), script).unwrap();
        let manifest = format!(
            "[sweep]\ncommand = [\"sh\", \"trial.sh\"]\ngpus_per_trial = 0\n\
             objectives = [{{ metric = \"score\", goal = \"maximize\" }}]\n{keys}\n"
        );
        fs::write(directory.path().join("cudock.toml"), manifest).unwrap();
        Self { directory }
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn dir(&self) -> SweepDir {
        SweepDir::of(self.path(), "test")
    }

    /// Starts it in the background.
    pub(super) fn start(&self, flags: &[&str]) -> Child {
        self.command(flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs it to its end.
    pub(super) fn run(&self, flags: &[&str]) -> Output {
        self.command(flags).output().unwrap()
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(example("local_sweep"));
        command
            .arg("run")
            .arg(self.path())
            .args(flags)
            .env_remove("CUDA_VISIBLE_DEVICES")
            .stdin(Stdio::null());
        command
    }

    pub(super) fn records(&self) -> Vec<Record> {
        Journal::read(&self.dir().journal()).unwrap()
    }

    pub(super) fn sweep(&self) -> Sweep {
        Sweep::replay(&self.records()).unwrap()
    }

    pub(super) fn endings(&self) -> Vec<String> {
        let sweep = self.sweep();
        let objectives = &sweep.plan().objectives;
        sweep.trials().iter().map(|trial| trial.ending(objectives).unwrap_or_default()).collect()
    }

    pub(super) fn log(&self, trial: u32) -> String {
        fs::read_to_string(self.dir().trial(TrialId(trial)).log(1)).unwrap()
    }

    pub(super) fn result(&self, trial: u32) -> serde_json::Value {
        let lines = fs::read_to_string(self.dir().trial(TrialId(trial)).events(1)).unwrap();
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        last["ended"].clone()
    }

    /// Waits until a file of a trial exists.
    pub(super) fn wait_for(&self, trial: u32, file: &str) -> PathBuf {
        let path = self.dir().trial(TrialId(trial)).path().join(file);
        wait_until(&format!("{} exists", path.display()), || path.exists());
        path
    }

    /// Processes that belong to this sweep: trials by their environment, the sweep and its workers by their arguments.
    pub(super) fn processes(&self) -> Vec<i32> {
        let marker = self.path().to_str().unwrap().as_bytes().to_vec();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mentions = |file: String| {
            fs::read(file).is_ok_and(|bytes| bytes.windows(marker.len()).any(|window| window == marker))
        };
        pids.filter(|pid| {
            mentions(format!("/proc/{pid}/environ")) || mentions(format!("/proc/{pid}/cmdline"))
        })
        .collect()
    }
}

pub(super) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
