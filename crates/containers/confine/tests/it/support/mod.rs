//! What several tests need.

use std::process::{Command, Output};

use cudock_confine::Capability;
use cudock_confine::seccomp::{Abi, FilterContext, KernelVersion};

/// 64-bit x86 with Linux 6.1.
pub(crate) fn here(capabilities: &[Capability]) -> FilterContext {
    FilterContext {
        machine: Abi::X86_64,
        kernel: KernelVersion { major: 6, minor: 1 },
        capabilities: capabilities.to_vec(),
    }
}

/// Whether a program can be started here.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
