//! The watcher of a container: the process that starts it, keeps its log and restarts it.
//!
//! It must have one thread: libcontainer forks and continues in the child, where a lock that another thread held would
//! stay locked forever.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use cudock_base::Report as _;
use cudock_device::DeviceReport;
use cudock_group::restart::Backoff;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::error::{OnError, RuntimeError, error_text};
use crate::gpu;
use crate::home::{ContainerDir, persist, remove_tree};
use crate::launch;
use crate::log::{LogWriter, Stream, read_some};
use crate::network::Network;
use crate::overlay::{Overlay, leave_mount_namespace};
use crate::plan::{Plan, Private, ProcessPlan, Restart};
use crate::reexec;
use crate::status::{ContainerState, ContainerStatus, now, process_began};
use crate::streams::{self, ProcessEnd, Signals, StreamEnds, supervise_process};
use crate::sys;

/// The connection of a watcher or supervisor to the process that started it.
#[derive(Debug, Default)]
pub struct Connection {
    /// Whether it shares our input and outputs.
    pub attached: bool,
    /// Where to report that it runs, or why it does not.
    pub ready: Option<File>,
}

/// How long verifying the GPUs may take: many GPUs with a cold driver take a while.
const QUERY_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest output of verifying the GPUs.
const MAX_REPORT: usize = 1 << 20;

/// Runs a container until it has exited and does not restart, and returns its exit code.
pub fn watch(dir: &ContainerDir, private: &Private, connection: Connection) -> Result<i32, RuntimeError> {
    supervise(dir, private, connection, false)
}

/// Computes on the GPUs of a container in which nothing else runs, and reports a [`DeviceReport`] as JSON when it is ready.
pub fn verify_gpus(
    dir: &ContainerDir,
    private: &Private,
    connection: Connection,
) -> Result<i32, RuntimeError> {
    supervise(dir, private, connection, true)
}

fn supervise(
    dir: &ContainerDir,
    private: &Private,
    connection: Connection,
    verify_only: bool,
) -> Result<i32, RuntimeError> {
    let plan = dir.plan()?;
    let Some(_watch) = dir.watch()? else {
        return Err(RuntimeError::state(&plan.name, &"running", "stopped"));
    };
    let Connection { attached, ready } = connection;
    let mut watcher =
        Watcher { dir, plan: &plan, private, attached, ready, status: ContainerStatus::default() };
    watcher.status.watcher = Some(std::process::id());
    let outcome = if verify_only { watcher.verify_only() } else { watcher.run() };
    if let Err(error) = &outcome {
        watcher.status.state = ContainerState::Exited;
        watcher.status.exit_code = Some(exit_code(error));
        watcher.status.finished = Some(now());
        watcher.status.error = Some(error_text(error));
        watcher.write_status();
        Cgroup::at(&launch::cgroup_path(&plan.id)).remove()?;
    }
    if plan.remove {
        unmount(dir);
        if let Some(trash) = dir.discard()? {
            // Callers that wait for the container need not wait for the disk.
            sys::in_background(|| {
                let _ = remove_tree(&trash);
            });
        }
    }
    if let Err(error) = &outcome {
        reexec::reply(&mut watcher.ready, &reexec::format_error(error));
    }
    outcome
}

/// Unmounts the container's run directory, so that it can be removed.
fn unmount(dir: &ContainerDir) {
    // It may not be mounted yet.
    let _ = nix::mount::umount2(&dir.run(), nix::mount::MntFlags::MNT_DETACH);
}

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
    status: ContainerStatus,
}

