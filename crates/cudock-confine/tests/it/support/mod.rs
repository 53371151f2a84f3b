//! What several tests need.

use std::process::{Command, Output};

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
