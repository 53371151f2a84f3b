//! File descriptor limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for engines, logs, model files and certificates.
const RESERVE: u64 = 128;

/// Raises the soft limit to the hard one, and returns the first descriptor that a connection may not use. The system
/// always returns the lowest free descriptor, so a connection with a higher one shows that the reserve is being used,
/// however many descriptors models and engines hold.
pub(crate) fn raise_limit() -> i32 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If it cannot be raised, the reserve is part of the current limit.
    let _ = setrlimit(Resource::Nofile, raised);
    first_reserved(getrlimit(Resource::Nofile).current)
}

fn first_reserved(limit: Option<u64>) -> i32 {
    let limit = limit.unwrap_or(u64::MAX);
    i32::try_from(limit - RESERVE.min(limit / 4)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_reserved_at_any_limit() {
        for (limit, first) in
            [(Some(1024), 896), (Some(64), 48), (Some(4), 3), (Some(1 << 40), i32::MAX), (None, i32::MAX)]
        {
            assert_eq!(first_reserved(limit), first, "{limit:?}");
        }
    }
}
