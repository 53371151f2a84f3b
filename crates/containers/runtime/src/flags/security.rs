//! Capabilities and the values of `--security-opt`.

use std::path::Path;

use cudock_base::UsageError;
use cudock_base::files::read_text;
use cudock_base::text::error_chain;
use cudock_confine::CapabilityChange;

use crate::container::config::{DeviceConfig, Seccomp, Security};
use crate::error::RuntimeError;
use crate::start::capabilities::capabilities;
use crate::start::seccomp::check_seccomp;

#[derive(Debug, Default)]
pub struct SecurityFlags<'a> {
    pub cap_add: &'a [String],
    pub cap_drop: &'a [String],
    /// `--security-opt`
    pub options: &'a [String],
    pub read_only: bool,
}

/// Whether one of the values of `--cap-add` is this capability, or all.
pub fn adds_capability(given: &[String], name: &str) -> bool {
    given.iter().filter_map(|text| text.parse().ok()).any(|added| match added {
        CapabilityChange::All => true,
        CapabilityChange::One(capability) => capability.name() == name,
    })
}

/// The privileges of a container with these flags and devices.
pub fn security(flags: &SecurityFlags<'_>, devices: Vec<DeviceConfig>) -> Result<Security, RuntimeError> {
    let changes = |given: &[String]| -> Result<Vec<CapabilityChange>, UsageError> {
        given.iter().map(|text| text.parse().map_err(|error| UsageError::new(error_chain(&error)))).collect()
    };
    let mut security = Security {
        capabilities: capabilities(&changes(flags.cap_add)?, &changes(flags.cap_drop)?),
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
}
