//! What can go wrong here, in words a user can act on.

use std::io;
use std::path::PathBuf;

/// Why something could not be confined, or was not understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is no capability.
    #[error("`{given}` is no capability{}", suggestion.map(|name| format!(", is `{name}` meant?")).unwrap_or_default())]
    UnknownCapability {
        /// What was given.
        given: String,
        /// The capability whose name is nearest, where one is near.
        suggestion: Option<&'static str>,
    },

    /// A seccomp profile that could not be read.
    #[error("cannot read the seccomp profile {}", path.display())]
    ProfileRead {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },

    /// A seccomp profile that is larger than any real one.
    #[error("the seccomp profile is larger than {limit} bytes")]
    ProfileSize {
        /// How much is read at most.
        limit: usize,
    },

    /// A seccomp profile that is not JSON of docker's form.
    #[error("the seccomp profile is not in docker's form")]
    ProfileForm(#[source] serde_json::Error),

    /// A seccomp profile that is well-formed and yet says something that cannot be done.
    #[error("the seccomp profile's {place}: {what}")]
    ProfileMeaning {
        /// Where in the profile.
        place: String,
        /// What is wrong with it.
        what: String,
    },

    /// A profile that becomes a longer program than the kernel takes.
    #[error(
        "the seccomp profile becomes {length} instructions, and the kernel takes {limit}: use fewer rules on arguments"
    )]
    FilterLength {
        /// How long the program would be.
        length: usize,
        /// How long it may be.
        limit: usize,
    },

    /// The kernel refused the filter.
    #[error(
        "the kernel refuses the seccomp filter; without no-new-privileges it takes one from CAP_SYS_ADMIN only"
    )]
    FilterInstall(#[source] io::Error),

    /// A device rule that was not understood.
    #[error(
        "`{given}` is no device rule: write it as `c 195:0 rw`, with `*` for any number, or `a` for all devices"
    )]
    DeviceRule {
        /// What was given.
        given: String,
    },

    /// More device rules than a program can hold.
    #[error("{count} device rules are too many: a cgroup's device program holds {limit}")]
    DeviceRules {
        /// How many were given.
        count: usize,
        /// How many fit.
        limit: usize,
    },

    /// The kernel refused the device program.
    #[error("the kernel refuses the device filter{}", if log.is_empty() { String::new() } else { format!(" ({})", log.trim_end()) })]
    DeviceLoad {
        /// What its verifier said, empty where it was not asked.
        log: String,
        /// The error.
        #[source]
        source: io::Error,
    },

    /// The device program could not be attached.
    #[error("cannot attach the device filter to the cgroup {}", cgroup.display())]
    DeviceAttach {
        /// The cgroup's folder.
        cgroup: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
}
