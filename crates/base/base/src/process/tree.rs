//! All processes that a process has started: found, signaled and waited for as a whole.
//!
//! A process that calls [`adopt_orphans`] is the subreaper of its descendants: those whose parent has ended become its
//! children, also daemons. So it has no descendants once it has no children.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

/// How long killed processes may take to disappear. One that is stuck in the kernel cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval of checks whether processes have disappeared.
const KILL_PAUSE: Duration = Duration::from_millis(2);

/// Makes orphaned descendants children of this process.
pub fn adopt_orphans() -> rustix::io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid()))
}

/// Children that have ended, and whether there are others.
#[derive(Debug, Default)]
pub struct Reaped {
    pub ended: Vec<(Pid, WaitStatus)>,
    pub has_children: bool,
}

/// Reaps all children that have ended.
pub fn reap() -> Reaped {
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
pub fn kill_descendants(kept: &[i32], on_ended: &mut dyn FnMut(Pid, WaitStatus)) -> (usize, bool) {
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
pub fn descendants(kept: &[i32]) -> Vec<Pid> {
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

/// `/proc/PID/stat` after the name.
struct Stat(String);

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses, and may contain others.
        Some(Self(stat.rsplit_once(") ")?.1.trim_end().to_owned()))
    }

    /// A field, counted as in proc(5).
    fn field(&self, field: usize) -> Option<u64> {
        self.0.split(' ').nth(field.checked_sub(3)?)?.parse().ok()
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    Stat::read(pid)?.field(4).and_then(|parent| i32::try_from(parent).ok())
}

/// When a process started, in clock ticks since boot.
pub fn start_time(pid: i32) -> Option<u64> {
    Stat::read(pid)?.field(22)
}

/// Kills all processes whose environment has `variable` with a path below `directory`: those that
/// remain if their subreaper was killed, too. Returns their number.
///
/// A child that has not yet replaced its parent's program has the parent's environment, and is not
/// found. It also has the parent's locks, so an exclusive lock proves that no such child is left.
pub fn kill_marked(variable: &str, directory: &Path) -> usize {
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
/// its program: then the new environment was not yet there, or the end of the old one was not there any more.
fn environment(pid: i32) -> Option<Vec<u8>> {
    let Ok(variables) = fs::read(format!("/proc/{pid}/environ")) else { return Some(Vec::new()) };
    let Some(stat) = Stat::read(pid) else { return Some(variables) };
    let has_memory = stat.field(23).is_some_and(|bytes| bytes > 0);
    // The kernel sets the address of the code after those of the environment.
    let is_started = stat.field(26).is_some_and(|code| code > 0);
    let length = stat.field(51).zip(stat.field(50)).and_then(|(end, start)| end.checked_sub(start));
    (!has_memory || is_started && length == u64::try_from(variables.len()).ok()).then_some(variables)
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
            let own_program = fs::read_link("/proc/self/exe").unwrap();
            while fs::read_link(format!("/proc/{}/exe", child.id())).unwrap() == own_program {}
            let killed = kill_marked("CUDOCK_TEST_MARK", directory);
            let _ = child.kill();
            child.wait().unwrap();
            assert_eq!(killed, 1);
        }
    }
}
