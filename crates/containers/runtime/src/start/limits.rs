//! Resource limits of processes.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::container::config::{Limits, Rlimit};
use crate::error::{OnError, RuntimeError};

const LIMITS: [(&str, Resource); 14] = [
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

pub fn names() -> impl Iterator<Item = &'static str> {
    LIMITS.iter().map(|(name, _)| *name)
}

/// The requested limits. Fails if this process may not set them.
///
/// Raising a hard limit takes `CAP_SYS_RESOURCE` on the host, which root in a container or in a user namespace does not have.
/// A limit that is silently lower than requested would be noticed only by the program that needs it.
pub(crate) fn rlimits(limits: &Limits) -> Result<Vec<Rlimit>, RuntimeError> {
    let allowed = |limit: &Rlimit| {
        let (name, resource) = find(&limit.name)?;
        let (soft, max) = getrlimit(resource).when("cannot read the resource limits")?;
        // Raising its own limit is the only way to find out whether this process may.
        if limit.hard > max && setrlimit(resource, soft, limit.hard).is_err() {
            return Err(too_high(name, limit.hard, max));
        }
        Ok(Rlimit { soft: limit.soft.min(limit.hard), ..limit.clone() })
    };
    limits.rlimits.iter().map(allowed).collect()
}

pub(crate) fn apply(rlimits: &[Rlimit]) -> Result<(), RuntimeError> {
    for Rlimit { name, soft, hard } in rlimits {
        setrlimit(find(name)?.1, *soft, *hard).when("cannot set the resource limits")?;
    }
    Ok(())
}

fn find(name: &str) -> Result<(&'static str, Resource), RuntimeError> {
    let limit = LIMITS.iter().find(|(known, _)| *known == name);
    limit.copied().ok_or_else(|| RuntimeError::Request(format!("unknown resource limit `{name}`")))
}

fn too_high(name: &str, requested: u64, max: u64) -> RuntimeError {
    let shown = |limit: u64| if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() };
    let fits = if max == u64::MAX { "-1".to_owned() } else { max.to_string() };
    RuntimeError::Host {
        what: format!(
            "cannot raise the hard limit of {name} to {}: this process may have at most {}",
            shown(requested),
            shown(max)
        ),
        hint: format!(
            "run with CAP_SYS_RESOURCE, raise the limit of the service or session that starts cudock \
             (systemd: Limit{}=infinity), or ask for --ulimit {name}={fits}",
            name.to_uppercase()
        ),
    }
}