impl Watcher<'_> {
    /// Everything that its processes need.
    fn set_up(&mut self) -> Result<(Network, Signals), RuntimeError> {
        leave_mount_namespace()?;
        self.mount_run_directory()?;
        self.mount_root()?;
        // The caller's groups are not the container's; in a user namespace they cannot be dropped.
        let _ = nix::unistd::setgroups(&[]);
        crate::volume_store::fill(&self.dir.rootfs(), &self.plan.mounts)?;
        let network = Network::set_up(&self.dir.run(), &self.plan.network)?;
        self.status.ports = network.ports();
        Ok((network, Signals::block()?))
    }

    /// Verifies the GPUs, and nothing else.
    fn verify_only(&mut self) -> Result<i32, RuntimeError> {
        let (network, mut signals) = self.set_up()?;
        let (report, _) = self.verify_gpu(&network, &mut signals)?;
        reexec::reply(&mut self.ready, &serde_json::to_string(&report).unwrap_or_default());
        self.status.state = ContainerState::Exited;
        self.status.exit_code = Some(0);
        self.write_status();
        Ok(0)
    }

    fn run(&mut self) -> Result<i32, RuntimeError> {
        let (mut network, mut signals) = self.set_up()?;
        let mut log = LogWriter::open(&self.dir.log())?;
        if self.plan.verify_gpu {
            let (_, text) = self.verify_gpu(&network, &mut signals)?;
            if self.attached {
                eprint!("{text}");
            }
            log.write(Stream::Err, text.as_bytes()).when("cannot write the log")?;
        }
        let mut backoff = Backoff::single_container();
        loop {
            let (ended, ran) = self.run_once(&mut network, &mut signals, &mut log)?;
            let stopped = ended.stop_requested || self.dir.is_stopping();
            let restart = !stopped && restarts(self.plan.restart, ended.code, self.status.restarts);
            if restart {
                self.status.state = ContainerState::Restarting;
                self.write_status();
            }
            if !restart || self.wait(&mut signals, backoff.next_delay(ran)) {
                self.status.state = ContainerState::Exited;
                self.write_status();
                return Ok(ended.code);
            }
            self.status.restarts += 1;
        }
    }

    /// Runs the container once. Returns how it ended and how long it ran.
    fn run_once(
        &mut self,
        network: &mut Network,
        signals: &mut Signals,
        log: &mut LogWriter,
    ) -> Result<(ProcessEnd, Duration), RuntimeError> {
        let (streams, mut ends) = self.connect()?;
        let mut created = launch::create(self.dir, self.plan, self.private, network, streams, None)?;
        if let Some(terminal) = created.terminal.take() {
            ends = StreamEnds::of_terminal(terminal, self.attached, self.attached && self.plan.process.stdin);
        }
        let cgroup = Cgroup::at(&launch::cgroup_path(&self.plan.id));
        if self.dir.is_stopping() {
            // Stopped before it started.
            cgroup.kill();
            let ended = supervise_process(created.pid, StreamEnds::default(), signals, None, &mut || {})?;
            self.status.exit_code = Some(ended.code);
            self.status.finished = Some(now());
            cgroup.remove()?;
            return Ok((ProcessEnd { stop_requested: true, ..ended }, Duration::ZERO));
        }
        let started = now();
        self.status.state = ContainerState::Running;
        self.status.pid = Some(created.pid);
        self.status.pid_began = process_began(created.pid);
        self.status.started = Some(started);
        self.status.exit_code = None;
        self.status.out_of_memory = false;
        self.dir.set_status(&self.status)?;
        created.start()?;
        reexec::reply(&mut self.ready, "running");
        if !self.plan.remove {
            persist(self.dir);
        }
        let ended = supervise_process(created.pid, ends, signals, Some(log), &mut || {
            if network.restart_helpers() {
                self.status.ports = network.ports();
                self.status.error = network.error();
                self.write_status();
            }
        })?;
        self.status.out_of_memory = cgroup.ran_out_of_memory();
        self.status.pid = None;
        self.status.pid_began = None;
        self.status.finished = Some(now());
        self.status.exit_code = Some(ended.code);
        if self.status.out_of_memory && self.attached {
            eprintln!("cudock: a process of the container was killed: out of memory");
        }
        cgroup.remove()?;
        Ok((ended, Duration::from_millis(now().saturating_sub(started))))
    }

    /// Computes on the GPUs from inside the container. Returns the result, also as text.
    fn verify_gpu(
        &self,
        network: &Network,
        signals: &mut Signals,
    ) -> Result<(DeviceReport, String), RuntimeError> {
        let null = || File::open("/dev/null").map(OwnedFd::from).when("cannot open /dev/null");
        let (reader, writer) = io::pipe().when("cannot create a pipe")?;
        let writer = OwnedFd::from(writer);
        let second = rustix::io::dup(&writer).when("cannot create a pipe")?;
        let streams = Some([null()?, writer, second]);
        let plan =
            Plan { process: ProcessPlan { tty: false, ..self.plan.process.clone() }, ..self.plan.clone() };
        cudock_device::prepare();
        let mut private = self.private.clone();
        private.environment.extend(gpu::verify_environment());
        let mut created = launch::create(self.dir, &plan, &private, network, streams, Some(gpu::verify))?;
        created.start()?;
        let output = read_output(&File::from(OwnedFd::from(reader)), created.pid)?;
        let ended = supervise_process(created.pid, StreamEnds::default(), signals, None, &mut || {})?;
        Cgroup::at(&launch::cgroup_path(&self.plan.id)).remove()?;
        match gpu::read_report(&output) {
            (Some(report), text) if ended.code == 0 => Ok((report, text)),
            (_, text) => {
                let text = text.trim();
                Err(RuntimeError::reported(format!("the GPU does not work in the container: {text}")))
            }
        }
    }

    /// Mounts a tmpfs for files that do not outlive the watcher.
    fn mount_run_directory(&self) -> Result<(), RuntimeError> {
        let run = self.dir.run();
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), &run, Some("tmpfs"), flags, Some("mode=700"))
            .on("cannot mount a tmpfs at", &run)?;
        for directory in [self.dir.rootfs(), self.dir.bundle(), self.dir.oci()] {
            fs::create_dir(&directory).on("cannot create", &directory)?;
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

    fn connect(&self) -> Result<(Option<[OwnedFd; 3]>, StreamEnds), RuntimeError> {
        if self.plan.process.tty {
            return Ok((None, StreamEnds::default()));
        }
        let (streams, ends) = streams::pipes(self.attached && self.plan.process.stdin, self.attached)?;
        Ok((Some(streams), ends))
    }

    /// Writes the status. A full disk must neither end the container nor hide its exit code.
    fn write_status(&self) {
        if let Err(error) = self.dir.set_status(&self.status) {
            eprintln!("cudock: {}", error_text(&error));
        }
        if self.status.state == ContainerState::Exited && !self.plan.remove {
            persist(self.dir);
        }
    }

    /// Waits before the next start. Returns whether the container was stopped meanwhile.
    fn wait(&self, signals: &mut Signals, delay: Duration) -> bool {
        let step = Duration::from_millis(100);
        let mut waited = Duration::ZERO;
        while waited < delay {
            if signals.stop_requested_within(step.min(delay.saturating_sub(waited))) || self.dir.is_stopping()
            {
                return true;
            }
            waited += step;
        }
        false
    }
}

/// The output of a process until it exits. It runs libraries of the image, so it is killed if it writes too much or takes
/// too long.
fn read_output(reader: &File, pid: i32) -> Result<String, RuntimeError> {
    let until = Instant::now() + QUERY_TIMEOUT;
    let mut output = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let ready = matches!(poll(&mut polled, limit), Ok(1..));
        let count = if ready {
            read_some(reader, &mut buffer).when("cannot read the result of the GPU check")?
        } else {
            0
        };
        output.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if count == 0 || output.len() > MAX_REPORT {
            if !ready || count > 0 {
                output.extend_from_slice(b"the GPU check timed out");
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            return Ok(String::from_utf8_lossy(&output).into_owned());
        }
    }
}

fn restarts(policy: Restart, code: i32, restarts: u32) -> bool {
    match policy {
        Restart::No => false,
        Restart::Always => true,
        Restart::OnFailure { attempts } => code != 0 && attempts.is_none_or(|attempts| restarts < attempts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_restart_according_to_their_policy() {
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
