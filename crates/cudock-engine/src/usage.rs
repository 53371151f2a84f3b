//! Memory usage of a process.

use crate::ProcessUsage;

/// Memory usage of a process; 0 if it has exited.
pub(crate) fn of_process(process: u32) -> ProcessUsage {
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    ProcessUsage { resident: resident_pages(&statm).unwrap_or(0) * page_size() }
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
    fn a_process_that_has_exited_uses_no_memory() {
        assert!(of_process(std::process::id()).resident > 100_000);
        assert_eq!(of_process(u32::MAX).resident, 0);
    }
}
