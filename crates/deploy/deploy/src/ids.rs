//! Unique ids.

use std::hash::{BuildHasher, RandomState};

use cudock_base::Timestamp;

/// 12 random hexadecimal digits: the id of a run or of a state directory.
pub(crate) fn new_id() -> String {
    // The keys are random numbers of the operating system.
    let random = RandomState::new().hash_one(Timestamp::now());
    format!("{:012x}", random & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_unique_and_hexadecimal() {
        let ids: std::collections::BTreeSet<String> = (0..1000).map(|_| new_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| cudock_azure::is_run_id(id)));
    }
}
