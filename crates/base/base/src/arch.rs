//! CPU architectures, under the names that the kernel, Python, OCI images and Debian use for them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A CPU architecture that CUDA runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Arch {
    /// 64-bit Intel and AMD.
    #[default]
    #[serde(rename = "x86_64", alias = "amd64")]
    X86_64,
    /// 64-bit Arm.
    #[serde(rename = "aarch64", alias = "arm64")]
    Aarch64,
}

impl Arch {
    /// The names that are deserialized.
    pub const SPELLINGS: [&str; 4] = ["x86_64", "amd64", "aarch64", "arm64"];

    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The architecture this program was built for.
    pub const CURRENT: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    /// The name used by `uname -m`, Python and wheels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The name used by OCI images and Debian packages.
    pub const fn oci_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Parses any common spelling, in any case; `None` if it is another architecture.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "x86_64" | "amd64" | "x86-64" | "x64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The OCI spelling of a name; names of other architectures stay as they are.
    pub fn to_oci(name: &str) -> &str {
        Self::parse(name).map_or(name, |arch| arch.oci_name())
    }

    /// The kernel's spelling of a name; names of other architectures stay as they are.
    pub fn to_kernel(name: &str) -> &str {
        Self::parse(name).map_or(name, |arch| arch.name())
    }

    /// The architecture of an ELF file's `e_machine`.
    pub const fn from_elf_machine(machine: u16) -> Option<Self> {
        match machine {
            62 => Some(Self::X86_64),
            183 => Some(Self::Aarch64),
            _ => None,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_parsed() {
        for arch in Arch::ALL {
            assert_eq!(Arch::parse(arch.name()), Some(arch));
            assert_eq!(Arch::parse(arch.oci_name()), Some(arch));
        }
        assert_eq!(Arch::parse("X86-64"), Some(Arch::X86_64));
        assert_eq!(Arch::parse("riscv64"), None);
    }

    #[test]
    fn other_architectures_keep_their_name() {
        assert_eq!(Arch::to_oci("x86_64"), "amd64");
        assert_eq!(Arch::to_kernel("arm64"), "aarch64");
        assert_eq!(Arch::to_oci("s390x"), "s390x");
    }
}
