//! The target of a piece of code.

use std::fmt;

use cudock_facts::version::{Capability, PtxArch, SmArch};

/// The kind and the architecture of a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeTarget {
    Sass(SmArch),
    Ptx(PtxArch),
    /// Intermediate code for link-time optimization at run time.
    Ir(SmArch),
    /// Code of an unknown kind, or for a number that is not an architecture.
    Unknown(u32),
}

impl CodeTarget {
    /// Whether a GPU loads this code.
    pub fn runs_on(self, gpu: Capability) -> bool {
        match self {
            CodeTarget::Sass(arch) => arch.runs_on(gpu),
            CodeTarget::Ptx(arch) => arch.compiles_for(gpu),
            CodeTarget::Ir(_) | CodeTarget::Unknown(_) => false,
        }
    }
}

impl fmt::Display for CodeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeTarget::Sass(arch) => arch.fmt(f),
            CodeTarget::Ptx(arch) => arch.fmt(f),
            CodeTarget::Ir(arch) => write!(f, "lto_{}", arch.to_string().trim_start_matches("sm_")),
            CodeTarget::Unknown(number) => write!(f, "unknown_{number}"),
        }
    }
}
