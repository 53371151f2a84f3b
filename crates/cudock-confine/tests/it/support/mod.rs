//! What several tests need.
#![allow(dead_code, reason = "each test uses its part")]

use std::process::{Command, Output};

/// This test program again, to run the one test `name`, which looks for `variable` to know that it is meant.
pub(crate) fn again(name: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(variable, value);
    command
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
