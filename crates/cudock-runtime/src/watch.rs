//! The life of a container, from the side of the one process that watches it.
//!
//! This must run in a process with one thread: libcontainer forks, and goes on in the child with the memory of the
//! parent, where a lock that another thread held would stay held for ever.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use cudock_base::Report as _;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::error::{OnFile, OnSystem, RuntimeError};
use crate::gpu;
use crate::home::{ContainerDir, persist, remove_tree};
use crate::launch::{self, Streams};
use crate::log::{Stream, Writer, read_some};
use crate::network::Network;
use crate::overlay::{Overlay, leave_mount_namespace};
use crate::plan::{Plan, Private, ProcessPlan, Restart};
use crate::pump::{self, Ended, Ends, Signals, stay};
use crate::reexec;
use crate::status::{State, Status, now, process_began};
use crate::sys;

/// How a watcher is connected to whoever started it.
#[derive(Debug, Default)]
pub struct Connection {
    /// Whether what the container writes goes to our own outputs, and our input to it.
    pub attached: bool,
    /// Where to say that the container runs, or why it does not.
    pub ready: Option<File>,
}

/// The first pause before a container is started again; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A container that ran so long is not failing at its start.
const RAN_WELL: Duration = Duration::from_secs(10 * 60);

/// How long a query of the GPUs may take: many of them on a cold driver take a while.
const LONGEST_QUERY: Duration = Duration::from_secs(120);
/// No report of a query is longer.
const LONGEST_REPORT: usize = 1 << 20;

/// Runs a container until it has ended for good. What it ended with.
pub fn watch(dir: &ContainerDir, private: &Private, connection: Connection) -> Result<i32, RuntimeError> {
    let plan = dir.plan()?;
    let Some(_watch) = dir.watch()? else {
        return Err(RuntimeError::State {
            name: plan.name,
            is: "watched by another process".to_owned(),
            needed: "unwatched",
        });
    };
    let Connection { attached, ready } = connection;
    let mut watcher = Watcher { dir, plan: &plan, private, attached, ready, status: Status::default() };
    watcher.status.watcher = Some(std::process::id());
    let outcome = watcher.live();
    if let Err(error) = &outcome {
        watcher.status.state = State::Exited;
        watcher.status.exit_code = Some(exit_code(error));
        watcher.status.finished = Some(now());
        watcher.status.error = Some(launch::text(error));
        watcher.write_status();
        Cgroup::at(&launch::cgroup_path(&plan.id)).remove()?;
    }
    if plan.remove {
        unmount(dir);
        if let Some(trash) = dir.discard()? {
            // Whoever waits for the container need not wait for the disk.
            sys::in_background(|| {
                let _ = remove_tree(&trash);
            });
        }
    }
    if let Err(error) = &outcome {
        watcher.say(&reexec::report(error));
    }
    outcome
}

/// Takes away what is mounted in the container's directory, so that the directory can go.
fn unmount(dir: &ContainerDir) {
    // What was not mounted yet need not be unmounted.
    let _ = nix::mount::umount2(&dir.run(), nix::mount::MntFlags::MNT_DETACH);
}

/// The exit code an error stands for.
pub fn exit_code(error: &RuntimeError) -> i32 {
    match error {
        RuntimeError::Reported { code, .. } => *code,
        RuntimeError::NotFound(_) => 127,
        RuntimeError::NotExecutable(_) => 126,
        RuntimeError::User(_)
        | RuntimeError::Usage(_)
        | RuntimeError::Request(_)
        | RuntimeError::Unknown(_)
        | RuntimeError::UnknownGroup(_)
        | RuntimeError::Ambiguous(_)
        | RuntimeError::NameTaken { .. }
        | RuntimeError::State { .. } => 2,
        RuntimeError::Network(error) if !error.is_outside() => 2,
        RuntimeError::Image(error) if !error.is_outside() => 2,
        RuntimeError::Unpack(error) if !error.is_outside() => 2,
        RuntimeError::Inject(error) if !error.is_outside() => 2,
        _ => 3,
    }
}

struct Watcher<'a> {
    dir: &'a ContainerDir,
    plan: &'a Plan,
    private: &'a Private,
    attached: bool,
    ready: Option<File>,
    status: Status,
}

