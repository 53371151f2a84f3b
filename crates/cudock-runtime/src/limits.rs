//! Resource limits of the process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

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

/// The limits asked for: name, soft, hard. Fails where this process may not hand them down.
///
/// Raising a hard limit takes `CAP_SYS_RESOURCE` on this machine, which root in a container or in a user namespace does
/// not have. A limit that is silently lower than asked for would be found out only by the program that needs it.
pub(crate) fn rlimits(limits: &Limits) -> Result<Vec<(String, u64, u64)>, RuntimeError> {
    let allowed = |asked: &crate::plan::Rlimit| {
        let (name, resource) = known(&asked.name)?;
        let (soft, most) = getrlimit(resource).when("cannot read the resource limits")?;
        // This process raises its own: there is no other way to know whether it may.
        if asked.hard > most && setrlimit(resource, soft, asked.hard).is_err() {
            return Err(too_high(name, asked.hard, most));
        }
        Ok((name.to_owned(), asked.soft.min(asked.hard), asked.hard))
    };
    limits.rlimits.iter().map(allowed).collect()
}

/// Sets limits of this process.
pub(crate) fn apply(rlimits: &[(String, u64, u64)]) -> Result<(), RuntimeError> {
    for (name, soft, hard) in rlimits {
        setrlimit(known(name)?.1, *soft, *hard).when("cannot set the resource limits")?;
    }
    Ok(())
}

fn known(asked: &str) -> Result<(&'static str, Resource), RuntimeError> {
    let known = KNOWN.iter().find(|(name, _)| *name == asked);
    known.copied().ok_or_else(|| RuntimeError::Request(format!("there is no resource limit `{asked}`")))
}

fn too_high(name: &str, asked: u64, most: u64) -> RuntimeError {
    let shown = |limit: u64| if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() };
    let fits = if most == u64::MAX { "-1".to_owned() } else { most.to_string() };
    RuntimeError::Host {
        what: format!(
            "cannot raise the hard limit of {name} to {}: this process may have at most {}",
            shown(asked),
            shown(most)
        ),
        hint: format!(
            "run with CAP_SYS_RESOURCE, raise the limit of the service or session that starts cudock \
             (systemd: Limit{}=infinity), or ask for --ulimit {name}={fits}",
            name.to_uppercase()
        ),
    }
}
