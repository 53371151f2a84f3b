//! Traces processes from their birth on, and stops those in a spy's pid namespace at every system call.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc::{PTRACE_EVENT_EXEC, PTRACE_EVENT_STOP};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::spy::Spy;

/// Time without any event after which a test gives up. Not a promise of ours.
const PATIENCE: Duration = Duration::from_secs(120);

/// When the spies look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A spy looks at each process in its own pid namespace, at birth and at each system call up to its program.
    Joining,
    /// Every spy looks whenever any process was born or has executed a program, wherever that is.
    Everything,
    /// Nothing is held: what is executed, and where, is recorded.
    Programs,
}

/// A process that was born in a spy's pid namespace.
#[derive(Debug, Clone, Default)]
pub struct Join {
    /// Which spy's.
    pub spy: usize,
    /// How often it was looked at before it executed the container's program.
    pub looks: usize,
    /// How often the spy could read its root and memory then.
    pub deep_looks: usize,
    /// Whether it executed the container's program, and was looked at after that.
    pub executed: bool,
}

/// The recorded trace.
#[derive(Debug, Default)]
pub struct Trace {
    /// The exit code of the command.
    pub code: Option<i32>,
    /// The processes that were born in the spies' pid namespaces, each held while a spy looked.
    pub joins: Vec<Join>,
    /// The pid namespace of each process that was born.
    pub births: Vec<String>,
    /// The programs that were executed, but those of joining processes, with the pid namespace of each.
    pub programs: Vec<(PathBuf, String)>,
    /// How often a spy looked for [`Hold::Everything`].
    pub looks: usize,
    /// How many processes spies saw then.
    pub seen: usize,
}

/// Traces processes with the help of spies. What is traced runs on untraced when the thread of the tracer ends.
#[derive(Debug)]
pub struct Tracer<'s> {
    spies: &'s mut [Spy],
    hold: Hold,
    /// All traced threads; those that are joining with the index of their join.
    known: HashMap<Pid, Option<usize>>,
    root: Option<Pid>,
    trace: Trace,
}

impl<'s> Tracer<'s> {
    fn new(spies: &'s mut [Spy], hold: Hold) -> Self {
        Self { spies, hold, known: HashMap::new(), root: None, trace: Trace::default() }
    }

    /// Runs a command to its end, with everything that it starts.
    pub fn run(command: &Command, spies: &'s mut [Spy], hold: Hold) -> Trace {
        in_own_thread(|| {
            let mut tracer = Self::new(spies, hold);
            tracer.start(command);
            tracer.go_on(|trace| trace.code.is_some());
            tracer.trace
        })
    }

    /// Follows a process that runs, and everything that it starts, until there is enough. `begin` is called once it is
    /// followed.
    pub fn follow(
        pid: i32,
        spies: &'s mut [Spy],
        hold: Hold,
        begin: impl FnOnce() + Send,
        enough: impl FnMut(&Trace) -> bool + Send,
    ) -> Trace {
        in_own_thread(|| {
            let mut tracer = Self::new(spies, hold);
            tracer.seize_all(pid);
            begin();
            tracer.go_on(enough);
            tracer.trace
        })
    }

    /// Starts a command that is stopped until it is traced.
    #[allow(clippy::zombie_processes, reason = "its end is taken with those of all traced processes")]
    fn start(&mut self, command: &Command) {
        let mut stopped = Command::new("sh");
        stopped.args(["-c", r#"kill -STOP $$; exec "$@""#, "sh"]);
        stopped.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => stopped.env(name, value),
                None => stopped.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            stopped.current_dir(dir);
        }
        let child = stopped.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        let status = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert_eq!(status, WaitStatus::Stopped(pid, Signal::SIGSTOP));
        seize(pid).unwrap();
        self.known.insert(pid, None);
        self.root = Some(pid);
        kill(pid, Signal::SIGCONT).unwrap();
    }

    /// Seizes every thread of a process.
    fn seize_all(&mut self, pid: i32) {
        loop {
            let before = self.known.len();
            for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
                let thread = Pid::from_raw(thread.file_name().to_str().unwrap().parse().unwrap());
                // A thread that has ended meanwhile need not be followed.
                if !self.known.contains_key(&thread) && seize(thread).is_ok() {
                    self.known.insert(thread, None);
                }
            }
            if self.known.len() == before {
                return;
            }
        }
    }

