//! Resource limits of the process: what was asked for, as far as this process may hand it down.

use nix::sys::resource::{Resource, getrlimit};

use crate::error::{OnSystem, RuntimeError};
use crate::plan::Limits;

const KNOWN: [(&str, Resource); 14] = [
    ("as", Resource::RLIMIT_AS),
    ("core", Resource::RLIMIT_CORE),
    ("cpu", Resource::RLIMIT_CPU),
    ("data", Resource::RLIMIT_DATA),
    ("fsize", Resource::RLIMIT_FSIZE),
    ("locks", Resource::RLIMIT_LOCKS),
    ("memlock", Resource::RLIMIT_MEMLOCK),
    ("msgqueue", Resource::RLIMIT_MSGQUEUE),
    ("nice", Resource::RLIMIT_NICE),
    ("nofile", Resource::RLIMIT_NOFILE),
    ("nproc", Resource::RLIMIT_NPROC),
    ("rtprio", Resource::RLIMIT_RTPRIO),
    ("sigpending", Resource::RLIMIT_SIGPENDING),
    ("stack", Resource::RLIMIT_STACK),
];

/// The names of limits.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

/// The limits asked for. Raising a hard limit takes a right that root in a container often has not, and a container that
/// does not start for it helps nobody: more than we have is cut down to what we have.
pub(crate) fn rlimits(limits: &Limits) -> Result<Vec<(String, u64, u64)>, RuntimeError> {
    let clamp = |asked: &crate::plan::Rlimit| {
        let known = KNOWN.iter().find(|(name, _)| *name == asked.name);
        let (name, resource) = known
            .ok_or_else(|| RuntimeError::Request(format!("there is no resource limit `{}`", asked.name)))?;
        let (_, most) = getrlimit(*resource).when("cannot read the resource limits")?;
        Ok(((*name).to_owned(), asked.soft.min(asked.hard).min(most), asked.hard.min(most)))
    };
    limits.rlimits.iter().map(clamp).collect()
}
