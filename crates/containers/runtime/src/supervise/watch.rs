//! The watcher of a container: the process that starts it, keeps its log and restarts it.
//!
//! It must have one thread: libcontainer forks and continues in the child, where a lock that another thread held would
//! stay locked forever.

use cudock_base::bug::Parts;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use cudock_gpu_test::DeviceReport;
use cudock_group::restart::Backoff;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::container::config::{ContainerConfig, LogConfig, Private, ProcessConfig, Restart};
use crate::container::container_dir::persist;
use crate::container::home::{ContainerDir, remove_tree};
use crate::container::log::{LogLimits, LogWriter, Stream, read_some};
use crate::container::status::{ContainerState, ContainerStatus, Watch, now, process_began};
use crate::error::{OnError, RuntimeError, error_text, exit_code};
use crate::namespace::reexec;
use crate::namespace::sys;
use crate::start::gpu;
use crate::start::launch;
use crate::start::network::Network;
use crate::start::overlay::{Overlay, leave_mount_namespace};
use crate::supervise::signal::kill_and_reap;
use crate::supervise::streams::{self, ProcessEnd, Signals, StreamEnds, supervise_process};
use crate::volumes;
use crate::volumes::fill;

/// The connection of a watcher or supervisor to the process that started it.
#[derive(Debug, Default)]
pub struct Connection {
    /// Whether it shares our input and outputs.
    pub attached: bool,
    /// Where to report that it runs, or why it does not.
    pub ready: Option<File>,
    /// The lock on the container, if that process has taken it.
    pub lock: Option<Watch>,
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
    let Connection { attached, ready, lock } = connection;
    // From here on a termination signal ends the start in order.
    let signals = Signals::block()?;
    let config = dir.config()?;
    let lock = lock.map_or_else(|| dir.watch(), |lock| Ok(Some(lock)))?;
    let Some(_watch) = lock else {
        return Err(RuntimeError::state(&config.name, &"running", "stopped"));
    };
    let status = ContainerStatus { watcher: Some(std::process::id()), ..ContainerStatus::default() };
    let mut watcher = Watcher { dir, config: &config, private, attached, ready, signals, status };
    let outcome = if verify_only { watcher.verify_only() } else { watcher.run() };
    if let Err(error) = &outcome {
        watcher.status.state = ContainerState::Exited;
        watcher.status.exit_code = Some(exit_code(error));
        watcher.status.finished = Some(now());
        watcher.status.error = Some(error_text(error));
        watcher.write_status();
    }
    let cleaned = clean_up(dir, &config, outcome.is_err());
    // The first error is the one to report.
    let outcome = outcome.and_then(|code| cleaned.map(|()| code));
    if let Err(error) = &outcome {
        reexec::reply(&mut watcher.ready, &reexec::format_error(error));
    }
    outcome
}

fn no_keyring(error: &io::Error) -> RuntimeError {
    RuntimeError::Host {
        what: format!("cannot create a session keyring for the container: {error}"),
        hint: "each container and each exec has one: sysctl kernel.keys.maxkeys=2000 allows more".to_owned(),
    }
}

/// Removes what a container leaves behind; all of it if it was started with `--rm`.
fn clean_up(dir: &ContainerDir, config: &ContainerConfig, failed: bool) -> Result<(), RuntimeError> {
    let group = if failed { Cgroup::of_container(&config.id).remove() } else { Ok(()) };
    if config.remove {
        // So that the run directory can be removed. It may not be mounted yet.
        let _ = nix::mount::umount2(&dir.run(), nix::mount::MntFlags::MNT_DETACH);
        if let Some(trash) = dir.discard()? {
            // Callers that wait for the container need not wait for the disk.
            sys::in_background(|| {
                let _ = remove_tree(&trash);
            });
        }
    }
    group
}

struct Watcher<'a> {
    dir: &'a ContainerDir,
    config: &'a ContainerConfig,
    private: &'a Private,
    attached: bool,
    ready: Option<File>,
    signals: Signals,
    status: ContainerStatus,
}

