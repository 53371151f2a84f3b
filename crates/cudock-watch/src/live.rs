//! A watch of the machine that it runs on.

use std::thread;
use std::time::{Duration, Instant};

use cudock_azure::Call;
use cudock_base::Timestamp;

use crate::activity::{ActivitySample, EndReason};
use crate::args::WatchdogArgs;
use crate::deletion::DeletionEnd;
use crate::sensors::Sensors;
use crate::watch::{WatchIo, watch};

struct LiveIo<S, L> {
    started: Instant,
    sensors: Sensors,
    send: S,
    log: L,
}

impl<S: FnMut(&Call) -> Option<u16>, L: FnMut(&str)> WatchIo for LiveIo<S, L> {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep_until(&mut self, time: Duration) {
        thread::sleep(time.saturating_sub(self.now()));
    }

    fn sample(&mut self) -> ActivitySample {
        self.sensors.sample()
    }

    fn send(&mut self, call: &Call) -> Option<u16> {
        (self.send)(call)
    }

    fn log(&mut self, line: &str) {
        (self.log)(line);
    }
}

/// Watches this machine and deletes its deployment. `send` returns the status of a response, and none without one.
pub fn run(
    args: &WatchdogArgs,
    send: impl FnMut(&Call) -> Option<u16>,
    log: impl FnMut(&str),
) -> (EndReason, DeletionEnd) {
    let sensors = Sensors::start(args.interval.0, args.port, args.output.clone());
    let limits = args.limits(Timestamp::now());
    watch(&limits, &args.calls(), &mut LiveIo { started: Instant::now(), sensors, send, log })
}
