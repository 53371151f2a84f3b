//! Sizes that the kernel reports in `/proc`.

/// A size in a file of `/proc` whose lines have a name and a number of kilobytes.
pub(crate) fn status_bytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_resident_memory() {
        assert!(status_bytes("/proc/self/status", "VmRSS:").is_some_and(|bytes| bytes > 1 << 16));
        assert_eq!(status_bytes("/proc/self/status", "VmNothing:"), None);
    }
}
