//! Waits for sockets and timers.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::LoadError;

/// Shorter waits are spent polling: setting the timer takes about as long.
const SPIN: Duration = Duration::from_micros(5);
const TIMER: u64 = u64::MAX;
const MAX_EVENTS: usize = 512;

/// An epoll instance with a timer.
pub(crate) struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<Event>,
    armed: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    /// The server has closed, or the connection failed: nothing more will arrive.
    pub(crate) ended: bool,
}

impl Poll {
    pub(crate) fn new() -> Result<Self, LoadError> {
        let fault = LoadError::machine("wait for sockets");
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(&fault)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(&fault)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)
            .map_err(&fault)?;
        Ok(Self { epoll, timer, events: Vec::with_capacity(MAX_EVENTS), armed: None })
    }

    /// Watches a socket until it is closed. Edge-triggered: read until nothing is left.
    pub(crate) fn watch(&self, socket: impl AsFd, token: u64) -> Result<(), LoadError> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
            .map_err(LoadError::machine("watch a socket"))
    }

    /// Waits for an event or until the given time.
    pub(crate) fn wait(&mut self, now: Instant, until: Instant) -> Result<(), LoadError> {
        let left = until.saturating_duration_since(now);
        let timeout = if left < SPIN {
            Some(Timespec { tv_sec: 0, tv_nsec: 0 })
        } else {
            self.arm(until, left)?;
            None
        };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(LoadError::machine("wait for sockets")(errno)),
        }
    }

    fn arm(&mut self, until: Instant, left: Duration) -> Result<(), LoadError> {
        if self.armed == Some(until) {
            return Ok(());
        }
        let value = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
            .map_err(LoadError::machine("set a timer"))?;
        self.armed = Some(until);
        Ok(())
    }

    pub(crate) fn event(&mut self, number: usize) -> Option<Ready> {
        let Event { flags, data } = *self.events.get(number)?;
        let token = data.u64();
        if token == TIMER {
            self.armed = None;
        }
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        Some(Ready { token, ended })
    }
}
