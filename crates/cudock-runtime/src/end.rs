//! The end of containers: asked for, forced, or found to have come.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cgroup::{self, Cgroup};
use crate::error::{OnFile, RuntimeError};
use crate::home::{ContainerDir, Home};
use crate::launch::cgroup_path;
use crate::plan::Plan;
use crate::rootless;
use crate::signal::{SignalNumber, send};
use crate::status::{State, Status, now, process_began};

/// How often we look whether a container has ended.
const LOOK: Duration = Duration::from_millis(5);

/// That a container was asked to end.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    at: Instant,
    /// Whether its process was told.
    told: bool,
}

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
        // On a full disk the next look finds the same.
        let _ = self.set_status(&status);
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
        let signal = signal.into();
        let asked = self.ask(plan, signal)?;
        self.wait_stopped(plan, signal, asked, limit)
    }

    /// Asks the container to end; when that was, and whether it was told. One that has ended is not told.
    pub fn ask(&self, plan: &Plan, signal: SignalNumber) -> Result<Asked, RuntimeError> {
        let at = Instant::now();
        if !self.goes_on(&self.current(plan)?)? {
            return Ok(Asked { at, told: true });
        }
        self.ask_to_stop()?;
        // One that is being started, or waits to be started again, has no process to tell.
        Ok(Asked { at, told: self.signal(plan, signal).is_ok() })
    }

    /// Waits for a container that was asked to end, and ends it after `limit`.
    pub fn wait_stopped(
        &self,
        plan: &Plan,
        signal: SignalNumber,
        asked: Asked,
        limit: Duration,
    ) -> Result<Status, RuntimeError> {
        let Asked { at, mut told } = asked;
        let mut forced = false;
        loop {
            let status = match self.current(plan) {
                // It removes itself at its end.
                Err(_) if !self.plan_file().exists() => return Ok(Status::default()),
                other => other?,
            };
            if !self.goes_on(&status)? || !self.path().exists() {
                self.wait_unwatched()?;
                return Ok(status);
            }
            told = told || self.signal(plan, signal).is_ok();
            if at.elapsed() >= limit && !forced {
                forced = self.signal(plan, Signal::SIGKILL).is_ok();
                if status.state == State::Created {
                    // Its watcher finds that out, and clears away.
                    Cgroup::at(&cgroup_path(&plan.id)).kill();
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether a container runs, will run again, or is being started.
    fn goes_on(&self, status: &Status) -> Result<bool, RuntimeError> {
        Ok(match status.state {
            State::Running | State::Restarting => true,
            State::Created => self.is_watched()?,
            State::Exited | State::Lost => false,
        })
    }

    /// Removes the container and everything of it. One that runs is ended first where `force` says so.
    pub fn delete(&self, plan: &Plan, force: bool) -> Result<(), RuntimeError> {
        let status = self.current(plan)?;
        if !force && self.goes_on(&status)? && self.is_watched()? {
            return Err(RuntimeError::State {
                name: plan.name.clone(),
                is: status.state.word().to_owned(),
                needed: "stopped",
            });
        }
        self.stop(plan, Signal::SIGKILL, Duration::ZERO)?;
        // Whoever still watches it may be about to make control groups, or to remove them.
        self.wait_unwatched()?;
        self.clear()
    }

    /// Removes everything of a container that nobody watches, and of one whose plan cannot be read.
    pub fn clear(&self) -> Result<(), RuntimeError> {
        Cgroup::at(&cgroup_path(&self.id())).remove()?;
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
    /// Removes control groups of containers that are gone, as a killed process may leave them; how many. Those of
    /// containers that are kept elsewhere have processes in them, or are just being made.
    pub fn prune_groups(&self) -> Result<usize, RuntimeError> {
        let mut known: HashSet<String> = self.all()?.into_iter().map(|(_, plan)| plan.id).collect();
        known.extend(self.damaged()?.iter().map(ContainerDir::id));
        Ok(cgroup::prune(&rootless::cgroup_parent(), &|id| known.contains(id)))
    }
}

/// Bytes that a container wrote above its image.
pub fn written(dir: &ContainerDir) -> Result<u64, RuntimeError> {
    use std::os::unix::fs::MetadataExt;
    let upper = dir.upper();
    upper.metadata().on("cannot read", &upper)?;
    let mut left = vec![upper];
    let mut sum = 0;
    while let Some(directory) = left.pop() {
        // What goes meanwhile, or lies deeper than a path can say, is not counted.
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
