//! CPU architectures, under the names that the kernel, Python, OCI images and Debian use for them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// A CPU architecture that CUDA runs on. It is serialized under its name in every format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Arch {
    /// 64-bit Intel and AMD.
    #[default]
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

/// The architecture that something was built for, under the name it was given there. It may be one that CUDA does not run
/// on. Names of the same architecture are equal.
#[derive(Debug, Clone)]
pub struct NamedArch {
    name: String,
    arch: Option<Arch>,
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

impl Serialize for Arch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Arch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let arch = Self::ALL.into_iter().find(|arch| name == arch.name() || name == arch.oci_name());
        arch.ok_or_else(|| D::Error::unknown_variant(&name, &Self::SPELLINGS))
    }
}

impl NamedArch {
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { arch: Arch::parse(&name), name }
    }

    /// `None` if it is another architecture.
    pub const fn arch(&self) -> Option<Arch> {
        self.arch
    }

    /// The same architecture under the kernel's name; names of other architectures stay as they are.
    #[must_use]
    pub fn with_kernel_name(&self) -> Self {
        self.arch.map_or_else(|| self.clone(), Self::from)
    }
}

impl From<Arch> for NamedArch {
    fn from(arch: Arch) -> Self {
        Self { name: arch.name().to_owned(), arch: Some(arch) }
    }
}

impl PartialEq for NamedArch {
    fn eq(&self, other: &Self) -> bool {
        match (self.arch, other.arch) {
            (None, None) => self.name == other.name,
            (own, other) => own == other,
        }
    }
}

impl Eq for NamedArch {}

impl PartialEq<Arch> for NamedArch {
    fn eq(&self, other: &Arch) -> bool {
        self.arch == Some(*other)
    }
}

impl fmt::Display for NamedArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
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
        assert_eq!(NamedArch::new("arm64").with_kernel_name().to_string(), "aarch64");
        assert_eq!(Arch::to_oci("s390x"), "s390x");
        assert_eq!(NamedArch::new("s390x").with_kernel_name().to_string(), "s390x");
    }

    #[test]
    fn names_of_one_architecture_are_equal() {
        assert_eq!(NamedArch::new("amd64"), NamedArch::new("x86_64"));
        assert_eq!(NamedArch::new("arm64"), Arch::Aarch64);
        assert_ne!(NamedArch::new("s390x"), NamedArch::new("riscv64"));
        assert_ne!(NamedArch::new("s390x"), Arch::X86_64);
        assert_eq!(NamedArch::new("amd64").to_string(), "amd64");
    }

    #[test]
    fn an_architecture_is_serialized_under_its_name() {
        for arch in Arch::ALL {
            let text = serde_json::to_string(&arch).unwrap();
            assert_eq!(text, format!("\"{arch}\""));
            assert_eq!(serde_json::from_str::<Arch>(&text).unwrap(), arch);
        }
        assert_eq!(serde_json::from_str::<Arch>("\"arm64\"").unwrap(), Arch::Aarch64);
        assert!(serde_json::from_str::<Arch>("\"X64\"").is_err());
    }
}
