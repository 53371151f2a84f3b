//! The end of containers: asked for, forced, or found to have come.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cgroup::Cgroup;
use crate::error::{OnFile, RuntimeError};
use crate::home::{ContainerDir, Home};
use crate::launch::cgroup_path;
use crate::plan::Plan;
use crate::signal::{SignalNumber, send};
use crate::status::{State, Status, now, process_began};

/// How often we look whether a container has ended.
const LOOK: Duration = Duration::from_millis(5);

impl ContainerDir {
    /// How the container is now. Where its watcher died, what was left behind is cleared away first, and written down.
    pub fn current(&self, plan: &Plan) -> Result<Status, RuntimeError> {
        let status = self.status()?;
        if !matches!(status.state, State::Running | State::Restarting) {
            return Ok(status);
        }
        let Some(_watch) = self.watch()? else { return Ok(status) };
        // It may have ended in order between the two looks.
        let mut status = self.status()?;
        if !matches!(status.state, State::Running | State::Restarting) {
            return Ok(status);
        }
        Cgroup::at(&cgroup_path(&plan.id)).remove()?;
        status.state = State::Lost;
        status.pid = None;
        status.pid_began = None;
        status.finished = Some(now());
        status.error = Some("its watcher was killed, and it ended with it".to_owned());
        self.set_status(&status)?;
        Ok(status)
    }

    /// Whether the container goes on without anyone doing anything. One that was removed meanwhile does not.
    pub fn is_alive(&self, plan: &Plan) -> Result<bool, RuntimeError> {
        let look = || Ok(self.current(plan)?.state.is_alive() && self.is_watched()?);
        match look() {
            Err(RuntimeError::File { .. }) if !self.plan_file().exists() => Ok(false),
            other => other,
        }
    }

    /// Sends a signal to the container's first process.
    pub fn signal(&self, plan: &Plan, signal: impl Into<SignalNumber>) -> Result<(), RuntimeError> {
        let status = self.current(plan)?;
        let state = || RuntimeError::State {
            name: plan.name.clone(),
            is: status.state.word().to_owned(),
            needed: "running",
        };
        let pid = status.pid.filter(|_| status.state == State::Running).ok_or_else(state)?;
        if process_began(pid) != status.pid_began {
            return Err(state());
        }
        send(pid, signal.into()).map_err(|error| RuntimeError::system("cannot send the signal", error))
    }

    /// Asks the container to end, and ends it where it does not within `limit`.
    pub fn stop(
        &self,
        plan: &Plan,
        signal: impl Into<SignalNumber>,
        limit: Duration,
    ) -> Result<Status, RuntimeError> {
        let status = self.current(plan)?;
        if !matches!(status.state, State::Running | State::Restarting) {
            return Ok(status);
        }
        self.ask_to_stop()?;
        // One that waits to be started again has no process to tell.
        let _ = self.signal(plan, signal);
        let asked = Instant::now();
        let mut forced = false;
        loop {
            let status = self.current(plan)?;
            if !matches!(status.state, State::Running | State::Restarting) || !self.path().exists() {
                self.wait_unwatched()?;
                return Ok(status);
            }
            if asked.elapsed() >= limit && !forced {
                forced = true;
                let _ = self.signal(plan, Signal::SIGKILL);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Removes the container and everything of it. One that runs is ended first where `force` says so.
    pub fn delete(&self, plan: &Plan, force: bool) -> Result<(), RuntimeError> {
        let status = self.current(plan)?;
        let watched = self.is_watched()?;
        if watched && !force && matches!(status.state, State::Running | State::Restarting | State::Created) {
            return Err(RuntimeError::State {
                name: plan.name.clone(),
                is: status.state.word().to_owned(),
                needed: "stopped",
            });
        }
        if watched {
            self.stop(plan, Signal::SIGKILL, Duration::ZERO)?;
        }
        Cgroup::at(&cgroup_path(&plan.id)).remove()?;
        self.remove()
    }

    /// Waits until the container has ended for good. What it ended with.
    pub fn wait(&self, plan: &Plan) -> Result<i32, RuntimeError> {
        loop {
            let status = match self.current(plan) {
                Ok(status) => status,
                Err(RuntimeError::File { .. }) if !self.plan_file().exists() => return Ok(0),
                Err(error) => return Err(error),
            };
            match status.state {
                State::Exited => return Ok(status.exit_code.unwrap_or(0)),
                State::Lost => return Ok(137),
                State::Created if !self.is_watched()? => {
                    return Err(RuntimeError::State {
                        name: plan.name.clone(),
                        is: "created, and nobody starts it".to_owned(),
                        needed: "running",
                    });
                }
                _ => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Home {
    /// Removes what killed processes left: control groups whose container is gone, folders that were never made whole.
    pub fn clear_leftovers(&self) -> Result<(), RuntimeError> {
        self.sweep()?;
        for (dir, plan) in self.all()? {
            dir.current(&plan)?;
        }
        Ok(())
    }
}

/// Bytes that a container wrote above its image.
pub fn written(dir: &ContainerDir) -> Result<u64, RuntimeError> {
    fn below(folder: &std::path::Path) -> std::io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        let mut sum = 0;
        for entry in fs::read_dir(folder)?.flatten() {
            let about = entry.metadata()?;
            sum += about.blocks() * 512;
            if about.is_dir() {
                sum += below(&entry.path())?;
            }
        }
        Ok(sum)
    }
    below(&dir.upper()).on("cannot read", &dir.upper())
}
