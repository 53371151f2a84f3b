//! Errors of this crate.

use std::io;
use std::path::PathBuf;

/// Why a filter could not be built or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// Not the name of a capability.
    #[error("unknown capability `{name}`{}", suggestion.map(|name| format!(": did you mean `{name}`?")).unwrap_or_default())]
    UnknownCapability {
        name: String,
        /// The capability with the most similar name, if one is similar.
        suggestion: Option<&'static str>,
    },

    /// The seccomp profile is larger than any real one.
    #[error("the seccomp profile is larger than {limit} bytes")]
    ProfileSize { limit: usize },

    /// The seccomp profile is not JSON in docker's format.
    #[error("the seccomp profile is not in docker's format")]
    ProfileFormat(#[source] serde_json::Error),

    /// The seccomp profile is well-formed but asks for something unsupported.
    #[error("seccomp profile: {location}: {reason}")]
    ProfileValue {
        /// Where in the profile.
        location: String,
        /// What is wrong there.
        reason: String,
    },

    /// The profile compiles to a longer program than the kernel accepts.
    #[error(
        "the seccomp profile compiles to {length} instructions, more than the kernel's {limit}: use fewer rules on arguments"
    )]
    FilterLength {
        /// Instructions.
        length: usize,
        /// The kernel's limit.
        limit: usize,
    },

    /// The kernel rejected the filter.
    #[error(
        "the kernel rejected the seccomp filter; without no-new-privileges, installing one needs CAP_SYS_ADMIN"
    )]
    FilterInstall(#[source] io::Error),

    /// Not a device rule.
    #[error(
        "`{rule}` is not a device rule: write it as `c 195:0 rw`, with `*` for any number, or `a` for all devices"
    )]
    DeviceRule { rule: String },

    /// More device rules than one program can hold.
    #[error("{count} device rules are too many: the limit is {limit}")]
    DeviceRules {
        /// Rules.
        count: usize,
        limit: usize,
    },

    /// The kernel rejected the device program.
    #[error("the kernel rejected the device filter{}", if log.is_empty() { String::new() } else { format!(" ({})", log.trim_end()) })]
    DeviceLoad {
        /// The verifier's log, which may be empty.
        log: String,
        /// The cause.
        #[source]
        source: io::Error,
    },

    /// The device program could not be attached.
    #[error("cannot attach the device filter to the cgroup {}", cgroup.display())]
    DeviceAttach {
        /// The directory of the cgroup.
        cgroup: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
