//! The capabilities of a container.

use cudock_confine::{CapabilityChange, defaults};

/// The names of a container's capabilities. `ALL` means those of this process, which may be root in a container without
/// some of them and cannot pass on what it does not have.
pub fn capabilities(add: &[CapabilityChange], drop: &[CapabilityChange]) -> Vec<String> {
    granted(add, drop, own())
}

fn granted(add: &[CapabilityChange], drop: &[CapabilityChange], own: u64) -> Vec<String> {
    let mut capabilities = defaults::capabilities(add, drop);
    if add.contains(&CapabilityChange::All) {
        capabilities.retain(|capability| own & (1 << capability.number()) != 0);
    }
    capabilities.iter().map(|capability| capability.name().to_owned()).collect()
}

/// The permitted capabilities of this process, one bit each.
fn own() -> u64 {
    parse_permitted(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn parse_permitted(status: &str) -> u64 {
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(names: &[&str]) -> Vec<CapabilityChange> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn permitted_capabilities_are_those_the_kernel_reports() {
        assert_eq!(parse_permitted("Name:\tcudock\nCapPrm:\t00000000a80425fb\n"), 0xa804_25fb);
        assert_eq!(parse_permitted("Name:\tcudock\n"), u64::MAX);
    }

    #[test]
    fn all_is_what_the_caller_has() {
        // CHOWN and DAC_OVERRIDE.
        assert_eq!(granted(&changes(&["ALL"]), &[], 0b11), ["CAP_CHOWN", "CAP_DAC_OVERRIDE"]);
        assert_eq!(granted(&changes(&["ALL"]), &changes(&["CHOWN"]), 0b11), ["CAP_DAC_OVERRIDE"]);
    }

    #[test]
    fn without_all_the_callers_capabilities_do_not_matter() {
        assert_eq!(granted(&changes(&["SYS_ADMIN"]), &changes(&["ALL"]), 0), ["CAP_SYS_ADMIN"]);
        assert_eq!(granted(&[], &[], 0).len(), 14);
    }
}
