//! Stops, removes and waits for containers.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cgroup::{self, Cgroup};
use crate::container::config::ContainerConfig;
use crate::container::home::{ContainerDir, Home, remove_tree};
use crate::container::recover::{MONITOR, helper_process};
use crate::container::status::{ContainerState, ContainerStatus, now, process_began};
use crate::error::{OnError, RuntimeError};
use crate::namespace::rootless;
use crate::supervise::signal::{SignalNumber, send};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a watcher may take to end after its container was killed.
const WATCHER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct StopRequest {
    at: Instant,
    signaled: bool,
}

impl ContainerDir {
    /// The current status. If the watcher was killed, removes what it left behind and marks the container as lost.
    pub fn current(&self, config: &ContainerConfig) -> Result<ContainerStatus, RuntimeError> {
        let status = self.status()?;
        if !matches!(status.state, ContainerState::Running | ContainerState::Restarting)
            || self.is_watched()?
        {
            return Ok(status);
        }
        let Some(_watch) = self.watch()? else { return Ok(status) };
        // It may have ended regularly between the two checks.
        let mut status = self.status()?;
        if !matches!(status.state, ContainerState::Running | ContainerState::Restarting) {
            return Ok(status);
        }
        Cgroup::of_container(&config.id).remove()?;
        status.state = ContainerState::Lost;
        status.pid = None;
        status.pid_began = None;
        status.finished = Some(now());
        status.error = Some("the watcher was killed, and the container with it".to_owned());
        // On a full disk the next call does the same.
        let _ = self.set_status(&status);
        Ok(status)
    }

    /// Whether the container runs or will run by itself. False for one that was removed meanwhile.
    pub fn is_alive(&self, config: &ContainerConfig) -> Result<bool, RuntimeError> {
        let check = || Ok(self.current(config)?.state.is_alive() && self.is_watched()?);
        self.unless_removed(check(), || Ok(false))
    }

    /// Sends a signal to the container's first process.
    pub fn signal(
        &self,
        config: &ContainerConfig,
        signal: impl Into<SignalNumber>,
    ) -> Result<(), RuntimeError> {
        let status = self.current(config)?;
        let state = || RuntimeError::state(&config.name, &status.state, "running");
        let pid = status.pid.filter(|_| status.state == ContainerState::Running).ok_or_else(state)?;
        if process_began(pid) != status.pid_began {
            return Err(state());
        }
        send(pid, signal.into()).when("cannot send the signal")
    }

    /// Stops the container, and kills it after `limit`.
    pub fn stop(
        &self,
        config: &ContainerConfig,
        signal: impl Into<SignalNumber>,
        limit: Duration,
    ) -> Result<ContainerStatus, RuntimeError> {
        let signal = signal.into();
        let request = self.request_stop(config, signal)?;
        self.wait_stopped(config, signal, request, limit)
    }

    /// Sends the stop signal, unless the container has exited.
    pub fn request_stop(
        &self,
        config: &ContainerConfig,
        signal: SignalNumber,
    ) -> Result<StopRequest, RuntimeError> {
        let at = Instant::now();
        if !self.is_active(&self.current(config)?)? {
            return Ok(StopRequest { at, signaled: true });
        }
        self.mark_stopping()?;
        // A container that is being started, or waits for its restart, has no process to signal yet.
        Ok(StopRequest { at, signaled: self.signal(config, signal).is_ok() })
    }

