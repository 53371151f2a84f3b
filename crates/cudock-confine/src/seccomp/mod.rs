//! Which system calls reach the kernel.
//!
//! Most of the kernel's some four hundred calls are of no use to a container, and each is a way to a mistake in the
//! kernel. A [`Profile`] names what is allowed; [`Filter`] is the same as a program, which the kernel runs at every call
//! of the process that installed it and of all its descendants, and which none of them can take off again.
//!
//! ```
//! use cudock_confine::{Capability, seccomp::Filter};
//! let filter = Filter::for_capabilities(&[Capability::Chown])?;
//! assert!(filter.instructions().len() < 1000);
//! # Ok::<(), cudock_confine::Error>(())
//! ```

mod abi;
mod assemble;
mod calls;
mod choice;
mod default;
mod install;
mod json;
mod profile;
mod resolve;

pub use abi::Abi;
pub use assemble::{AND, Instruction, JUMP, JUMP_EQUAL, JUMP_GREATER, JUMP_GREATER_OR_EQUAL, LOAD, RETURN};
pub use choice::Choice;
pub use json::LARGEST_PROFILE;
pub use profile::{Action, Comparison, Condition, KernelVersion, Operator, Profile, Rule, Surroundings};
pub use resolve::Decisions;

use crate::{Capability, Error};

impl Profile {
    /// The profile of a container for which none is given.
    pub fn standard() -> Self {
        default::profile()
    }

    /// A profile in docker's form, as `--security-opt seccomp=FILE` names it. The bytes are not trusted.
    ///
    /// Rules are read as docker reads them, save that none is silently without effect: where rules on arguments and one
    /// without speak of the same call, those on arguments come first, in their order. (libseccomp drops them.)
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        json::read(bytes)
    }

    /// What becomes of every call in given surroundings, worked out without a program.
    pub fn decisions(&self, there: &Surroundings) -> Result<Decisions, Error> {
        Decisions::new(self, there)
    }
}

/// A filter, ready to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    instructions: Vec<Instruction>,
}

impl Filter {
    /// The default profile for a container that may ever have these capabilities, on this machine.
    pub fn for_capabilities(capabilities: &[Capability]) -> Result<Self, Error> {
        Self::new(&Profile::standard(), &Surroundings::here(capabilities))
    }

    /// Any profile, anywhere.
    pub fn new(profile: &Profile, there: &Surroundings) -> Result<Self, Error> {
        Ok(Self { instructions: assemble::assemble(&Decisions::new(profile, there)?)? })
    }

    /// The program.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Puts the calling thread, and all it starts, under this filter for good.
    ///
    /// The kernel asks for no-new-privileges or `CAP_SYS_ADMIN`. It is meant for the last moment before `exec` in a
    /// process with one thread: other threads would stay outside, and what the caller still does must be allowed by its
    /// own filter. Allocates nothing, so it can be called between `fork` and `exec`.
    pub fn install(&self) -> Result<(), Error> {
        install::install(&self.instructions).map_err(Error::FilterInstall)
    }
}
