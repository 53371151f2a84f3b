//! Further processes for tests: the same test again in a child process, and helper programs.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::eventually;
use crate::random::{Random, seed};

/// Set in a process that [`reenter`] made; its value is the test's name.
const REENTERED: &str = "CUDOCK_TEST_REENTERED";

/// The name by which the test harness knows the test function in which this is expanded.
///
/// It is derived from the function itself. A name written by hand can go stale, and a filter that matches no test
/// succeeds.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::process::test_of(::std::any::type_name_of_val(&here))
    }};
}

/// The test that the type name of a function in it belongs to: without the crate, and without that function.
#[doc(hidden)]
pub fn test_of(type_name: &'static str) -> &'static str {
    let within_crate = type_name.split_once("::").map_or(type_name, |(_, rest)| rest);
    within_crate.rsplit_once("::").map_or(within_crate, |(test, _)| test)
}

/// A command that runs one test of this program, [`test_name!`], in a child process.
pub fn reenter(test: &str) -> Command {
    reenter_as(Command::new(env::current_exe().unwrap()), test)
}

/// The same for a command that starts this program, or a copy of it, in its own way.
pub fn reenter_as(mut command: Command, test: &str) -> Command {
    command.args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(REENTERED, test);
    command
}

/// Whether this process was started by [`reenter`] for this test.
pub fn is_reentered(test: &str) -> bool {
    env::var(REENTERED).is_ok_and(|name| name == test)
}

/// Starts commands, which `start` prepares for each round, and kills each of them at a random moment within the time that a whole
/// run takes. Calls `check` after each. The seed is printed.
///
/// # Panics
///
/// If every process was done before it could be killed: then nothing was tested.
pub fn kill_at_random(
    rounds: u32,
    whole: Duration,
    start: impl FnMut(u32) -> Command,
    mut check: impl FnMut(u32),
) {
    signal_at_random(rounds, whole, &[Signal::KILL], start, |round, _| check(round));
}

/// The same with one of these signals in each round, which is passed to `check`.
///
/// # Panics
///
/// If every process was done before it got its signal.
pub fn signal_at_random(
    rounds: u32,
    whole: Duration,
    signals: &[Signal],
    mut start: impl FnMut(u32) -> Command,
    mut check: impl FnMut(u32, Signal),
) {
    let mut random = Random::new(seed());
    let mut reached = 0;
    for round in 0..rounds {
        let (moment, signal) = (whole.mul_f64(random.fraction()), *random.pick(signals));
        let mut child = start(round).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(moment);
        reached += u32::from(child.try_wait().unwrap().is_none());
        kill_process(Pid::from_child(&child), signal).ok();
        child.wait().unwrap();
        eprintln!("round {round}: {signal:?} after {moment:?}");
        check(round, signal);
    }
    assert!(reached > 0, "all of {rounds} processes were done before they got a signal");
}

/// A helper program of the crate under test, from its `examples` directory.
///
/// `cargo test -p CRATE` builds the examples of the crate. A selection of targets, as `--test it`, does not.
///
/// # Panics
///
/// If the program has not been built.
#[track_caller]
pub fn example(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap();
    let target = own.ancestors().nth(2).unwrap();
    let path = target.join("examples").join(name);
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    assert!(path.is_file(), "no {}: run `cargo build -p {package} --example {name}` first", path.display());
    path
}

/// A process that is killed when this goes out of scope.
#[derive(Debug)]
pub struct ChildGuard(pub Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether a process exists and has not ended. A zombie still has an entry.
pub fn is_running(pid: impl Into<u64>) -> bool {
    let pid = pid.into();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits until a process has ended.
#[track_caller]
pub fn wait_until_gone(pid: impl Into<u64>) {
    let pid = pid.into();
    eventually(&format!("process {pid} has ended"), || !is_running(pid));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reentered_test_runs_under_its_own_name() {
        let test = test_name!();
        assert_eq!(test, "process::tests::a_reentered_test_runs_under_its_own_name");
        if is_reentered(test) {
            return;
        }
        let output = reenter(test).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
    }

    #[test]
    fn a_guard_ends_its_process() {
        let guard = ChildGuard(Command::new("sleep").arg("1000").spawn().unwrap());
        let pid = guard.0.id();
        assert!(is_running(pid));
        drop(guard);
        assert!(!is_running(pid));
    }

    #[test]
    fn a_process_that_nobody_waited_for_has_ended() {
        let mut child = Command::new("true").spawn().unwrap();
        wait_until_gone(child.id());
        assert!(child.wait().unwrap().success());
    }
}