impl Watcher<'_> {
    fn live(&mut self) -> Result<i32, RuntimeError> {
        leave_mount_namespace()?;
        self.make_run_directory()?;
        self.mount_root()?;
        // Groups of whoever started us are not the container's; in a user namespace they cannot be left.
        let _ = nix::unistd::setgroups(&[]);
        crate::volume_store::fill(&self.dir.rootfs(), &self.plan.mounts)?;
        let mut network = Network::set_up(&self.dir.run(), &self.plan.network)?;
        self.status.ports = network.ports();
        let mut signals = Signals::hold()?;
        let mut log = Writer::open(&self.dir.log())?;
        if self.plan.verify_gpu {
            self.verify_gpu(&network, &mut signals)?;
        }
        let mut pause = FIRST_PAUSE;
        loop {
            let (ended, ran) = self.run_once(&mut network, &mut signals, &mut log)?;
            let told = ended.told || self.dir.is_asked_to_stop();
            let again = !told && restarts(self.plan.restart, ended.code, self.status.restarts);
            if !again {
                self.status.state = State::Exited;
                self.write_status();
                return Ok(ended.code);
            }
            if ran >= RAN_WELL {
                pause = FIRST_PAUSE;
            }
            self.status.state = State::Restarting;
            self.write_status();
            if self.pause(&mut signals, pause) {
                self.status.state = State::Exited;
                self.write_status();
                return Ok(ended.code);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.status.restarts += 1;
        }
    }

    /// One start to one end.
    fn run_once(
        &mut self,
        network: &mut Network,
        signals: &mut Signals,
        log: &mut Writer,
    ) -> Result<(Ended, Duration), RuntimeError> {
        let (streams, mut ends) = self.connect()?;
        let mut created = launch::create(self.dir, self.plan, self.private, network, streams, None)?;
        if let Some(terminal) = created.terminal.take() {
            ends = Ends::of_terminal(terminal, self.attached, self.attached && self.plan.process.stdin);
        }
        let cgroup = Cgroup::at(&launch::cgroup_path(&self.plan.id));
        if self.dir.is_asked_to_stop() {
            // Before it began.
            cgroup.kill();
            let ended = stay(created.pid, Ends::default(), signals, None, &mut || {})?;
            self.status.exit_code = Some(ended.code);
            self.status.finished = Some(now());
            cgroup.remove()?;
            return Ok((Ended { told: true, ..ended }, Duration::ZERO));
        }
        let started = now();
        self.status.state = State::Running;
        self.status.pid = Some(created.pid);
        self.status.pid_began = process_began(created.pid);
        self.status.started = Some(started);
        self.status.exit_code = None;
        self.status.out_of_memory = false;
        self.dir.set_status(&self.status)?;
        created.start()?;
        self.say("running");
        if !self.plan.remove {
            persist(self.dir);
        }
        let ended = stay(created.pid, ends, signals, Some(log), &mut || {
            if network.tend() {
                self.status.ports = network.ports();
                self.status.error = network.complaint();
                self.write_status();
            }
        })?;
        self.status.out_of_memory = cgroup.ran_out_of_memory();
        self.status.pid = None;
        self.status.pid_began = None;
        self.status.finished = Some(now());
        self.status.exit_code = Some(ended.code);
        if self.status.out_of_memory && self.attached {
            eprintln!("cudock: a process of the container was killed: it used more memory than it may");
        }
        cgroup.remove()?;
        Ok((ended, Duration::from_millis(now().saturating_sub(started))))
    }

    /// Has the container's GPUs compute, from inside it. What was seen goes to standard error.
    fn verify_gpu(&self, network: &Network, signals: &mut Signals) -> Result<(), RuntimeError> {
        let null = || File::open("/dev/null").map(OwnedFd::from).when("cannot open /dev/null");
        let (reader, writer) = io::pipe().when("cannot make a pipe")?;
        let writer = OwnedFd::from(writer);
        let second = rustix::io::dup(&writer).when("cannot make a pipe")?;
        let streams = Streams::Pipes { stdin: null()?, stdout: writer, stderr: second };
        let plan =
            Plan { process: ProcessPlan { tty: false, ..self.plan.process.clone() }, ..self.plan.clone() };
        cudock_device::prepare();
        let mut private = self.private.clone();
        private.environment.extend(gpu::verify_environment());
        let mut created = launch::create(self.dir, &plan, &private, network, streams, Some(gpu::verify))?;
        created.start()?;
        let said = short_output(&File::from(OwnedFd::from(reader)), created.pid)?;
        let ended = stay(created.pid, Ends::default(), signals, None, &mut || {})?;
        Cgroup::at(&launch::cgroup_path(&self.plan.id)).remove()?;
        if ended.code != 0 {
            return Err(RuntimeError::said(format!(
                "the GPU does not work in the container: {}",
                said.trim()
            )));
        }
        if self.attached {
            eprint!("{said}");
        }
        Writer::open(&self.dir.log())?.write(Stream::Err, said.as_bytes()).when("cannot write the log")
    }

    /// A directory in memory for what need not outlive us: nothing of it is left when we end, and no disk is waited for.
    fn make_run_directory(&self) -> Result<(), RuntimeError> {
        let run = self.dir.run();
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), &run, Some("tmpfs"), flags, Some("mode=700"))
            .on("cannot mount memory at", &run)?;
        for directory in [self.dir.rootfs(), self.dir.bundle(), self.dir.oci()] {
            fs::create_dir(&directory).on("cannot make", &directory)?;
        }
        Ok(())
    }

    fn mount_root(&self) -> Result<(), RuntimeError> {
        Overlay {
            layers: &self.plan.layers,
            upper: &self.dir.upper(),
            work: &self.dir.work(),
            target: &self.dir.rootfs(),
            user_namespace: crate::rootless::in_user_namespace(),
        }
        .mount()
    }

    /// Pipes or a terminal for a process, and our ends of them.
    fn connect(&self) -> Result<(Streams, Ends), RuntimeError> {
        if self.plan.process.tty {
            return Ok((Streams::Terminal, Ends::default()));
        }
        let ([stdin, stdout, stderr], ends) =
            pump::pipes(self.attached && self.plan.process.stdin, self.attached)?;
        Ok((Streams::Pipes { stdin, stdout, stderr }, ends))
    }

    /// Writes down how the container is. A disk so full that not even that fits must neither end the container nor hide
    /// what it ended with.
    fn write_status(&self) {
        if let Err(error) = self.dir.set_status(&self.status) {
            eprintln!("cudock: {}", launch::text(&error));
        }
        if self.status.state == State::Exited && !self.plan.remove {
            persist(self.dir);
        }
    }

    /// Waits before the next start; whether we were asked to end meanwhile.
    fn pause(&self, signals: &mut Signals, pause: Duration) -> bool {
        let step = Duration::from_millis(100);
        let mut waited = Duration::ZERO;
        while waited < pause {
            if signals.asked_to_end_within(step.min(pause.saturating_sub(waited)))
                || self.dir.is_asked_to_stop()
            {
                return true;
            }
            waited += step;
        }
        false
    }

    /// Tells whoever started us how it went, once.
    fn say(&mut self, word: &str) {
        use std::io::Write;
        if let Some(mut ready) = self.ready.take() {
            let _ = ready.write_all(word.as_bytes());
        }
    }
}

