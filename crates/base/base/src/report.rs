//! The interface of errors that a command reports: kind, hints and excerpt.

use std::error::Error;
use std::ops::Range;

/// Whether the caller or the outside world has to change for another attempt to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The arguments, a file or a name is wrong: exit code 2.
    Input,
    /// The network, a daemon, the disk or the kernel failed: exit code 3.
    Outside,
    /// A container's program exists and cannot be executed: exit code 126, as in shells.
    NotExecutable,
    /// A container's program does not exist: exit code 127, as in shells.
    ProgramNotFound,
    /// A signal ended the command: exit code 128 plus its number, as in shells.
    Signal(u8),
}

impl ErrorKind {
    /// The exit code of a command that fails with it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Input => 2,
            Self::Outside => 3,
            Self::NotExecutable => 126,
            Self::ProgramNotFound => 127,
            Self::Signal(number) => 128 | number,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Excerpt<'a> {
    pub text: &'a str,
    /// The bytes that are wrong.
    pub span: &'a Range<usize>,
    pub path: &'a std::path::Path,
}

/// An error that a command can report.
pub trait Report: Error {
    /// The kind of error, which determines the exit code.
    fn kind(&self) -> ErrorKind;

    /// Suggested next steps, each as one sentence without a period.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }

    /// The part of a file to show.
    fn excerpt(&self) -> Option<Excerpt<'_>> {
        None
    }

    /// Whether the outside world failed, rather than the input being wrong.
    fn is_outside(&self) -> bool {
        self.kind() != ErrorKind::Input
    }
}

/// "did you mean `a` or `b`?", unless there is nothing to suggest.
pub fn did_you_mean<T: AsRef<str>>(names: &[T]) -> Option<String> {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
}
