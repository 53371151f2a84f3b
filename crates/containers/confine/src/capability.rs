//! Linux capabilities by name and number.

use crate::ConfineError;

macro_rules! capabilities {
    ($($variant:ident = $number:literal, $name:literal, $doc:literal;)*) => {
        /// A Linux capability, as in capabilities(7).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $(#[doc = $doc] $variant = $number,)*
        }

        impl Capability {
            /// Every capability, by number.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The full name: `CAP_CHOWN`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("CAP_", $name),)*
                }
            }
        }
    };
}

capabilities! {
    Chown = 0, "CHOWN", "Giving files to others.";
    DacOverride = 1, "DAC_OVERRIDE", "Reading and writing what permissions forbid.";
    DacReadSearch = 2, "DAC_READ_SEARCH", "Reading what permissions forbid; opening files by handle.";
    Fowner = 3, "FOWNER", "Acting as the owner of any file.";
    Fsetid = 4, "FSETID", "Keeping set-user-id bits.";
    Kill = 5, "KILL", "Signals to anyone's processes.";
    Setgid = 6, "SETGID", "Becoming other groups.";
    Setuid = 7, "SETUID", "Becoming other users.";
    Setpcap = 8, "SETPCAP", "Dropping capabilities from the bounding set.";
    LinuxImmutable = 9, "LINUX_IMMUTABLE", "The append-only and immutable marks of files.";
    NetBindService = 10, "NET_BIND_SERVICE", "Ports below 1024.";
    NetBroadcast = 11, "NET_BROADCAST", "Broadcasts and multicasts.";
    NetAdmin = 12, "NET_ADMIN", "Interfaces, routes, firewalls.";
    NetRaw = 13, "NET_RAW", "Raw sockets and packets.";
    IpcLock = 14, "IPC_LOCK", "Locking memory beyond the limit.";
    IpcOwner = 15, "IPC_OWNER", "Others' shared memory and queues.";
    SysModule = 16, "SYS_MODULE", "Modules of the kernel.";
    SysRawio = 17, "SYS_RAWIO", "Ports and raw memory.";
    SysChroot = 18, "SYS_CHROOT", "`chroot`, and joining mount namespaces.";
    SysPtrace = 19, "SYS_PTRACE", "Tracing anyone's processes.";
    SysPacct = 20, "SYS_PACCT", "Process accounting.";
    SysAdmin = 21, "SYS_ADMIN", "Mounting and all else that has no capability of its own.";
    SysBoot = 22, "SYS_BOOT", "Restarting the machine.";
    SysNice = 23, "SYS_NICE", "Priorities and placement of anyone's processes.";
    SysResource = 24, "SYS_RESOURCE", "Going past limits.";
    SysTime = 25, "SYS_TIME", "Setting the clock.";
    SysTtyConfig = 26, "SYS_TTY_CONFIG", "Terminals' settings, `vhangup`.";
    Mknod = 27, "MKNOD", "Making device nodes.";
    Lease = 28, "LEASE", "Leases on files.";
    AuditWrite = 29, "AUDIT_WRITE", "Writing to the kernel's audit log.";
    AuditControl = 30, "AUDIT_CONTROL", "The audit's settings.";
    Setfcap = 31, "SETFCAP", "Capabilities of files.";
    MacOverride = 32, "MAC_OVERRIDE", "Passing over mandatory access control.";
    MacAdmin = 33, "MAC_ADMIN", "The settings of mandatory access control.";
    Syslog = 34, "SYSLOG", "The kernel's log.";
    WakeAlarm = 35, "WAKE_ALARM", "Waking the machine.";
    BlockSuspend = 36, "BLOCK_SUSPEND", "Keeping the machine awake.";
    AuditRead = 37, "AUDIT_READ", "Reading the audit log.";
    Perfmon = 38, "PERFMON", "Performance counters.";
    Bpf = 39, "BPF", "BPF programs.";
    CheckpointRestore = 40, "CHECKPOINT_RESTORE", "Saving and bringing back processes.";
}

impl Capability {
    /// The kernel's number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Parses a name in any case, with or without `CAP_`.
    pub fn from_name(name: &str) -> Result<Self, ConfineError> {
        let bare = |name: &str| {
            let upper = name.to_ascii_uppercase();
            upper.strip_prefix("CAP_").map(str::to_owned).unwrap_or(upper)
        };
        let wanted = bare(name.trim());
        if let Some(&found) = Self::ALL.iter().find(|capability| bare(capability.name()) == wanted) {
            return Ok(found);
        }
        // The name may come from a profile and have any length.
        let shown: String = name.chars().take(MAX_SHOWN).collect();
        if shown.len() < name.len() {
            return Err(ConfineError::UnknownCapability { name: shown, suggestion: None });
        }
        let full_name = format!("CAP_{wanted}");
        let suggestion =
            cudock_base::text::suggest::closest(&full_name, Self::ALL.iter().map(|one| one.name()));
        Err(ConfineError::UnknownCapability { name: shown, suggestion })
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of `--cap-add` or `--cap-drop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapabilityChange {
    All,
    One(Capability),
}

impl std::str::FromStr for CapabilityChange {
    type Err = ConfineError;

    fn from_str(text: &str) -> Result<Self, ConfineError> {
        let name = text.trim();
        if name.eq_ignore_ascii_case("all") || name.eq_ignore_ascii_case("cap_all") {
            return Ok(Self::All);
        }
        Capability::from_name(name).map(Self::One)
    }
}

/// Characters of an unknown name that an error shows.
const MAX_SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_indices_of_the_list() {
        for (index, capability) in Capability::ALL.iter().enumerate() {
            assert_eq!(usize::from(capability.number()), index);
        }
    }

    #[test]
    fn names_are_parsed_in_every_spelling() {
        for name in ["CAP_SYS_ADMIN", "SYS_ADMIN", "sys_admin", "cap_sys_admin", " Sys_Admin "] {
            assert_eq!(Capability::from_name(name).unwrap(), Capability::SysAdmin);
        }
        assert_eq!("all".parse::<CapabilityChange>().unwrap(), CapabilityChange::All);
        assert_eq!("net_raw".parse::<CapabilityChange>().unwrap(), CapabilityChange::One(Capability::NetRaw));
    }

    #[test]
    fn a_misspelled_name_gets_a_suggestion() {
        let error = Capability::from_name("SYS_PTRAC").unwrap_err();
        assert_eq!(error.to_string(), "unknown capability `SYS_PTRAC`: did you mean `CAP_SYS_PTRACE`?");
        let error = Capability::from_name("CAP_GPU").unwrap_err();
        assert_eq!(error.to_string(), "unknown capability `CAP_GPU`");
    }
}
