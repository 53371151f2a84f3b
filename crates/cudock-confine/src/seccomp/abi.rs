//! The ways into the kernel that one machine has.
//!
//! A machine of x86-64 takes calls by `syscall`, by `int 0x80` with the numbers of 32-bit x86, and by `syscall` with the
//! numbers of x32. A filter that looks at the number alone can be walked around by taking another way, so a filter asks
//! for the way first.

use cudock_base::Arch;

/// A way into the kernel: how arguments are passed and what the numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Abi {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86, which every 64-bit program can call, too.
    X86,
    /// 64-bit ARM.
    Aarch64,
}

impl Abi {
    /// What the kernel calls this way in `seccomp_data.arch`: the ELF machine, with marks for 64 bits and byte order.
    pub const fn audit_number(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::X86 => 0x4000_0003,
            Self::Aarch64 => 0xC000_00B7,
        }
    }

    /// The way programs built for this machine take.
    pub const fn native() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self::X86_64;
        #[cfg(target_arch = "aarch64")]
        return Self::Aarch64;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        compile_error!(
            "cudock-confine has no system-call numbers for this architecture: add a column to calls.rs"
        );
    }

    /// The name in the `arches` of docker's profiles, which are those of Go.
    pub(super) const fn go_name(self) -> &'static str {
        match self {
            Self::X86_64 => Arch::X86_64.oci_name(),
            Self::X86 => "x86",
            Self::Aarch64 => Arch::Aarch64.oci_name(),
        }
    }

    /// The ways open to programs by default on a machine whose own way this is: 32-bit x86 programs run on 64-bit x86;
    /// x32 and 32-bit ARM do not.
    pub(super) fn with_companions(self) -> Vec<Self> {
        match self {
            Self::X86_64 => vec![Self::X86_64, Self::X86],
            other => vec![other],
        }
    }
}

/// Numbers from here on, on 64-bit x86, are those of x32.
pub(super) const X32_BIT: u32 = 0x4000_0000;
