//! The system-call filter.
//!
//! Most of the kernel's four hundred system calls are useless to a container, and each is attack surface. A [`Profile`] names
//! what is allowed; a [`Filter`] is the compiled program, which the kernel runs at every call of the process that installed
//! it and of its descendants, and which none of them can remove.
//!
//! ```
//! use cudock_confine::{Capability, seccomp::Filter};
//! let filter = Filter::for_capabilities(&[Capability::Chown])?;
//! assert!(filter.instructions().len() < 1000);
//! # Ok::<(), cudock_confine::ConfineError>(())
//! ```

mod abi;
mod assemble;
mod default;
mod install;
mod json;
mod profile;
mod resolve;
mod syscalls;

pub use abi::Abi;
pub use assemble::{AND, Instruction, JUMP, JUMP_EQUAL, JUMP_GREATER, JUMP_GREATER_OR_EQUAL, LOAD, RETURN};
pub use json::MAX_PROFILE_BYTES;
pub use profile::{
    Action, Comparison, Condition, FilterContext, KernelVersion, Operator, Profile, SyscallRule,
};
pub use resolve::Decisions;

use crate::{Capability, ConfineError};

impl Profile {
    pub fn standard() -> Self {
        default::profile()
    }

    /// Parses a profile in docker's format, as for `--security-opt seccomp=FILE`. The bytes are untrusted.
    ///
    /// Rules mean what they mean in docker, except that none is silently ignored: if a call has rules with and without
    /// conditions on arguments, those with conditions come first, in their order. (libseccomp drops them.)
    pub fn from_json(bytes: &[u8]) -> Result<Self, ConfineError> {
        json::parse(bytes)
    }

    /// The decision for every call, without compiling a program.
    pub fn decisions(&self, context: &FilterContext) -> Result<Decisions, ConfineError> {
        Decisions::new(self, context)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    instructions: Vec<Instruction>,
}

impl Filter {
    /// Compiles the default profile for this machine and a container with this bounding set.
    pub fn for_capabilities(capabilities: &[Capability]) -> Result<Self, ConfineError> {
        Self::new(&Profile::standard(), &FilterContext::here(capabilities))
    }

    pub fn new(profile: &Profile, context: &FilterContext) -> Result<Self, ConfineError> {
        Ok(Self { instructions: assemble::assemble(&Decisions::new(profile, context)?)? })
    }

    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Installs the filter for the calling thread and everything it starts, irrevocably.
    ///
    /// Needs no-new-privileges or `CAP_SYS_ADMIN`. Call it just before `exec` in a process with one thread: other threads
    /// would stay unfiltered. Allocates nothing, so it can be called between `fork` and `exec`.
    pub fn install(&self) -> Result<(), ConfineError> {
        install::install(&self.instructions).map_err(ConfineError::FilterInstall)
    }
}
