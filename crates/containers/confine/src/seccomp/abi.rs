//! System-call ABIs.
//!
//! An x86-64 kernel takes calls by `syscall`, by `int 0x80` with the numbers of 32-bit x86, and by `syscall` with the
//! numbers of x32. A filter that looks at the number alone can be bypassed through another ABI, so a filter checks the ABI
//! first.

use cudock_base::Arch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Abi {
    X86_64,
    /// 32-bit x86, which 64-bit programs can use, too.
    X86,
    Aarch64,
}

impl Abi {
    /// Its number in `seccomp_data.arch`: the ELF machine with flags for 64 bits and byte order.
    pub const fn audit_number(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::X86 => 0x4000_0003,
            Self::Aarch64 => 0xC000_00B7,
        }
    }

    /// The ABI of programs built for this machine.
    pub const fn native() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self::X86_64;
        #[cfg(target_arch = "aarch64")]
        return Self::Aarch64;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        compile_error!(
            "cudock-confine has no system-call numbers for this architecture: add it to syscalls.rs"
        );
    }

    /// The name in the `arches` of docker's profiles, which use Go's names.
    pub(super) const fn go_name(self) -> &'static str {
        match self {
            Self::X86_64 => Arch::X86_64.oci_name(),
            Self::X86 => "x86",
            Self::Aarch64 => Arch::Aarch64.oci_name(),
        }
    }

    /// The ABIs that programs may use on a machine with this one: 32-bit x86 programs run on 64-bit x86; x32 and 32-bit ARM
    /// are not supported.
    pub(super) fn with_companions(self) -> Vec<Self> {
        match self {
            Self::X86_64 => vec![Self::X86_64, Self::X86],
            other => vec![other],
        }
    }
}

/// Numbers from here on, on 64-bit x86, are those of x32.
pub(super) const X32_BIT: u32 = 0x4000_0000;