    /// Waits for a container to stop, and kills it after `limit`.
    pub fn wait_stopped(
        &self,
        config: &ContainerConfig,
        signal: SignalNumber,
        request: StopRequest,
        limit: Duration,
    ) -> Result<ContainerStatus, RuntimeError> {
        let StopRequest { at, mut signaled } = request;
        let mut killed = false;
        loop {
            // With --rm it removes itself.
            let removed = || Ok((ContainerStatus::default(), false));
            let (status, is_active) = self.unless_removed(self.activity(config), removed)?;
            if !is_active {
                self.wait_unwatched()?;
                return Ok(status);
            }
            signaled = signaled || self.signal(config, signal).is_ok();
            if at.elapsed() >= limit && !killed {
                killed = self.kill(config);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills the container's first process, or all its processes if that is not known yet: its watcher notices and cleans up.
    /// Returns whether it was known.
    fn kill(&self, config: &ContainerConfig) -> bool {
        let known = self.signal(config, Signal::SIGKILL).is_ok();
        if !known {
            Cgroup::of_container(&config.id).kill();
        }
        known
    }

    /// The current status, and whether the container is active.
    fn activity(&self, config: &ContainerConfig) -> Result<(ContainerStatus, bool), RuntimeError> {
        let status = self.current(config)?;
        let is_active = self.is_active(&status)?;
        Ok((status, is_active))
    }

    /// Whether a container runs, will restart, or is being started.
    fn is_active(&self, status: &ContainerStatus) -> Result<bool, RuntimeError> {
        Ok(match status.state {
            ContainerState::Running | ContainerState::Restarting => true,
            ContainerState::Created => self.is_watched()?,
            ContainerState::Exited | ContainerState::Lost => false,
        })
    }

    /// Removes the container. With `force`, a running one is killed first. Succeeds if another
    /// process removes it meanwhile.
    pub fn delete(&self, config: &ContainerConfig, force: bool) -> Result<(), RuntimeError> {
        self.unless_removed(self.stop_and_remove(config, force), || Ok(()))
    }

    fn stop_and_remove(&self, config: &ContainerConfig, force: bool) -> Result<(), RuntimeError> {
        let (status, is_active) = self.activity(config)?;
        if !force {
            if is_active && self.is_watched()? {
                return Err(RuntimeError::state(&config.name, &status.state, "stopped"));
            }
            self.wait_unwatched()?;
        }
        self.kill_and_remove(&|| {
            self.kill(config);
        })
    }

    /// Removes a container whose config cannot be read. If it runs, it is killed first.
    pub fn delete_damaged(&self) -> Result<(), RuntimeError> {
        let kill = || Cgroup::of_container(&self.id()).kill();
        self.unless_removed(self.kill_and_remove(&kill), || Ok(()))
    }

    /// Kills the container until its watcher has ended, and removes it. A watcher that does not
    /// end, such as one whose output is not read, is killed, too; the kernel kills the rest of the
    /// container with it.
    fn kill_and_remove(&self, kill: &dyn Fn()) -> Result<(), RuntimeError> {
        let began = Instant::now();
        loop {
            // Locked, so that no other process starts it meanwhile.
            if let Some(_watch) = self.watch()? {
                return self.clear();
            }
            self.mark_stopping()?;
            kill();
            if began.elapsed() > WATCHER_TIMEOUT {
                let watcher = helper_process(MONITOR, self.path()).and_then(|pid| i32::try_from(pid).ok());
                watcher.map(|pid| send(pid, SignalNumber::from(Signal::SIGKILL)));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Removes a container started with `--rm` that no longer has a watcher, because its command
    /// was killed. Returns whether it was one.
    pub(crate) fn remove_abandoned(&self, config: &ContainerConfig) -> Result<bool, RuntimeError> {
        if !config.remove {
            return Ok(false);
        }
        let remove = || match self.watch()? {
            Some(_watch) => self.clear().map(|()| true),
            None => Ok(false),
        };
        self.unless_removed(remove(), || Ok(true))
    }

    /// Removes a container that the caller has locked.
    pub(crate) fn clear(&self) -> Result<(), RuntimeError> {
        Cgroup::of_container(&self.id()).remove()?;
        self.discard()?.map_or(Ok(()), |trash| remove_tree(&trash))
    }

    /// Waits until the container has exited and does not restart, and returns its exit code.
    pub fn wait(&self, config: &ContainerConfig) -> Result<i32, RuntimeError> {
        loop {
            // With --rm it removes itself, and its exit code with it.
            let removed = || {
                let state = ContainerState::Exited;
                Ok(ContainerStatus { state, ..ContainerStatus::default() })
            };
            let status = self.unless_removed(self.current(config), removed)?;
            match status.state {
                ContainerState::Exited => return Ok(status.exit_code.unwrap_or(0)),
                ContainerState::Lost => return Ok(137),
                ContainerState::Created if !self.is_watched()? => {
                    return Err(RuntimeError::state(&config.name, &"created but not started", "running"));
                }
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

impl Home {
    /// Removes cgroups of containers that no longer exist, and returns how many. Cgroups of containers in other data
    /// directories have processes in them or are new.
    pub fn prune_groups(&self) -> Result<usize, RuntimeError> {
        let mut known: HashSet<String> = self.all()?.into_iter().map(|(_, config)| config.id).collect();
        known.extend(self.damaged()?.iter().map(ContainerDir::id));
        Ok(cgroup::prune(&rootless::cgroup_parent(), &|id| known.contains(id)))
    }
}

/// Bytes that a container wrote on top of its image.
pub fn written(dir: &ContainerDir) -> Result<u64, RuntimeError> {
    use std::os::unix::fs::MetadataExt;
    let upper = dir.upper();
    upper.metadata().on("cannot read", &upper)?;
    let mut left = vec![upper];
    let mut sum = 0;
    while let Some(directory) = left.pop() {
        // Files that vanish meanwhile, or whose path is too long, are not counted.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            sum += about.blocks() * 512;
            if about.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(sum)
}
