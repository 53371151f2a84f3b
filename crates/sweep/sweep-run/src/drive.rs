//! The loop of a running sweep: what the journal decides is recorded, then carried out by a [`Runner`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudock_base::Timestamp;
use cudock_sweep::{Event, JournalError, MachineSlots, Sweep, SweepAction, SweepEnd, SweepLog, TrialId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::layout::SweepDir;
use crate::requests;
use crate::runner::{AttemptToStart, LiveAttempt, Runner, RunnerEvent};

/// Interval of checks for interrupts and for requests of other commands.
const TICK: Duration = Duration::from_millis(100);

/// The longest time until an event is on disk: what a power cut may take.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Sets the flag when the user ends the command or closes the terminal. A second signal ends it at once: workers then end
/// their trials by themselves, and the journal of deployments has what `cudock gc` needs.
pub fn watch_interrupts() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// Shows a running sweep.
pub trait SweepObserver {
    /// The sweep has changed, and an attempt of each of these trials has ended.
    fn recorded(&self, sweep: &Sweep, ended: &[TrialId], now: Timestamp);
    /// Time has passed.
    fn tick(&self, sweep: &Sweep, now: Timestamp);
    fn warning(&self, text: &str);
}

/// Why a sweep does not run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveEnd {
    Finished(SweepEnd),
    /// Nothing is running, and nothing is started until the sweep is resumed.
    Paused,
    /// The user interrupted the command. The same command resumes the sweep.
    Interrupted,
}

/// A failure of the journal or of the runner.
#[derive(Debug)]
pub enum DriveError<E> {
    Journal(JournalError),
    Runner(E),
}

impl<E> From<JournalError> for DriveError<E> {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// A sweep that runs.
pub struct SweepDriver<'a, R: Runner> {
    log: SweepLog,
    runner: R,
    directory: &'a SweepDir,
    observer: &'a dyn SweepObserver,
    interrupted: &'a AtomicBool,
    checked: Instant,
}

impl<'a, R: Runner> SweepDriver<'a, R> {
    pub fn new(
        mut log: SweepLog,
        runner: R,
        directory: &'a SweepDir,
        observer: &'a dyn SweepObserver,
        interrupted: &'a AtomicBool,
    ) -> Self {
        log.sync_intents(R::OUTLIVES_MACHINE);
        Self { log, runner, directory, observer, interrupted, checked: Instant::now() }
    }

    pub fn sweep(&self) -> &Sweep {
        self.log.sweep()
    }

    /// The time, which does not go back.
    fn now(&self) -> Timestamp {
        self.runner.now().max(self.log.sweep().last_event())
    }

    /// Finds out what became of the attempts of an earlier process, and continues with `resumed`.
    pub fn resume(&mut self, resumed: Event) -> Result<(), DriveError<R::Error>> {
        self.recover()?;
        self.record(vec![resumed])?;
        Ok(())
    }

    /// Sets the sizes that trials choose from.
    pub fn set_machines(&mut self, machines: Vec<MachineSlots>) -> Result<(), DriveError<R::Error>> {
        self.record(vec![Event::MachinesPriced { machines }]).map(drop)
    }

    fn recover(&mut self) -> Result<(), DriveError<R::Error>> {
        let live = self.log.sweep().live().map(|(trial, attempt)| LiveAttempt {
            trial: trial.id,
            attempt: attempt.number,
            starting: attempt.starting,
            handle: attempt.handle.clone(),
        });
        let live: Vec<LiveAttempt> = live.collect();
        let events = self.runner.recover(&live).map_err(DriveError::Runner)?;
        self.record_all(events)
    }

    /// Runs trials until the sweep is finished, paused or interrupted.
    pub fn run(&mut self) -> Result<DriveEnd, DriveError<R::Error>> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                self.runner.shut_down().map_err(DriveError::Runner)?;
                self.recover()?;
                return Ok(DriveEnd::Interrupted);
            }
            if self.checked.elapsed() >= TICK {
                self.checked = Instant::now();
                self.answer_requests()?;
            }
            self.log.sync_older_than(SYNC_INTERVAL)?;
            if let Some(end) = self.act()? {
                self.runner.shut_down().map_err(DriveError::Runner)?;
                return Ok(end);
            }
            let now = self.now();
            let wake = self.log.sweep().wake_at(now).map_or(TICK, |wake| wake.since(now));
            let events = self.runner.poll(wake.min(TICK)).map_err(DriveError::Runner)?;
            if events.is_empty() {
                self.observer.tick(self.log.sweep(), now);
            } else {
                self.record_all(events)?;
            }
        }
    }

    /// Records what is to be done next, all of it at once, and does it.
    fn act(&mut self) -> Result<Option<DriveEnd>, DriveError<R::Error>> {
        loop {
            let actions = self.log.sweep().next(self.now());
            if actions.is_empty() {
                let sweep = self.log.sweep();
                return Ok(match sweep.end() {
                    Some(end) => Some(DriveEnd::Finished(end)),
                    None => (sweep.is_paused() && sweep.live().next().is_none()).then_some(DriveEnd::Paused),
                });
            }
            let starting = self.record(actions.iter().flat_map(SweepAction::events).collect())?;
            for action in &actions {
                match action {
                    SweepAction::Start { trial, attempt, slot, parameters, .. } => {
                        let (trial, attempt, slot) = (*trial, *attempt, *slot);
                        self.runner.start(&AttemptToStart { trial, attempt, starting, slot, parameters });
                    }
                    SweepAction::Stop { trial, attempt, .. } => self.runner.stop(*trial, *attempt),
                    SweepAction::Propose { .. } | SweepAction::Finish { .. } => {}
                }
            }
        }
    }

    fn answer_requests(&mut self) -> Result<(), DriveError<R::Error>> {
        for (path, request) in requests::waiting(self.directory) {
            match request.event(self.log.sweep()) {
                Ok(Some(event)) => {
                    let stopped = match event {
                        Event::StopDecided { trial, attempt, .. } => Some((trial, attempt)),
                        _ => None,
                    };
                    self.record(vec![event])?;
                    if let Some((trial, attempt)) = stopped {
                        self.runner.stop(trial, attempt);
                    }
                }
                Ok(None) => {}
                Err(error) => self.observer.warning(&error.to_string()),
            }
            // If it stays, it is applied again, which changes nothing.
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    fn record_all(&mut self, events: Vec<RunnerEvent>) -> Result<(), DriveError<R::Error>> {
        let mut recorded = Vec::with_capacity(events.len());
        for event in events {
            match event {
                RunnerEvent::Event(event) => recorded.push(event),
                RunnerEvent::Warning(text) => self.observer.warning(&text),
            }
        }
        self.record(recorded).map(drop)
    }

    /// Records events; returns their time.
    fn record(&mut self, events: Vec<Event>) -> Result<Timestamp, DriveError<R::Error>> {
        let now = self.now();
        if events.is_empty() {
            return Ok(now);
        }
        let ended = events.iter().filter_map(|event| match event {
            Event::Ended { trial, .. } => Some(*trial),
            _ => None,
        });
        let ended: Vec<TrialId> = ended.collect();
        self.log.record(now, events)?;
        self.observer.recorded(self.log.sweep(), &ended, now);
        Ok(now)
    }
}