    fn go_on(&mut self, mut enough: impl FnMut(&Trace) -> bool) {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD | WaitPidFlag::WNOHANG;
        let mut last = Instant::now();
        while !enough(&self.trace) {
            let status = waitpid(None, Some(flags)).expect("there is nothing left to trace");
            if status == WaitStatus::StillAlive {
                assert!(last.elapsed() < PATIENCE, "nothing happens any more: {:?}", self.trace);
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            last = Instant::now();
            self.take(status);
        }
    }

    /// Deals with one stop or end of a process.
    fn take(&mut self, status: WaitStatus) {
        match status {
            WaitStatus::PtraceEvent(pid, _, PTRACE_EVENT_STOP) => {
                if !self.known.contains_key(&pid) {
                    self.born(pid);
                }
                self.resume(pid, None);
            }
            WaitStatus::PtraceEvent(pid, _, PTRACE_EVENT_EXEC) => self.executed(pid),
            WaitStatus::PtraceEvent(pid, ..) => self.resume(pid, None),
            WaitStatus::PtraceSyscall(pid) => {
                if let Some(join) = self.known.get(&pid).copied().flatten() {
                    self.look_at(pid, join);
                }
                self.resume(pid, None);
            }
            WaitStatus::Stopped(pid, signal) => self.resume(pid, Some(signal)),
            WaitStatus::Exited(pid, code) => self.ended(pid, code),
            WaitStatus::Signaled(pid, signal, _) => self.ended(pid, 128 + signal as i32),
            _ => {}
        }
    }

    fn ended(&mut self, pid: Pid, code: i32) {
        if let Some(Some(join)) = self.known.remove(&pid) {
            panic!("a joining process ended with {code}: {:?}", self.trace.joins[join]);
        }
        if self.root == Some(pid) {
            self.trace.code = Some(code);
        }
    }

    fn born(&mut self, pid: Pid) {
        let namespace = pid_namespace(pid);
        let spy = self.spies.iter().position(|spy| spy.namespace == namespace);
        let spy = spy.filter(|_| self.hold != Hold::Programs);
        let join = spy.map(|spy| {
            self.trace.joins.push(Join { spy, ..Join::default() });
            self.trace.joins.len() - 1
        });
        self.known.insert(pid, join);
        self.trace.births.push(namespace);
        if let Some(join) = join {
            self.look_at(pid, join);
        }
        self.look_around();
    }

    /// A process has executed a program. The container's own are not traced any further.
    fn executed(&mut self, pid: Pid) {
        let Some(join) = self.known.get(&pid).copied().flatten() else {
            let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            self.trace.programs.push((program, pid_namespace(pid)));
            self.look_around();
            self.resume(pid, None);
            return;
        };
        let spy = self.trace.joins[join].spy;
        assert!(self.spies[spy].look().iter().any(|seen| seen.pid == inner_pid(pid)));
        self.trace.joins[join].executed = true;
        self.known.remove(&pid);
        ptrace::detach(pid, None).unwrap();
    }

    fn look_at(&mut self, pid: Pid, join: usize) {
        let join = &mut self.trace.joins[join];
        let inner = inner_pid(pid);
        let seen = self.spies[join.spy].look();
        let seen = seen.iter().find(|seen| seen.pid == inner);
        join.looks += 1;
        join.deep_looks += usize::from(seen.expect("the spy sees the process").deep);
    }

    fn look_around(&mut self) {
        if self.hold == Hold::Everything {
            for spy in self.spies.iter_mut() {
                self.trace.looks += 1;
                self.trace.seen += spy.look().len();
            }
        }
    }

    fn resume(&self, pid: Pid, signal: Option<Signal>) {
        let joining = self.known.get(&pid).is_some_and(Option::is_some);
        // One that was killed meanwhile is reported by its end.
        let _ = if joining { ptrace::syscall(pid, signal) } else { ptrace::cont(pid, signal) };
    }
}

fn seize(pid: Pid) -> nix::Result<()> {
    let options = Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESYSGOOD;
    ptrace::seize(pid, options)
}

/// Runs work on a thread of its own: its tracees are released when it ends, and its children are not those of other tests.
fn in_own_thread<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    let outcome = std::thread::scope(|scope| scope.spawn(task).join());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The pid namespace of a process; empty if it is gone.
fn pid_namespace(pid: Pid) -> String {
    let link = fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// The number of a process in its own pid namespace.
fn inner_pid(pid: Pid) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    numbers.split_whitespace().last().unwrap().parse().unwrap()
}
