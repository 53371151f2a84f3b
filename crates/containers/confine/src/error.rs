//! Errors of this crate.

use std::io;
use std::path::PathBuf;

/// Why a filter could not be built or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    #[error("unknown capability `{name}`{}", suggestion.map(|name| format!(": did you mean `{name}`?")).unwrap_or_default())]
    UnknownCapability {
        name: String,
        /// The capability with the most similar name, if one is similar.
        suggestion: Option<&'static str>,
    },

    #[error("the seccomp profile is larger than {limit} bytes")]
    ProfileSize { limit: usize },

    #[error("the seccomp profile is not in docker's format")]
    ProfileFormat(#[source] serde_json::Error),

    /// The seccomp profile is well-formed but contains an unsupported value.
    #[error("seccomp profile: {location}: {reason}")]
    ProfileValue { location: String, reason: String },

    #[error(
        "the seccomp profile compiles to {length} instructions, more than the kernel's {limit}: use fewer rules on arguments"
    )]
    FilterLength { length: usize, limit: usize },

    #[error(
        "the kernel rejected the seccomp filter; without no-new-privileges, installing one needs CAP_SYS_ADMIN"
    )]
    FilterInstall(#[source] io::Error),

    #[error("{count} device rules are too many: the limit is {limit}")]
    DeviceRules { count: usize, limit: usize },

    #[error("the kernel rejected the device filter{}", if log.is_empty() { String::new() } else { format!(" ({})", log.trim_end()) })]
    DeviceLoad {
        /// The verifier's log, which may be empty.
        log: String,
        source: io::Error,
    },

    #[error("cannot attach the device filter to the cgroup {}", cgroup.display())]
    DeviceAttach { cgroup: PathBuf, source: io::Error },
}
