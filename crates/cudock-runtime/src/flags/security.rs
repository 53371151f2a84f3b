//! Capabilities and the values of `--security-opt`.

use std::path::Path;

use cudock_base::UsageError;
use cudock_base::files::read_text;
use cudock_base::text::error_chain;
use cudock_confine::{CapabilityChange, defaults};

use crate::error::RuntimeError;
use crate::launch::check_seccomp;
use crate::plan::{DevicePlan, Seccomp, Security};

/// The flags that say what a container may do.
#[derive(Debug)]
pub struct SecurityFlags<'a> {
    /// `--cap-add`
    pub cap_add: &'a [String],
    /// `--cap-drop`
    pub cap_drop: &'a [String],
    /// `--security-opt`
    pub options: &'a [String],
    /// `--read-only`
    pub read_only: bool,
}

/// What a container with these flags and devices may do.
pub fn security(flags: &SecurityFlags<'_>, devices: Vec<DevicePlan>) -> Result<Security, RuntimeError> {
    let changes = |given: &[String]| -> Result<Vec<CapabilityChange>, UsageError> {
        given.iter().map(|text| text.parse().map_err(|error| UsageError::new(error_chain(&error)))).collect()
    };
    let added = changes(flags.cap_add)?;
    let mut capabilities = defaults::capabilities(&added, &changes(flags.cap_drop)?);
    if added.contains(&CapabilityChange::All) {
        // Only those that this process has: root in a container often lacks some.
        let permitted = permitted_capabilities();
        capabilities.retain(|capability| permitted & (1 << capability.number()) != 0);
    }
    let mut security = Security {
        capabilities: capabilities.iter().map(|capability| capability.name().to_owned()).collect(),
        no_new_privileges: true,
        seccomp: Seccomp::Default,
        read_only: flags.read_only,
        devices,
    };
    for option in flags.options {
        match option.split_once(['=', ':']).unwrap_or((option, "true")) {
            ("no-new-privileges", "true") => security.no_new_privileges = true,
            ("no-new-privileges", "false") => security.no_new_privileges = false,
            // Neither labels nor AppArmor profiles are ever applied.
            ("label", "disable") | ("apparmor", "unconfined") => {}
            ("seccomp", "builtin") => security.seccomp = Seccomp::Default,
            ("seccomp", "unconfined") => security.seccomp = Seccomp::Unconfined,
            ("seccomp", file) => security.seccomp = Seccomp::Profile(read_text(Path::new(file))?),
            _ => {
                let hint = "no-new-privileges[=false], seccomp=unconfined, seccomp=PROFILE.json, label=disable, \
                            apparmor=unconfined";
                return Err(UsageError::new(format!("--security-opt {option} is not supported"))
                    .hint(hint)
                    .into());
            }
        }
    }
    // Checked before anything is created, so that a bad profile is a usage error.
    check_seccomp(&security)?;
    Ok(security)
}

/// The permitted capabilities of this process, one bit each.
fn permitted_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    parse_permitted(&status)
}

fn parse_permitted(status: &str) -> u64 {
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: &[&str]) -> Result<Security, RuntimeError> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let flags = SecurityFlags { cap_add: &[], cap_drop: &[], options: &options, read_only: false };
        security(&flags, Vec::new())
    }

    #[test]
    fn options_are_read_as_docker_reads_them() {
        assert!(with(&[]).unwrap().no_new_privileges);
        // The kernel takes a filter only from a process that cannot gain privileges.
        assert!(with(&["no-new-privileges=false"]).is_err());
        let both = with(&["no-new-privileges=false", "seccomp=unconfined"]).unwrap();
        assert!(!both.no_new_privileges);
        assert_eq!(with(&["seccomp=unconfined"]).unwrap().seccomp, Seccomp::Unconfined);
        assert!(with(&["label=disable", "apparmor=unconfined"]).is_ok());
        assert!(with(&["systempaths=unconfined"]).is_err());
        assert!(with(&["seccomp=/nowhere/profile.json"]).is_err());
    }

    #[test]
    fn permitted_capabilities_are_those_the_kernel_reports() {
        assert_eq!(parse_permitted("Name:\tcudock\nCapPrm:\t00000000a80425fb\n"), 0xa804_25fb);
        assert_eq!(parse_permitted("Name:\tcudock\n"), u64::MAX);
    }
}
