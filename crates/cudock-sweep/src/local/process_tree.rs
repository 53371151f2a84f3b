//! The processes of a trial: found, signaled and waited for as a whole.
//!
//! A worker is the subreaper of its trial: processes whose parent has ended become its children, also daemons. So the
//! descendants of a worker are exactly the processes of its trial, and a worker without children has no descendants.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

/// How long killed processes may take to disappear. One that is stuck in the kernel cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// A step of waiting for processes to disappear.
const KILL_PAUSE: Duration = Duration::from_millis(2);

/// Makes orphaned descendants children of this process.
pub(crate) fn adopt_orphans() -> rustix::io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid()))
}

/// Children that have ended, and whether there are others.
#[derive(Debug, Default)]
pub(crate) struct Reaped {
    pub(crate) ended: Vec<(Pid, WaitStatus)>,
    pub(crate) has_children: bool,
}

/// Reaps all children that have ended.
pub(crate) fn reap() -> Reaped {
    let mut reaped = Reaped::default();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(ended)) => reaped.ended.push(ended),
            Ok(None) => {
                reaped.has_children = true;
                return reaped;
            }
            Err(rustix::io::Errno::INTR) => {}
            // There are no children.
            Err(_) => return reaped,
        }
    }
}

/// Kills the descendants of this process, except for the subtrees of `kept` children, and reaps them. Returns the number
/// of processes that were killed, and whether all are gone. Exit statuses of others that are reaped go to `on_ended`.
pub(crate) fn kill_descendants(kept: &[i32], on_ended: &mut dyn FnMut(Pid, WaitStatus)) -> (usize, bool) {
    let deadline = Instant::now() + KILL_TIMEOUT;
    let mut killed = std::collections::BTreeSet::new();
    loop {
        let reaped = reap();
        for (pid, status) in reaped.ended {
            on_ended(pid, status);
        }
        let rest = if reaped.has_children { descendants(kept) } else { Vec::new() };
        if rest.is_empty() || Instant::now() > deadline {
            return (killed.len(), rest.is_empty());
        }
        for pid in rest {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
            killed.insert(pid.as_raw_nonzero());
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// The descendants of this process, except for the subtrees of `kept` children.
pub(crate) fn descendants(kept: &[i32]) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in processes().filter_map(|pid| Some((pid, parent_of(pid)?))) {
        children.entry(parent).or_default().push(pid);
    }
    let (mut found, mut open) = (Vec::new(), vec![getpid().as_raw_nonzero().get()]);
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if !kept.contains(&child) {
                open.push(child);
                found.extend(Pid::from_raw(child));
            }
        }
    }
    found
}

/// The numbers of all processes.
fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A field of `/proc/PID/stat`, counted as in proc(5) and after the name.
fn stat_field(pid: i32, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses, and may contain others.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(field.checked_sub(3)?)?.parse().ok()
}

fn parent_of(pid: i32) -> Option<i32> {
    stat_field(pid, 4).and_then(|parent| i32::try_from(parent).ok())
}

/// When a process started, in clock ticks since boot.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    stat_field(pid, 22)
}

/// Kills all processes whose environment has `variable` with a path below `directory`: what is left of trials if the sweep
/// and a worker were killed at the same moment. Returns their number.
pub(crate) fn kill_marked(variable: &str, directory: &Path) -> usize {
    let mut prefix = format!("{variable}=").into_bytes();
    prefix.extend_from_slice(directory.as_os_str().as_bytes());
    prefix.push(b'/');
    let own = getpid().as_raw_nonzero().get();
    let deadline = Instant::now() + KILL_TIMEOUT;
    let mut killed = std::collections::BTreeSet::new();
    loop {
        let mut is_clear = true;
        for pid in processes().filter(|pid| *pid != own) {
            let Some(variables) = environment(pid) else {
                is_clear = false;
                continue;
            };
            if let Some(found) = Pid::from_raw(pid)
                && variables.split(|byte| *byte == 0).any(|variable| variable.starts_with(&prefix))
            {
                is_clear = false;
                let _ = kill_process(found, Signal::KILL);
                killed.insert(pid);
            }
        }
        if is_clear || Instant::now() > deadline {
            return killed.len();
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// The environment of a process; empty if it has ended or is that of another user. None if the process was just replacing
/// its program: the new environment was not yet there.
fn environment(pid: i32) -> Option<Vec<u8>> {
    let Ok(variables) = fs::read(format!("/proc/{pid}/environ")) else { return Some(Vec::new()) };
    let has_memory = || stat_field(pid, 23).is_some_and(|bytes| bytes > 0);
    // Where an environment starts and ends. One that is empty in fact has the same address twice.
    let is_empty = || stat_field(pid, 51).is_some_and(|end| end > 0 && stat_field(pid, 50) == Some(end));
    (!variables.is_empty() || !has_memory() || is_empty()).then_some(variables)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_is_replacing_its_program_is_found() {
        let directory = Path::new("/no/such/sweep");
        for _ in 0..40 {
            let mut child = Command::new("sh")
                .args(["-c", r#"exec sh -c "$0" "$0""#, r#"exec sh -c "$0" "$0""#])
                .env("CUDOCK_TEST_MARK", directory.join("0"))
                .spawn()
                .unwrap();
            let killed = kill_marked("CUDOCK_TEST_MARK", directory);
            let _ = child.kill();
            child.wait().unwrap();
            assert_eq!(killed, 1);
        }
    }
}