/// What a process writes until it ends. One that writes too much, or takes too long, is ended: whatever libraries the
/// image brought run in it.
fn short_output(reader: &File, pid: i32) -> Result<String, RuntimeError> {
    let until = Instant::now() + LONGEST_QUERY;
    let mut said = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let there = matches!(poll(&mut polled, limit), Ok(1..));
        let count =
            if there { read_some(reader, &mut buffer).when("cannot hear the device query")? } else { 0 };
        said.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if count == 0 || said.len() > LONGEST_REPORT {
            // At its end already, or it has to be.
            if !there || count > 0 {
                said.extend_from_slice(b"the device query took too long");
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            return Ok(String::from_utf8_lossy(&said).into_owned());
        }
    }
}

/// Whether a container that ended is started again.
fn restarts(policy: Restart, code: i32, so_far: u32) -> bool {
    match policy {
        Restart::No => false,
        Restart::Always => true,
        Restart::OnFailure { attempts } => code != 0 && attempts.is_none_or(|most| so_far < most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_started_again_as_its_policy_says() {
        assert!(!restarts(Restart::No, 1, 0));
        assert!(restarts(Restart::Always, 0, 99));
        let twice = Restart::OnFailure { attempts: Some(2) };
        assert!(restarts(twice, 1, 0));
        assert!(restarts(twice, 1, 1));
        assert!(!restarts(twice, 1, 2));
        assert!(!restarts(twice, 0, 0));
        assert!(restarts(Restart::OnFailure { attempts: None }, 137, 500));
    }
}
