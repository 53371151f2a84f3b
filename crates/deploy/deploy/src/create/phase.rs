//! The phases of a deployment: how long each may last, and how far one is.

use std::time::Duration;

use cudock_azure::Phase;
use cudock_base::Usd;

/// How long each phase may last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseLimits {
    pub pull: Duration,
    /// Every other phase before the work.
    pub start: Duration,
}

impl Default for PhaseLimits {
    /// A pull of 25 minutes and VM starts of 10 with the driver have been seen.
    fn default() -> Self {
        Self { pull: Duration::from_secs(40 * 60), start: Duration::from_secs(25 * 60) }
    }
}

impl PhaseLimits {
    /// The work itself is ended by the time to live, which the cloud enforces.
    pub(super) fn of(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Work => None,
            Phase::Pull => Some(self.pull),
            Phase::Quota | Phase::Create | Phase::Start | Phase::Gpu | Phase::Ready | Phase::Delete => {
                Some(self.start)
            }
        }
    }
}

/// The current activity of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseProgress<'a> {
    pub phase: Phase,
    /// Time in this phase.
    pub elapsed: Duration,
    /// Its cost so far; none before billing began.
    pub billed: Option<Usd>,
    /// The service's own words, or the step.
    pub detail: Option<&'a str>,
}

impl<'a> PhaseProgress<'a> {
    pub(crate) fn beginning(phase: Phase, detail: Option<&'a str>) -> Self {
        Self { phase, elapsed: Duration::ZERO, billed: None, detail }
    }
}
