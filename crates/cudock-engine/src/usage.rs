//! What a process takes of the machine.

use crate::Usage;

/// What a process takes now; nothing if it is gone.
pub(crate) fn of_process(process: u32) -> Usage {
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    Usage { resident: resident_pages(&statm).unwrap_or(0) * page_size() }
}

fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::{of_process, resident_pages};

    #[test]
    fn the_second_number_counts_resident_pages() {
        assert_eq!(resident_pages("2500 321 100 1 0 400 0\n"), Some(321));
        assert_eq!(resident_pages(""), None);
    }

    #[test]
    fn this_process_takes_memory_and_a_process_that_is_gone_takes_none() {
        assert!(of_process(std::process::id()).resident > 100_000);
        assert_eq!(of_process(u32::MAX).resident, 0);
    }
}
