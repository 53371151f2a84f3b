//! File descriptors: as many as may be had, and some that connections never get.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept back for engines, logs, model files and certificates.
const RESERVE: u64 = 128;

/// Raises the soft limit to the hard one, and gives the number of the first descriptor that a connection may not have.
/// The system always hands out the lowest free number, so a connection that got a higher one shows that the reserve is
/// being used, however many descriptors models and engines hold.
pub(crate) fn raise_limit() -> i32 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it may not be raised, the reserve is kept of what there is.
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
    fn some_descriptors_are_kept_back_whatever_the_limit() {
        for (limit, first) in
            [(Some(1024), 896), (Some(64), 48), (Some(4), 3), (Some(1 << 40), i32::MAX), (None, i32::MAX)]
        {
            assert_eq!(first_reserved(limit), first, "{limit:?}");
        }
    }
}