impl Watcher<'_> {
    /// Everything that its processes need.
    fn set_up(&mut self) -> Result<Network, RuntimeError> {
        sys::new_session_keyring().map_err(|error| no_keyring(&error))?;
        leave_mount_namespace()?;
        self.mount_run_directory()?;
        self.mount_root()?;
        // The caller's groups are not the container's; in a user namespace they cannot be dropped.
        let _ = nix::unistd::setgroups(&[]);
        volumes::create_sources(&self.config.mounts)?;
        self.fill_volumes()?;
        let network = Network::set_up(&self.dir.run(), &self.config.network)?;
        self.status.ports = network.ports();
        Ok(network)
    }

    fn fill_volumes(&mut self) -> Result<(), RuntimeError> {
        let mut signal = None;
        let mut interrupted = || {
            signal = signal.or_else(|| self.signals.stop_requested());
            signal.is_some()
        };
        let filled = fill::fill(&self.dir.rootfs(), &self.config.mounts, &mut interrupted);
        signal.map_or(filled, |signal| Err(RuntimeError::Interrupted(signal)))
    }

    /// Verifies the GPUs, and nothing else.
    fn verify_only(&mut self) -> Result<i32, RuntimeError> {
        let network = self.set_up()?;
        let (report, _) = self.verify_gpu(&network)?;
        reexec::reply(&mut self.ready, &serde_json::to_string(&report).unwrap_or_default());
        self.status.state = ContainerState::Exited;
        self.status.exit_code = Some(0);
        self.write_status();
        Ok(0)
    }

    fn run(&mut self) -> Result<i32, RuntimeError> {
        let mut network = self.set_up()?;
        let mut log = match self.config.log {
            LogConfig::Kept { max_bytes, max_files } => {
                Some(LogWriter::open(&self.dir.log(), LogLimits { max_bytes, max_files })?)
            }
            LogConfig::None => None,
        };
        if self.config.verify_gpu {
            let (_, text) = self.verify_gpu(&network)?;
            if self.attached {
                eprint!("{text}");
            }
            if let Some(log) = &mut log {
                log.write(Stream::Err, text.as_bytes()).when("cannot write the log")?;
            }
        }
        let mut backoff = Backoff::single_container();
        loop {
            let (ended, ran) = self.run_once(&mut network, log.as_mut())?;
            let stopped = ended.stop_requested || self.dir.is_stopping();
            let restart = !stopped && restarts(self.config.restart, ended.code, self.status.restarts);
            if restart {
                self.status.state = ContainerState::Restarting;
                self.write_status();
            }
            if !restart || self.wait(backoff.next_delay(ran)) {
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
        log: Option<&mut LogWriter>,
    ) -> Result<(ProcessEnd, Duration), RuntimeError> {
        let (streams, mut ends) = self.connect()?;
        let mut created = launch::create(self.dir, self.config, self.private, network, streams, None)?;
        if let Some(terminal) = created.terminal.take() {
            ends =
                StreamEnds::of_terminal(terminal, self.attached, self.attached && self.config.process.stdin);
        }
        let cgroup = Cgroup::of_container(&self.config.id);
        let signal = self.signals.stop_requested();
        if let Some(signal) = signal.filter(|_| self.status.started.is_none()) {
            kill_and_reap(created.pid);
            return Err(RuntimeError::Interrupted(signal));
        }
        if signal.is_some() || self.dir.is_stopping() {
            // Stopped before it started, or started again.
            cgroup.kill();
            let signals = &mut self.signals;
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
        if !self.config.remove {
            persist(self.dir);
        }
        let (dir, config, status) = (self.dir, self.config, &mut self.status);
        let mut restart_helpers = || {
            if network.restart_helpers() {
                status.ports = network.ports();
                status.error = network.error();
                write_status(dir, config, status);
            }
        };
        // One may have exited before this process looked at its signals.
        restart_helpers();
        let signals = &mut self.signals;
        let ended = supervise_process(created.pid, ends, signals, log, &mut restart_helpers)?;
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
    fn verify_gpu(&mut self, network: &Network) -> Result<(DeviceReport, String), RuntimeError> {
        let null = || File::open("/dev/null").map(OwnedFd::from).when("cannot open /dev/null");
        let (reader, writer) = io::pipe().when("cannot create a pipe")?;
        let writer = OwnedFd::from(writer);
        let second = rustix::io::dup(&writer).when("cannot create a pipe")?;
        let streams = Some([null()?, writer, second]);
        let config = ContainerConfig {
            process: ProcessConfig { tty: false, ..self.config.process.clone() },
            ..self.config.clone()
        };
        cudock_gpu_test::prepare();
        let mut private = self.private.clone();
        private.environment.extend(gpu::verify_environment());
        let mut created = launch::create(self.dir, &config, &private, network, streams, Some(gpu::verify))?;
        created.start()?;
        let output = read_output(&File::from(OwnedFd::from(reader)), created.pid)?;
        let signals = &mut self.signals;
        let ended = supervise_process(created.pid, StreamEnds::default(), signals, None, &mut || {})?;
        Cgroup::of_container(&self.config.id).remove()?;
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
            layers: &self.config.layers,
            upper: &self.dir.upper(),
            work: &self.dir.work(),
            target: &self.dir.rootfs(),
            user_namespace: crate::namespace::rootless::in_user_namespace(),
        }
        .mount()
    }

    fn connect(&self) -> Result<(Option<[OwnedFd; 3]>, StreamEnds), RuntimeError> {
        if self.config.process.tty {
            return Ok((None, StreamEnds::default()));
        }
        let (streams, ends) = streams::pipes(self.attached && self.config.process.stdin, self.attached)?;
        Ok((Some(streams), ends))
    }

    fn write_status(&self) {
        write_status(self.dir, self.config, &self.status);
    }

    /// Waits before the next start. Returns whether the container was stopped meanwhile.
    fn wait(&mut self, delay: Duration) -> bool {
        let step = Duration::from_millis(100);
        let mut waited = Duration::ZERO;
        while waited < delay {
            let part = step.min(delay.saturating_sub(waited));
            if self.signals.stop_requested_within(part) || self.dir.is_stopping() {
                return true;
            }
            waited += step;
        }
        false
    }
}

/// Writes the status. A full disk must neither end the container nor hide its exit code.
fn write_status(dir: &ContainerDir, config: &ContainerConfig, status: &ContainerStatus) {
    if let Err(error) = dir.set_status(status) {
        eprintln!("cudock: {}", error_text(&error));
    }
    if status.state == ContainerState::Exited && !config.remove {
        persist(dir);
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
        output.extend_from_slice(buffer.part(..count));
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
