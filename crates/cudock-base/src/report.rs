//! What every error tells its caller: whose fault it is, and what to do about it.

use std::error::Error;

/// Whether the caller or the outside world has to change for another attempt to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The arguments, a file or a name is wrong: exit code 2.
    Input,
    /// The network, a daemon, the disk or the kernel failed: exit code 3.
    Outside,
}

/// An error that a command can report.
pub trait Report: Error {
    /// Whose fault it is.
    fn failure(&self) -> Failure;

    /// What to do next, each as one sentence without a period.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}
